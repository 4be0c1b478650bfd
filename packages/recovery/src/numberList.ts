/**
 * A list of numbers that is emptied and filled again for every answer: it grows to what one answer needs and then
 * allocates nothing. Read `values[0 … length)`.
 */
export class NumberList {
  values = new Float64Array(64)
  length = 0

  push(value: number): void {
    if (this.length === this.values.length) this.#grow()
    this.values[this.length++] = value
  }

  clear(): void {
    this.length = 0
  }

  #grow(): void {
    const larger = new Float64Array(this.values.length * 2)
    larger.set(this.values)
    this.values = larger
  }
}
