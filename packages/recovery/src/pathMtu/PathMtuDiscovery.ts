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
  /**
   * Large packets go unanswered, and it is not known yet whether because of their size. Then the probe is urgent: it goes
   * beyond the window, after what waits.
   */
  readonly isSuspicious: boolean
  /** The path answers: its first round trip was measured. */
  handleRoundTrip(now: Micros): void
  handleProbeSent(now: Micros, number: PacketNumber): void
  /** Any flight was acknowledged, a probe of the path or one declared lost before included. */
  handleAcknowledged(now: Micros, number: PacketNumber, bytes: Bytes): void
  /** Any flight was declared lost. */
  handleLost(now: Micros, number: PacketNumber, bytes: Bytes, sentAt: Micros): void
  /** A packet goes because of a probe timeout. */
  handleTimeoutProbe(bytes: Bytes): void
  /** A probe timeout expired; `next` is the number that the next packet takes. */
  handleProbeTimeout(next: PacketNumber): void
  /** Nothing in flight is counted on any more. */
  handleForgotten(now: Micros): void
  /** A fresh run on the same path: numbers begin again at 0, and what is known stays. Nothing is in flight. */
  startRun(): void
  /** Another path: everything is as at first. What is in flight will not be told of. */
  restart(): void
  /**
   * If it has just become certain that flights vanish by their size, the number from which on all larger than
   * `datagramSize` did; never otherwise. Told once; their loss is no congestion.
   */
  takeVanished(): PacketNumber
}
