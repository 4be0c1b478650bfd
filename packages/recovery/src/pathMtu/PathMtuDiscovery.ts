import type { Bytes, Micros, PacketNumber } from "@pure-link/wire"

/**
 * How large datagrams may be on this path (RFC 8899, spec §14.8). It hears of every flight that was acknowledged or
 * declared lost and of unanswered probe timeouts, says which size to use and when a larger one should be probed for,
 * and which flights vanished because of their size.
 */
export interface PathMtuDiscovery {
  readonly name: string
  /** The largest datagram to send, the probe of the path excepted. */
  readonly datagramSize: Bytes
  /** What the next probe of the path is padded to. */
  readonly probeSize: Bytes
  /** When that probe may go; never while none is wanted. */
  readonly probeAt: Micros
  /** The path answers: its first round trip was measured. */
  handleRoundTrip(now: Micros): void
  handleProbeSent(now: Micros, number: PacketNumber): void
  /** Any flight was acknowledged, a probe of the path or one declared lost before included. */
  handleAcknowledged(now: Micros, number: PacketNumber, bytes: Bytes): void
  /** Any flight was declared lost. */
  handleLost(now: Micros, number: PacketNumber, bytes: Bytes, sentAt: Micros): void
  /** A packet goes because of a probe timeout. */
  handleTimeoutProbe(number: PacketNumber, bytes: Bytes): void
  /** A probe timeout expired; `next` is the number that the next packet takes. */
  handleProbeTimeout(now: Micros, next: PacketNumber): void
  /** Nothing in flight is counted on any more. */
  handleForgotten(): void
  /**
   * If it has just become certain that flights vanish by their size, the number from which on all larger than
   * `datagramSize` did; never otherwise. Asked once after each answer; their loss is no congestion.
   */
  takeVanished(): PacketNumber
}
