import {
  acceptFrameLength,
  type Address,
  answerHeaderLength,
  challengeFrameLength,
  epochBitsOf,
  type Micros,
  nameFrameLength,
  RefusalReason,
  refusedFrameLength,
  smallestDatagram,
  storedFrameLength,
  tagLength,
  writeAccept,
  writeAnswerHeader,
  writeChallenge,
  writeName,
  writeRefused,
  writeStored
} from "@pure-link/wire"
import type { ReceiverRun } from "./run.ts"

/**
 * Builds and seals one answer of a run to one of its addresses: ACK and SEEN with STORED, ACCEPT, REFUSED, NAME or
 * CHALLENGE as they apply (spec §7.2, §8.1, §10.4, §10.6, §11.2, §13.1). It fits every path, and the 3 × bytes of an
 * address that is not validated (spec §10.9).
 */

/**
 * Room for acknowledgements below which an answer is not worth its bytes: any first range or map of both lists fits.
 */
const leastRoom = 64

/**
 * Writes at `out[offset…]` and returns the length; 0 when there is nothing to say yet, or no bytes may go there now.
 */
export const writeAnswer = (
  run: ReceiverRun,
  to: Address,
  mostBytes: number,
  now: Micros,
  out: Uint8Array,
  offset: number
): number => {
  const { acknowledgements, epochs, path, replyRun } = run
  if (acknowledgements.largest < 0) return 0
  const isChallenged = to !== path.validated && epochs.live
  const most = Math.min(smallestDatagram, mostBytes)
  const overhead = answerHeaderLength + (isChallenged ? challengeFrameLength : 0) + tagLength
  if (most < overhead + lengthOfNotices(run) + leastRoom) return 0
  const number = run.replyNumber++
  const epochBits = epochBitsOf(epochs.answerEpoch)
  const bodyStart = writeAnswerHeader(out, offset, epochBits, run.peer.keyId, run.prefix, replyRun, number)
  let noticesEnd = writeNotices(run, out, bodyStart)
  if (isChallenged) noticesEnd = writeChallenge(out, noticesEnd, { ipChanged: path.isHostNew, token: path.token })
  const bodyEnd = acknowledgements.write(now, out, noticesEnd, offset + most - tagLength)
  epochs.answerKey(replyRun).seal(out, offset, bodyStart, bodyEnd, number)
  epochs.countAnswer()
  const length = bodyEnd + tagLength - offset
  path.handleSent(to, length, epochs.accept !== undefined)
  return length
}

/** Whether STORED is told: the stream is known, and n is its generation's (spec §10.6). */
const tellsStored = (run: ReceiverRun): boolean =>
  run.assembledIn !== undefined &&
  run.refusal !== RefusalReason.retiredGeneration &&
  run.refusal !== RefusalReason.tooManyRuns

const lengthOfNotices = (run: ReceiverRun): number =>
  (tellsStored(run) ? storedFrameLength : 0) +
  (run.epochs.accept === undefined ? 0 : acceptFrameLength) +
  (run.refusal === undefined ? 0 : refusedFrameLength) +
  (run.stream === undefined ? nameFrameLength : 0)

const writeNotices = (run: ReceiverRun, out: Uint8Array, offset: number): number => {
  let at = offset
  const stream = run.assembledIn
  if (stream !== undefined && tellsStored(run)) {
    const { n, life } = stream.reportedOf(run.stream!.generation)
    at = writeStored(out, at, n, life, stream.creditRecords, stream.creditBytes)
    stream.isTurnedAway = !stream.servesNext
    run.raisesStored = n > run.toldStored
    run.toldStored = n
  }
  const { accept } = run.epochs
  if (accept !== undefined) at = writeAccept(out, at, accept)
  if (run.refusal !== undefined) at = writeRefused(out, at, { reason: run.refusal })
  if (run.stream === undefined) at = writeName(out, at)
  return at
}
