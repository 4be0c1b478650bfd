/**
 * Random numbers that a seed and a name determine (sfc32, its state filled by an FNV-1a hash). Each link draws from its
 * own stream, so that traffic on one link never changes what befalls another.
 */
export class SeededStream {
  #a: number
  #b: number
  #c: number
  #counter = 1

  constructor(seed: number, name: string) {
    this.#a = hash(`${seed}/${name}/a`)
    this.#b = hash(`${seed}/${name}/b`)
    this.#c = hash(`${seed}/${name}/c`)
    for (let round = 0; round < 12; round++) this.next()
  }

  /** The next number in [0, 1). */
  next(): number {
    const sum = (this.#a + this.#b + this.#counter) | 0
    this.#counter = (this.#counter + 1) | 0
    this.#a = this.#b ^ (this.#b >>> 9)
    this.#b = (this.#c + (this.#c << 3)) | 0
    this.#c = (((this.#c << 21) | (this.#c >>> 11)) + sum) | 0
    return (sum >>> 0) / 2 ** 32
  }
}

const hash = (text: string): number => {
  let state = 0x811c9dc5
  for (let i = 0; i < text.length; i++) state = Math.imul(state ^ text.charCodeAt(i), 0x01000193)
  return state
}
