/**
 * The sending half of the library: an application appends values, which are durable at once and STORED by the other
 * node later.
 */
import { formatPublicKey } from "@pure-link/keys"
import { Outbox, type OutboxFull, type ProducerPosition, type RecordTooLong, type StoreError } from "@pure-link/ports"
import { SenderLink } from "@pure-link/sender"
import type { Address, Bytes, RecordNumber } from "@pure-link/wire"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Result from "effect/Result"
import type * as Scope from "effect/Scope"
import type * as Stream from "effect/Stream"
import { LinkNode, type NodeSeam } from "./LinkNode.ts"
import { type OutputEnded, OutputLink } from "./OutputLink.ts"
import { type ForkedOutbox, InvalidPeerKey, type OutputClosed, type OutputState, WrongOutbox } from "./OutputState.ts"
import { followAddress, type LookUp } from "./peerAddress.ts"
import type { StoredAt } from "./StoredLog.ts"
import { InvalidName, isName, type RecordBytes, type StreamType, type UnencodableValue } from "./StreamType.ts"

/** What an append gives back: the records are durable, and it knows when they are STORED. */
export interface Receipt {
  /** The number of the first record appended. */
  readonly first: RecordNumber
  /** The number of the last; `first − 1` when nothing was appended. */
  readonly last: RecordNumber
  /**
   * Succeeds once the other node's inbox has all of them on disk (spec §2.2: stored, not processed). May be awaited at
   * any time, many times, or never; interrupting the wait costs nothing. Fails when this life of the output can no
   * longer learn it.
   */
  readonly stored: Effect.Effect<StoredAt, OutputEnded>
}

/** Why an append did not happen. Nothing of it was appended. */
export type AppendError = UnencodableValue | RecordTooLong | OutboxFull | StoreError | ForkedOutbox | OutputClosed

/** An open output: the way of one stream's values to a peer. */
export interface Output<A> {
  readonly source: string
  readonly input: string
  /**
   * Appends one value; succeeds when it is on disk. Waits while the outbox is at its byte limit. Interrupting it while
   * it waits appends nothing; later it completes all the same.
   */
  readonly append: (value: A, from?: ProducerPosition) => Effect.Effect<Receipt, AppendError>
  /** Appends values in order, in one transaction: all or nothing. */
  readonly appendAll: (values: ReadonlyArray<A>, from?: ProducerPosition) => Effect.Effect<Receipt, AppendError>
  /**
   * Appends records that are encoded already, in one transaction: record `i` is the `sizes[i]` bytes after those before
   * it. They must be what the stream type would encode; nothing checks it. Both arrays are handed over, not copied, and kept
   * until they are STORED: nobody may change them afterwards. Without records, only the producer's position is stored.
   */
  readonly appendBatch: (records: RecordBytes, from?: ProducerPosition) => Effect.Effect<Receipt, AppendError>
  /**
   * How far a producer had read its own source at its last durable append: what it gave as `from`, in the same
   * transaction as the records. A producer that starts there appends nothing twice. `undefined` before its first.
   */
  readonly producerPosition: (producer: string) => Effect.Effect<number | undefined>
  /** The present state. */
  readonly state: Effect.Effect<OutputState>
  /** The present state and every later one; a slow reader sees only the newest. */
  readonly changes: Stream.Stream<OutputState>
  /** The last record known to be STORED; 0 before the first. */
  readonly storedThrough: Effect.Effect<RecordNumber>
  /**
   * Sends to another address of the same peer from now on, at once: what is known of the path starts again (spec §13.3).
   * It ends the look-ups of an address that was given as an Effect.
   */
  readonly redirect: (address: Address) => Effect.Effect<void>
  /** Succeeds when everything appended so far, in this life or an earlier one, is STORED. */
  readonly drained: Effect.Effect<StoredAt, OutputEnded>
}

export interface OutputOptions {
  /** The name under which this node's records stand in the peer's input: 1 to 64 B of UTF-8. */
  readonly source: string
  readonly peer: {
    /** The peer's raw 32 B X25519 public key. */
    readonly publicKey: Uint8Array
    /**
     * Where it listens: a numeric address, or an Effect that finds it, such as `resolveHost("hub.example.org", 4433)`
     * of room `udp`. The Effect runs when it is needed, again until it succeeds, and again after silence; opening does
     * not wait for it.
     */
    readonly address: Address | LookUp
  }
  /** Bytes of records that are read ahead from the outbox into memory; 32 MiB by default. */
  readonly queueBytes?: Bytes
}

/** Why an output could not be opened. */
export type OpenError = WrongOutbox | InvalidPeerKey | InvalidName

/**
 * Opens the output of a stream type to a peer, on this node and with the outbox in the context, until the scope closes.
 * What the outbox holds from earlier lives goes out at once. Closing loses nothing: the outbox keeps what is not
 * STORED.
 */
const open = Effect.fnUntraced(function* <A>(
  type: StreamType<A>,
  options: OutputOptions
): Effect.fn.Return<Output<A>, OpenError, LinkNode | Outbox | Scope.Scope> {
  const { seam } = yield* LinkNode
  const outbox = yield* Outbox
  const clock = yield* Clock.Clock
  yield* check(type, options, outbox)
  const { peer } = options
  const machine = yield* Effect.try({
    try: () => makeMachine(seam, outbox, options),
    catch: (error) => new InvalidPeerKey({ detail: error instanceof Error ? error.message : String(error) })
  })
  const link = new OutputLink({
    seam,
    machine,
    outbox,
    wallClock: () => clock.currentTimeMillisUnsafe(),
    keys: { peer: formatPublicKey(peer.publicKey), own: formatPublicKey(seam.options.identity.publicKey) }
  })
  if (!Effect.isEffect(peer.address)) link.destination = peer.address
  yield* link.start
  if (Effect.isEffect(peer.address)) yield* Effect.forkScoped(followAddress(peer.address, seam, link))
  return outputOf(type, link, outbox)
})

/** Opens outputs. */
export const Output = { open } as const

const check = <A>(
  type: StreamType<A>,
  options: OutputOptions,
  outbox: Outbox["Service"]
): Effect.Effect<void, OpenError> => {
  if (!isName(options.source)) return Effect.fail(new InvalidName({ kind: "source", name: options.source }))
  if (options.peer.publicKey.length !== 32) {
    return Effect.fail(new InvalidPeerKey({ detail: `it has ${options.peer.publicKey.length} B` }))
  }
  const expected = { source: options.source, input: type.input, shape: type.shape }
  const found = outbox.stream
  const same = found.source === expected.source && found.input === expected.input && found.shape === expected.shape
  return same ? Effect.void : Effect.fail(new WrongOutbox({ expected, found }))
}

const makeMachine = (seam: NodeSeam, outbox: Outbox["Service"], options: OutputOptions): SenderLink => {
  const { generation, last, lives, lowestHeld } = outbox.state()
  return new SenderLink({
    suite: seam.suite,
    entropy: seam.entropy,
    identity: seam.options.identity,
    peerPublicKey: options.peer.publicKey,
    stream: outbox.stream,
    outbox: { generation, lowestHeld, last, lives },
    policies: seam.policies,
    trace: seam.trace,
    ...(seam.options.epochLimits && { epochLimits: seam.options.epochLimits }),
    ...(seam.options.faults && { faults: seam.options.faults }),
    ...(options.queueBytes === undefined ? {} : { queueBytes: options.queueBytes })
  })
}

const outputOf = <A>(type: StreamType<A>, link: OutputLink, outbox: Outbox["Service"]): Output<A> => {
  const receipt = (first: RecordNumber, count: number): Receipt => {
    const last = first + count - 1
    return { first, last, stored: link.stored.wait(last) }
  }
  /**
   * Whatever became of the append, the machine hears of what is durable: an interrupt may come right after the commit.
   */
  const appendBatch = (records: RecordBytes, from?: ProducerPosition): Effect.Effect<Receipt, AppendError> =>
    Effect.suspend((): Effect.Effect<Receipt, AppendError> => {
      if (link.ended) return Effect.fail(link.ended)
      if (records.sizes.length === 0 && from === undefined) return Effect.succeed(receipt(outbox.state().last + 1, 0))
      return outbox.append(from === undefined ? records : { ...records, from }).pipe(
        Effect.onExit((exit) =>
          Effect.sync(() => link.appended(Exit.isSuccess(exit) ? exit.value : undefined, records))
        ),
        Effect.map((first) => receipt(first, records.sizes.length))
      )
    })
  const appendAll = (values: ReadonlyArray<A>, from?: ProducerPosition): Effect.Effect<Receipt, AppendError> =>
    Effect.suspend(() => {
      const encoded = type.encode(values)
      return Result.isFailure(encoded) ? Effect.fail(encoded.failure) : appendBatch(encoded.success, from)
    })
  return {
    source: link.name.source,
    input: link.name.input,
    append: (value, from) => appendAll([value], from),
    appendAll,
    appendBatch,
    producerPosition: (producer) => Effect.sync(() => outbox.producerPosition(producer)),
    state: Effect.sync(() => link.state.value),
    changes: link.state.changes,
    storedThrough: Effect.sync(() => link.stored.through),
    redirect: (address) => Effect.sync(() => link.redirect(address)),
    drained: Effect.suspend(() => link.stored.wait(outbox.state().last))
  }
}
