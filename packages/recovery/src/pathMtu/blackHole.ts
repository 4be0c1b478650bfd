import { type Bytes, type Micros, type PacketNumber, smallestDatagram } from "@pure-link/wire"

/**
 * A path that swallows large datagrams and carries small ones (RFC 8899 §4.3, spec §14.8). Two signs give it away:
 *
 * - More than three large flights in a row were declared lost, of two send rounds, while small ones were acknowledged.
 * - Two packets in a row that probe timeouts sent went unanswered, and with them more than three large flights. That is
 *   only a suspicion, for a path that was dead for everything looks the same: what is judged is a large probe beside small
 *   packets that arrive.
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

  /** If there is a hole, every large flight from this number on has vanished. */
  get vanishedFrom(): PacketNumber {
    return this.#largestLarge + 1
  }

  handleAcknowledged(number: PacketNumber, bytes: Bytes): void {
    this.#largeProbes = 0
    if (bytes <= smallestDatagram) {
      if (this.#vanished > 0 && number > this.#firstVanished) this.#smallArrives = true
    } else if (number > this.#largestLarge) {
      this.#largestLarge = number
      if (number > this.#firstVanished) this.#vanished = 0
    }
  }

  /** A flight was declared lost. True: that gives the hole away. */
  handleLost(now: Micros, number: PacketNumber, bytes: Bytes, sentAt: Micros): boolean {
    if (bytes <= smallestDatagram || number <= this.#largestLarge) return false
    if (this.#vanished === 0) this.#begin(now, number)
    else if (sentAt >= this.#firstVanishedAt) this.#hasSecondRound = true
    this.#vanished++
    return this.#vanished > fewVanished && this.#hasSecondRound && this.#smallArrives
  }

  handleTimeoutProbe(bytes: Bytes): void {
    this.#largeProbes = bytes > smallestDatagram ? this.#largeProbes + 1 : 0
  }

  /** A probe timeout expired; `next` is not sent yet. True: that makes a hole likely. */
  handleProbeTimeout(next: PacketNumber): boolean {
    if (this.#largeProbes < unansweredProbes || next - this.#largestLarge - 1 <= fewVanished) return false
    this.#largeProbes = 0
    return true
  }

  /** Numbers begin again at 0, or the path is another one. */
  restart(): void {
    this.#largestLarge = -1
    this.#vanished = 0
    this.#firstVanished = 0
    this.#largeProbes = 0
  }

  #begin(now: Micros, number: PacketNumber): void {
    this.#firstVanished = number
    this.#firstVanishedAt = now
    this.#hasSecondRound = false
    this.#smallArrives = false
  }
}
