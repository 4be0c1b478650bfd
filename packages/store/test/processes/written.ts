import type { MemoRun, ReceiverMemo, RecordBatch, RecordNumber } from "@pure-link/wire"

/** What the writing processes write, so that whoever looks afterwards knows every byte. */

export const writerStream = { source: "writer", input: "orders", shape: 3n }
export const writerLife = 0xabcdn
/** Records of one append or batch: all of them are there afterwards, or none. */
export const chunkLength = 7

export const writtenRecord = (number: RecordNumber): Uint8Array =>
  new Uint8Array((number * 37) % 1_500).fill(number & 0xff)

export const batchOf = (first: RecordNumber): RecordBatch => {
  const records = Array.from({ length: chunkLength }, (_, i) => writtenRecord(first + i))
  return { first, bytes: Buffer.concat(records), sizes: Uint32Array.from(records, (record) => record.length) }
}

export const chunkOf = (first: RecordNumber) => ({
  ...batchOf(first),
  from: { producer: "writer", position: first + chunkLength - 1 }
})

export const writtenMemoKey = new Uint8Array(32).fill(3)
export const memoPeer = (peer: number): Uint8Array => new Uint8Array(32).fill(peer + 1)
/** A secret that says what it is: every byte follows from peer, run and step. */
const secret = (peer: number, run: number, step: number, role: number): Uint8Array =>
  Uint8Array.from({ length: 32 }, (_, i) => (peer * 7 + run * 31 + step * 13 + role * 101 + i) & 0xff)

export const writtenStaticSecret = (peer: number): Uint8Array => secret(peer, 0, 0, 9)

/** What a step writes of a run: everything in it follows from its bound, which is the step. */
export const writtenRun = (peer: number, run: number, step: number): MemoRun => ({
  run: BigInt(run),
  isLive: step % 3 !== 0,
  bound: step,
  lastOffer: step - 1,
  current: step % 4 === 0 ? undefined : { epoch: step, secret: secret(peer, run, step, 1) },
  candidate: {
    epoch: step + 1,
    secret: secret(peer, run, step, 2),
    offerKey: secret(peer, run, step, 3),
    acceptKey: secret(peer, run, step, 4)
  },
  stream: undefined
})

/** Changes a memo of 16 peers: mostly runs that go on, a few that end, and now and then a peer that is revoked. */
export const memoStep = (memo: ReceiverMemo, step: number): void => {
  const peer = (step * 7) % 20
  const run = 1 + ((step >> 3) % 4)
  if (memo.recall(memoPeer(peer)) === undefined) memo.keepPeer(memoPeer(peer), writtenStaticSecret(peer))
  if (step % 97 === 0) memo.forgetPeer(memoPeer(peer))
  else if (step % 11 === 0) memo.forgetRun(memoPeer(peer), BigInt(run))
  else memo.keepRun(memoPeer(peer), writtenRun(peer, run, step))
}
