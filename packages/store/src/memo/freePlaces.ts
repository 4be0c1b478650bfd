/**
 * The free places of a range, lowest first, so that a memo of few peers stays short. A place that could not be written
 * is tried again only when nothing else is left.
 */
export class FreePlaces {
  readonly #end: number
  /** From here on none was taken yet. */
  #untouched: number
  readonly #given: Array<number> = []
  readonly #spoiled: Array<number> = []

  constructor(first: number, count: number, taken: ReadonlyArray<number>) {
    this.#end = first + count
    const inRange = taken.filter((place) => place >= first && place < this.#end).toSorted((a, b) => a - b)
    this.#untouched = first
    for (const place of inRange) {
      while (this.#untouched < place) this.#given.push(this.#untouched++)
      this.#untouched = place + 1
    }
    this.#given.reverse() // the last is taken first
  }

  take(): number | undefined {
    return this.#given.pop() ?? (this.#untouched < this.#end ? this.#untouched++ : this.#spoiled.shift())
  }

  give(place: number): void {
    if (place < this.#end) this.#given.push(place)
  }

  /** Gives back a place that could not be written. */
  spoil(place: number): void {
    if (place < this.#end) this.#spoiled.push(place)
  }
}
