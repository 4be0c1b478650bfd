import {
  type Id64,
  type Life,
  livesInStream,
  type PacketNumber,
  type RecordNumber,
  type StreamFrame,
  type StreamName
} from "@pure-link/wire"

/**
 * The STREAM frame of a run, and whether the receiver is known to have it (spec §8.1, §8.2). Its content changes when
 * a life is listed that was not; a higher lowest number or a life that dropped out of the front is news to nobody.
 */
export class StreamNotice {
  /** Whether a packet that carried the present content was answered in the current reply run. */
  answered = false
  readonly base: RecordNumber
  /** Records up to here are of listed lives. */
  lastListed: RecordNumber = Number.MAX_SAFE_INTEGER

  readonly #stream: StreamName & { readonly shape: Id64 }
  readonly #generation: Id64
  #lives: ReadonlyArray<Life> = []
  /** Packets from this number on carry the present content if they carry STREAM. */
  #since: PacketNumber = 0

  constructor(stream: StreamName & { readonly shape: Id64 }, generation: Id64, base: RecordNumber) {
    this.#stream = stream
    this.#generation = generation
    this.base = base
  }

  frame(lowestHeld: RecordNumber): StreamFrame {
    const { source, input, shape } = this.#stream
    return { lowestHeld, base: this.base, generation: this.#generation, shape, source, input, lives: this.#lives }
  }

  /** Lists at most 8 lives, from that of the first unstored record on. `next` is the number of the next packet. */
  list(lives: ReadonlyArray<Life>, firstUnstored: RecordNumber, next: PacketNumber): void {
    let from = lives.length - 1
    while (from > 0 && lives[from]!.first > firstUnstored) from--
    const listed = lives.slice(Math.max(from, 0), Math.max(from, 0) + livesInStream)
    const beyond = lives[Math.max(from, 0) + livesInStream]
    const known = this.#lives
    this.#lives = listed
    this.lastListed = beyond === undefined ? Number.MAX_SAFE_INTEGER : beyond.first - 1
    if (listed.some((entry) => !known.some((other) => other.life === entry.life))) this.unanswer(next)
  }

  /** From packet `next` on STREAM must be answered again. */
  unanswer(next: PacketNumber): void {
    this.answered = false
    this.#since = next
  }

  /** In a new reply run, an answered packet that carried the present content counts, whenever it was sent. */
  forgetAnswers(): void {
    this.answered = false
  }

  /** A packet that carried STREAM was answered. True: that answered the present content. */
  handleAnswered(number: PacketNumber): boolean {
    if (this.answered || number < this.#since) return false
    this.answered = true
    return true
  }
}
