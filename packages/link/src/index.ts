/** What an Effect application imports. `docs/library.md` tells how it is used. */
export type { DriverCounters } from "./Driver.ts"
export type { DeliberateFaults } from "./Faults.ts"
export {
  type Chunk,
  type ChunkLimits,
  ConsumerBusy,
  type ConsumerChunk,
  type Batch,
  type BatchLimits,
  type ConsumerBatch,
  Input,
  InputConflict,
  type InputRecord,
  type OpenInputError,
  type ReadError
} from "./Input.ts"
export { Inputs, type InputsOptions, ReceiverPresent, UnusablePeer } from "./Inputs.ts"
export type { LinkEvent } from "./LinkEvent.ts"
export { LinkNode, type NodeCounters, NodeFailed, type NodeOptions } from "./LinkNode.ts"
export { type AppendError, type OpenError, Output, type OutputOptions, type Receipt } from "./Output.ts"
export type { OutputEnded } from "./OutputLink.ts"
export {
  ForkedOutbox,
  InvalidPeerKey,
  OutputClosed,
  type OutputState,
  refusalRemedy,
  WrongOutbox
} from "./OutputState.ts"
export type { LookUp } from "./peerAddress.ts"
export type { StoredAt } from "./StoredLog.ts"
export {
  InvalidName,
  joinRecords,
  type RecordBytes,
  StreamType,
  UndecodableRecord,
  UnencodableValue
} from "./StreamType.ts"
