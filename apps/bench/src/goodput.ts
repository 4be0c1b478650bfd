import type { Bytes } from "@pure-link/wire"
import { rounded } from "./verdict.ts"

/**
 * What arrived when: over the whole time from the first record to the last, after the first seconds, and second by second.
 */

export interface Goodput {
  readonly messages: number
  readonly bytes: Bytes
  readonly seconds: number
  readonly mbit_s: number
}

const megabits = (bytes: Bytes, seconds: number): number => (seconds > 0 ? rounded((bytes * 8) / seconds / 1e6, 4) : 0)

export class Arrivals {
  messages = 0
  bytes: Bytes = 0
  readonly #skipMillis: number
  #first = Number.NaN
  #last = Number.NaN
  #skipped = { messages: 0, bytes: 0 }
  readonly #perSecond: Array<{ messages: number; bytes: Bytes }> = []

  constructor(skipSeconds: number) {
    this.#skipMillis = skipSeconds * 1_000
  }

  get hasBegun(): boolean {
    return this.messages > 0
  }

  add(now: number, messages: number, bytes: Bytes): void {
    if (!this.hasBegun) this.#first = now
    this.#last = now
    this.messages += messages
    this.bytes += bytes
    const since = now - this.#first
    if (since < this.#skipMillis) {
      this.#skipped.messages += messages
      this.#skipped.bytes += bytes
    }
    const second = Math.floor(since / 1_000)
    while (this.#perSecond.length <= second) this.#perSecond.push({ messages: 0, bytes: 0 })
    const current = this.#perSecond[second]!
    current.messages += messages
    current.bytes += bytes
  }

  get whole(): Goodput {
    const seconds = this.hasBegun ? (this.#last - this.#first) / 1_000 : 0
    return {
      messages: this.messages,
      bytes: this.bytes,
      seconds: rounded(seconds, 4),
      mbit_s: megabits(this.bytes, seconds)
    }
  }

  /** Without the first seconds; undefined when it ended before they were over. */
  get afterSkip(): Goodput | undefined {
    const seconds = (this.#last - this.#first - this.#skipMillis) / 1_000
    if (!(seconds > 0)) return undefined
    const bytes = this.bytes - this.#skipped.bytes
    const messages = this.messages - this.#skipped.messages
    return { messages, bytes, seconds: rounded(seconds, 4), mbit_s: megabits(bytes, seconds) }
  }

  /** Each second from the first record on. */
  get series(): ReadonlyArray<{ readonly messages: number; readonly mbit_s: number }> {
    return this.#perSecond.map(({ bytes, messages }) => ({ messages, mbit_s: megabits(bytes, 1) }))
  }
}
