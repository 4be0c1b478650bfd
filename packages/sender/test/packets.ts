import type { PacketNumber, RecordNumber } from "@pure-link/wire"
import { type Bench, list, makeRecords, type OpenedPacket, recordsOf, stored } from "./scriptedPeer.ts"

/** What tests of the sender say of several packets at once, and the times that they share. */

export type Packets = ReadonlyArray<OpenedPacket>

export const second = 1_000_000
export const roundTrip = 20_000

/** So many records of one size. */
export const same = (size: number, count: number): Array<Uint8Array> =>
  makeRecords(Array.from({ length: count }, () => size))

export const numbersOf = (packets: Packets): ReadonlyArray<PacketNumber> => packets.map((packet) => packet.number)

/** The records in packets, of each as many times as it is there. */
export const allRecords = (packets: Packets, base: RecordNumber = 1): ReadonlyArray<RecordNumber> =>
  packets.flatMap((packet) => recordsOf(packet, base))

/** Begins a run in epoch 1, and lets its window grow for two round trips, in each of which everything is acknowledged. */
export const grow = (bench: Bench, storedIn: (round: number) => RecordNumber): void => {
  bench.start()
  for (let round = 0; round < 2; round++) {
    const packets = bench.pass(roundTrip)
    bench.answer(list("Ack", ...numbersOf(packets)), stored(storedIn(round)))
  }
}
