import { type PacketNumber, tagLength } from "@pure-link/wire"
import type { PacketKey, SealedPackets } from "./cryptoSuite.ts"

/**
 * A packet key of a library that knows one packet at a time: trains and tables are sealed and opened in a loop.
 */
export abstract class SinglePacketKey implements PacketKey {
  abstract seal(bytes: Uint8Array, start: number, bodyStart: number, bodyEnd: number, number: PacketNumber): void
  abstract open(bytes: Uint8Array, start: number, bodyStart: number, end: number, number: PacketNumber): boolean
  abstract release(): void

  sealTrain(
    slab: Uint8Array,
    stride: number,
    lengths: Uint32Array,
    from: number,
    to: number,
    headerLength: number,
    first: PacketNumber
  ): void {
    for (let i = from; i < to; i++) {
      const start = i * stride
      this.seal(slab, start, start + headerLength, start + lengths[i]! - tagLength, first + i - from)
    }
  }

  openAll(bytes: Uint8Array, packets: SealedPackets, from: number, to: number, headerLength: number): void {
    const { starts, ends, numbers, opened } = packets
    for (let i = from; i < to; i++) {
      const start = starts[i]!
      opened[i] = this.open(bytes, start, start + headerLength, ends[i]!, numbers[i]!) ? 1 : 0
    }
  }
}
