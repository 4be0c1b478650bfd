/** A line on standard error now and then, that says how far a long run has come. */
export class Progress {
  readonly #name: string
  readonly #begun = performance.now()
  #shown = performance.now()

  constructor(name: string) {
    this.#name = name
  }

  show(text: () => string): void {
    const now = performance.now()
    if (now - this.#shown < everyMillis) return
    this.#shown = now
    process.stderr.write(`bench ${this.#name}: ${Math.round((now - this.#begun) / 1_000)} s, ${text()}\n`)
  }
}

const everyMillis = 10_000

/** 1234567 as 1,234,567. */
export const grouped = (count: number): string => Math.round(count).toLocaleString("en-US")
