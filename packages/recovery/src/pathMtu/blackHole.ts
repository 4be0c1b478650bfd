import { type Bytes, type Micros, never, type PacketNumber, smallestDatagram } from "@pure-link/wire"

/**
 * A path that swallows large datagrams and carries small ones (RFC 8899 §4.3, spec §14.8). Two signs give it away:
 *
 * - More than three large flights in a row were declared lost, of two send rounds, while small ones were acknowledged.
 * - Two packets in a row that probe timeouts sent went unanswered, and with them more than three large flights. That is
 *   only a suspicion, for a path that is dead for everything looks the same: it is confirmed when the next packet, a
 *   small one, is acknowledged.
 *
 * Congestion shows neither sign: it lets some large packet through.
 */

/** More large flights in a row than this. */
const fewVanished = 3
/** Unanswered packets of probe timeouts. */
const unansweredProbes = 2

export class BlackHole {
  /** The largest acknowledged number of a large flight: whatever follows it may have met the hole. */
  #largestLarge: PacketNumber = -1
  /** Large flights above `#largestLarge` that were declared lost. */
  #vanished = 0
  #firstVanished: PacketNumber = 0
  #firstVanishedAt: Micros = 0
  /** One of them was sent after the first was declared lost … */
  #hasSecondRound = false
  /** … and a small flight sent after the first of them was acknowledged. */
  #smallArrives = false
  /** Large packets in a row that probe timeouts sent since the last acknowledgement. */
  #largeProbes = 0
  /** The number of the small packet that will confirm a suspicion; never while there is none. */
  #confirmedBy: PacketNumber = never

  /** Every large flight from this number on has vanished, once it is certain that there is a hole. */
  get vanishedFrom(): PacketNumber {
    return this.#largestLarge + 1
  }

  /** A flight was acknowledged. True: that confirms a suspicion. */
  handleAcknowledged(number: PacketNumber, bytes: Bytes): boolean {
    this.#largeProbes = 0
    if (bytes > smallestDatagram) {
      this.#handleLarge(number)
      return false
    }
    if (this.#vanished > 0 && number > this.#firstVanished) this.#smallArrives = true
    if (number !== this.#confirmedBy) return false
    this.#confirmedBy = never
    return true
  }

  /** A flight was declared lost. True: that gives the hole away. */
  handleLost(now: Micros, number: PacketNumber, bytes: Bytes, sentAt: Micros): boolean {
    if (number === this.#confirmedBy) this.#confirmedBy = never
    if (bytes <= smallestDatagram || number <= this.#largestLarge) return false
    if (this.#vanished === 0) this.#begin(now, number)
    else if (sentAt >= this.#firstVanishedAt) this.#hasSecondRound = true
    this.#vanished++
    return this.#vanished > fewVanished && this.#hasSecondRound && this.#smallArrives
  }

  handleTimeoutProbe(bytes: Bytes): void {
    this.#largeProbes = bytes > smallestDatagram ? this.#largeProbes + 1 : 0
  }

  /** A probe timeout expired, with `next` to be sent. True: from that on packets are to be small, on suspicion. */
  handleProbeTimeout(next: PacketNumber): boolean {
    if (this.#largeProbes < unansweredProbes || next - this.#largestLarge - 1 <= fewVanished) return false
    this.#largeProbes = 0
    this.#confirmedBy = next
    return true
  }

  #handleLarge(number: PacketNumber): void {
    if (number <= this.#largestLarge) return
    this.#largestLarge = number
    this.#confirmedBy = never
    if (number > this.#firstVanished) this.#vanished = 0
  }

  #begin(now: Micros, number: PacketNumber): void {
    this.#firstVanished = number
    this.#firstVanishedAt = now
    this.#hasSecondRound = false
    this.#smallArrives = false
  }
}
