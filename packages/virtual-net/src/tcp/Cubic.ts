import type { Micros } from "@pure-link/wire"
import { HyStart } from "./HyStart.ts"

/**
 * The window, in segments, as Linux's tcp_cubic.c moves it (RFC 9438 with Linux's constants and integer arithmetic):
 * C = 0.4, beta = 717/1024, fast convergence, and a Reno estimate of beta_scale 15/8. Time counts in jiffies of 1 ms.
 */

const initialWindow = 10
const beta = 717 / 1_024
/** Linux `beta_scale` / 8: acknowledged windows per segment that the Reno estimate gains. */
const renoScale = 15 / 8
/** C in segments per second cubed, as 410/1024. */
const steepness = 410 / 1_024
const jiffy: Micros = 1_000

export class Cubic {
  /** Segments (`snd_cwnd`). */
  window = initialWindow
  /** Slow start ends here (`snd_ssthresh`). */
  threshold = Number.POSITIVE_INFINITY
  readonly hyStart = new HyStart()
  /** Segments acknowledged towards the next growth (`snd_cwnd_cnt`). */
  #credit = 0
  /** So many acknowledged segments grow the window by one. */
  #perGrowth = 0
  #formerMaximum = 0
  #updatedWindow = 0
  #updatedAt = 0
  /**
   * The curve's beginning in jiffies, −1 when it is to begin anew; its plateau, and seconds from beginning to plateau.
   */
  #epochStart = -1
  #plateau = 0
  #secondsToPlateau = 0
  #acknowledged = 0
  #renoWindow = 0

  get inSlowStart(): boolean {
    return this.window < this.threshold
  }

  /** Slow start's exit, from round-trip times (`cubictcp_acked`); none right after a reduction. */
  noteRoundTrip(now: Micros, roundTrip: Micros, acknowledged: number, next: number): void {
    if (this.#epochStart >= 0 && jiffiesAt(now) - this.#epochStart < 1_000) return
    const found = this.hyStart.update(now, Math.max(1, roundTrip), acknowledged, next, this.window, this.inSlowStart)
    if (found) this.threshold = this.window
  }

  /** Linux `cubictcp_cong_avoid`, when the window was what limited the sender. */
  grow(now: Micros, delivered: number): void {
    let rest = delivered
    if (this.inSlowStart) {
      const grown = Math.min(this.window + delivered, this.threshold)
      rest -= grown - this.window
      this.window = grown
      if (rest === 0) return
    }
    this.#update(jiffiesAt(now), rest)
    this.#spend(rest)
  }

  /** The threshold that a congestion asks for (`cubictcp_recalc_ssthresh`); the window is PRR's. */
  reduce(): void {
    const window = this.window
    this.#epochStart = -1
    const converges = window < this.#formerMaximum
    this.#formerMaximum = converges ? Math.floor((window * (1 + beta)) / 2) : window
    this.threshold = Math.max(Math.floor(window * beta), 2)
  }

  forgetCredit(): void {
    this.#credit = 0
  }

  /** After a retransmission timeout nothing is known any more (`bictcp_reset`). */
  reset(now: Micros, next: number): void {
    this.#perGrowth = this.#formerMaximum = this.#updatedWindow = this.#updatedAt = 0
    this.#epochStart = -1
    this.#plateau = this.#secondsToPlateau = this.#acknowledged = this.#renoWindow = 0
    this.hyStart.reset(now, next)
  }

  /** Linux `bictcp_update`: the curve once per jiffy at most, and less often while the window stands. */
  #update(now: number, delivered: number): void {
    this.#acknowledged += delivered
    if (this.#updatedWindow === this.window && now - this.#updatedAt <= 31) return
    if (this.#epochStart < 0 || now !== this.#updatedAt) {
      this.#updatedWindow = this.window
      this.#updatedAt = now
      if (this.#epochStart < 0) this.#beginEpoch(now, delivered)
      this.#followCurve(now)
    }
    this.#followReno()
    this.#perGrowth = Math.max(this.#perGrowth, 2)
  }

  #beginEpoch(now: number, delivered: number): void {
    this.#epochStart = now
    this.#acknowledged = delivered
    this.#renoWindow = this.window
    const missing = Math.max(0, this.#formerMaximum - this.window)
    this.#secondsToPlateau = Math.cbrt(missing / steepness)
    this.#plateau = this.window + missing
  }

  /** Where the curve is one (minimal) round trip from now. */
  #followCurve(now: number): void {
    const seconds = (now - this.#epochStart + Math.floor(this.hyStart.leastDelay / jiffy)) / 1_000
    const distance = Math.abs(seconds - this.#secondsToPlateau)
    const difference = Math.floor(steepness * distance ** 3)
    const target = this.#plateau + (seconds < this.#secondsToPlateau ? -difference : difference)
    this.#perGrowth = target > this.window ? Math.floor(this.window / (target - this.window)) : 100 * this.window
    if (this.#formerMaximum === 0) this.#perGrowth = Math.min(this.#perGrowth, 20)
  }

  /** What Reno with this reduction would have, if that is more. */
  #followReno(): void {
    const perSegment = Math.floor(this.window * renoScale)
    const gained = Math.max(0, Math.ceil(this.#acknowledged / perSegment) - 1)
    this.#acknowledged -= gained * perSegment
    this.#renoWindow += gained
    if (this.#renoWindow <= this.window) return
    this.#perGrowth = Math.min(this.#perGrowth, Math.floor(this.window / (this.#renoWindow - this.window)))
  }

  /** Linux `tcp_cong_avoid_ai`. */
  #spend(delivered: number): void {
    const price = this.#perGrowth
    if (this.#credit >= price) {
      this.#credit = 0
      this.window++
    }
    this.#credit += delivered
    if (this.#credit < price) return
    const growth = Math.floor(this.#credit / price)
    this.#credit -= growth * price
    this.window += growth
  }
}

const jiffiesAt = (now: Micros): number => Math.floor(now / jiffy)
