import type { Micros } from "@pure-link/wire"
import type { Chance } from "../world/chance.ts"
import type { Weather } from "./network.ts"

/**
 * What kind of world one is. Whole kinds of trouble are absent from many worlds, so that others show alone.
 */
export interface Plan {
  /** How many streams go from the sender node to the receiver. */
  readonly streams: number
  /** How many records each stream appends at least, how long they are at most, and how long appends are apart. */
  readonly records: number
  readonly largestRecord: number
  readonly appendEvery: Micros
  readonly weather: Weather
  readonly streamBytes: number
  readonly totalBytes: number
  readonly commitDelay: Micros
  readonly commitFailure: number
  readonly senderCrashes: number
  readonly receiverCrashes: number
  /** How often the sender's node gets another port while it runs. */
  readonly rebinds: number
  /** A NAT gives it another port again and again, this far apart, for a while; 0: none does. */
  readonly rebindEvery: Micros
  /** How often it moves to another host, and back. */
  readonly senderMoves: number
  /** How often the receiver goes to another address, with its disk and its memo, and its senders are told. */
  readonly receiverMoves: number
  /** How often a process is suspended, and for how long at most. */
  readonly freezes: number
  readonly longestFreeze: Micros
  /** For how long the inbox's disk is full. */
  readonly diskFull: Micros
  readonly memo: MemoTrouble
  /** Packets and life of an epoch; undefined for those of spec §18. */
  readonly epochPackets: number | undefined
  readonly epochLifetime: Micros | undefined
  /** How many packets someone on the path injects. */
  readonly attacks: number
  /** How often all packets of an earlier run are delivered again. */
  readonly replayedRuns: number
  readonly inputTrouble: InputTrouble
  readonly upheaval: Upheaval
  /** After the end: minutes later everything is delivered once more, and then every stream appends again. */
  readonly epilogue: boolean
  readonly chaosEnds: Micros
}

/** What is wrong with an input, or with the peer's sources, for a while (spec §11.1, reasons 1 to 3). */
export type InputTrouble = "none" | "missing" | "removed" | "otherShape" | "sourceNotAllowed"

/** What becomes of the receiver's memo when its process dies; with `none` it never has one. */
export type MemoTrouble = "none" | "kept" | "lost" | "old" | "foreign" | "failing"

/** What an operator does to the files of a stream in the middle of a world (spec §8.3–§8.7). */
export type Upheaval =
  | "none"
  | "newGeneration"
  /** The outbox goes back to a backup; records are appended after that, or none. */
  | "outboxForked"
  | "outboxRestored"
  /** A copy of the outbox runs beside it, with the same key. */
  | "outboxCloned"
  /** The inbox goes back to a backup; its process starts again, or is told. */
  | "inboxRestored"
  | "inboxRevised"

export const second: Micros = 1_000_000

export const planOf = (chance: Chance): Plan => {
  const delay = chance.pick([100, 5_000, 20_000, 100_000])
  const streams = chance.pick([1, 1, 1, 2, 2, 3])
  const largestRecord = chance.pick([0, 80, 1_400, 6_000, 60_000])
  const streamBytes = chance.pick([16_777_216, 256 * 1024, 20_000])
  const diskFull = chance.pick([0, 0, 0, 0, 0, second, 20 * second, 300 * second])
  const freezes = chance.pick([0, 0, 0, 1, 2])
  return {
    streams,
    records: Math.ceil(chance.between(1, largestRecord > 6_000 ? 16 : 80) / streams),
    largestRecord,
    appendEvery: chance.pick([0, 0, 2_000, 50_000]),
    weather: {
      delay,
      jitter: chance.pick([0, delay, 3 * delay]),
      loss: chance.pick([0, 0, 0.01, 0.1, 0.3]),
      duplicate: chance.pick([0, 0.05, 0.3]),
      corrupt: chance.pick([0, 0.02, 0.1])
    },
    streamBytes,
    totalBytes: streams === 1 ? 268_435_456 : chance.pick([268_435_456, 30_000, 12_000]),
    commitDelay: chance.pick([0, 500, 30_000, 900_000]),
    commitFailure: chance.pick([0, 0, 0.2, 0.5]),
    senderCrashes: chance.pick([0, 0, 1, 3]),
    receiverCrashes: chance.pick([0, 0, 1, 3]),
    rebinds: chance.pick([0, 0, 0, 2]),
    rebindEvery: chance.pick([0, 0, 0, 0, 0, 0, 3_000, 40_000, 300_000]),
    senderMoves: chance.pick([0, 0, 0, 0, 1, 2]),
    receiverMoves: chance.pick([0, 0, 0, 0, 1, 2]),
    freezes,
    longestFreeze: chance.pick([second / 5, 3 * second, 30 * second, 600 * second]),
    diskFull,
    memo: chance.pick(["kept", "kept", "kept", "lost", "lost", "old", "foreign", "failing", "none"]),
    epochPackets: diskFull > second ? undefined : chance.pick([undefined, undefined, 5, 20, 60]),
    epochLifetime: chance.pick([undefined, undefined, undefined, diskFull > 0 ? 20 * second : 300_000, 2 * second]),
    attacks: chance.pick([0, 0, 0, 40, 100]),
    replayedRuns: chance.pick([0, 0, 2]),
    inputTrouble: chance.pick(["none", "none", "none", "none", "missing", "removed", "otherShape", "sourceNotAllowed"]),
    upheaval: chance.pick([
      "none",
      "none",
      "none",
      "none",
      "none",
      "none",
      "newGeneration",
      "newGeneration",
      "outboxForked",
      "outboxRestored",
      "outboxCloned",
      "inboxRestored",
      "inboxRevised"
    ]),
    epilogue: chance.happens(0.25),
    chaosEnds: chance.between(1, 8) * second
  }
}
