/**
 * A fast 64-bit fingerprint of a row of numbers and words: two 32-bit lanes in the manner of MurmurHash3, over the bits
 * of each number. It tells runs apart; it keeps no secret.
 */
export class Digest {
  #first = 0x9747b28c | 0
  #second = 0x3c6ef372 | 0
  readonly #number = new Float64Array(1)
  readonly #halves = new Uint32Array(this.#number.buffer)
  readonly #words = new Map<string, number>()

  add(value: number): void {
    this.#number[0] = value
    this.#mix(this.#halves[0]!)
    this.#mix(this.#halves[1]!)
  }

  /** 32 bits as they are. */
  addWord32(word: number): void {
    this.#mix(word)
  }

  /** A word of a small vocabulary, remembered by its own hash. */
  addWord(word: string): void {
    let hash = this.#words.get(word)
    if (hash === undefined) {
      hash = 0x811c9dc5 | 0
      for (let i = 0; i < word.length; i++) hash = Math.imul(hash ^ word.charCodeAt(i), 0x01000193)
      this.#words.set(word, hash)
    }
    this.#mix(hash)
  }

  /** Every field of an event, in its order: numbers, booleans, words and 64-bit ids. Throws on any other. */
  addEvent(event: object): void {
    for (const key in event) {
      const value = (event as Record<string, unknown>)[key]
      if (typeof value === "number") this.add(value)
      else if (typeof value === "string") this.addWord(value)
      else if (typeof value === "boolean") this.#mix(value ? 1 : 2)
      else if (typeof value === "bigint") {
        this.#mix(Number(value & 0xffffffffn))
        this.#mix(Number((value >> 32n) & 0xffffffffn))
      } else throw new TypeError(`the digest cannot take in ${key}: ${String(value)}`)
    }
  }

  /** Sixteen hexadecimal digits. */
  get text(): string {
    const first = finish(this.#first)
    const second = finish(this.#second ^ this.#first)
    return `${hex(first)}${hex(second)}`
  }

  #mix(word: number): void {
    const a = Math.imul(word, 0xcc9e2d51)
    const first = this.#first ^ Math.imul((a << 15) | (a >>> 17), 0x1b873593)
    this.#first = (Math.imul((first << 13) | (first >>> 19), 5) + 0xe6546b64) | 0
    const b = Math.imul(word, 0x239b961b)
    const second = this.#second ^ Math.imul((b << 16) | (b >>> 16), 0xab0e9789)
    this.#second = (Math.imul((second << 17) | (second >>> 15), 5) + 0x38b34ae5) | 0
  }
}

const finish = (state: number): number => {
  let hash = Math.imul(state ^ (state >>> 16), 0x85ebca6b)
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35)
  return (hash ^ (hash >>> 16)) >>> 0
}

const hex = (word: number): string => word.toString(16).padStart(8, "0")
