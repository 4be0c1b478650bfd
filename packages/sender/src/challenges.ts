import type { Id64, Micros, PacketNumber } from "@pure-link/wire"

/**
 * CHALLENGE, and the RESPONSE that is due (spec §9.11, §13). The receiver repeats CHALLENGE in its answers until RESPONSE
 * has come; so one RESPONSE is due at most, and the same one goes again only when an answer that reports the packet it
 * went in, or a later one, still asks.
 */

/** Tokens remembered that told of a new IP. */
const tokensKept = 8
/**
 * A new IP starts the path again at most this often, doubling up to a minute while moves follow one another: each start
 * ends in an overshoot that others on the path pay for.
 */
const firstPause: Micros = 1_000_000
const longestPause: Micros = 64_000_000
const calmTime: Micros = 10_000_000

export class Challenges {
  /** The token to return in the next packet. */
  due: Id64 | undefined
  #answered: Id64 | undefined
  /** The packet that returned it. */
  #answeredIn: PacketNumber = -1
  readonly #moves: Array<Id64> = []
  #movedAt: Micros = -Infinity
  #pause = firstPause

  /**
   * An answer that reports numbers up to `reported` carried CHALLENGE. True: it tells of a new IP, for the first time and
   * not too soon after another.
   */
  handleChallenge(now: Micros, token: Id64, ipChanged: boolean, reported: PacketNumber): boolean {
    if (token !== this.#answered || reported >= this.#answeredIn) this.due = token
    if (!ipChanged || this.#moves.includes(token) || now < this.#movedAt + this.#pause) return false
    this.#pause = now < this.#movedAt + this.#pause + calmTime ? Math.min(2 * this.#pause, longestPause) : firstPause
    this.#movedAt = now
    this.#moves.push(token)
    if (this.#moves.length > tokensKept) this.#moves.shift()
    return true
  }

  /** The packet with this number returns the token that was due. */
  handleSent(number: PacketNumber): void {
    this.#answered = this.due
    this.#answeredIn = number
    this.due = undefined
  }
}
