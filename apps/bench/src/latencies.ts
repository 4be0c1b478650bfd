import { percentile, rounded } from "./verdict.ts"

/** Times from send to arrival, milliseconds, all kept. */
export class Latencies {
  #values = new Float64Array(1_024)
  #count = 0

  add(millis: number): void {
    if (this.#count === this.#values.length) {
      const larger = new Float64Array(this.#count * 2)
      larger.set(this.#values)
      this.#values = larger
    }
    this.#values[this.#count++] = millis
  }

  get summary(): { readonly p50_ms: number; readonly p99_ms: number; readonly max_ms: number } | undefined {
    if (this.#count === 0) return undefined
    const sorted = this.#values.subarray(0, this.#count).toSorted()
    return {
      p50_ms: rounded(percentile(sorted, 0.5), 3),
      p99_ms: rounded(percentile(sorted, 0.99), 3),
      max_ms: rounded(percentile(sorted, 1), 3)
    }
  }
}
