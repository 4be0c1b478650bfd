/** On a terminal, a line that says how far a long run has come. */
export class Progress {
  #shown = false
  #lastShown = 0
  readonly #started: number
  readonly #wallMillis: () => number

  constructor(wallMillis: () => number) {
    this.#wallMillis = wallMillis
    this.#started = wallMillis()
  }

  /** Virtual time passed. */
  show(seconds: number): void {
    const now = this.#wallMillis()
    if (!process.stderr.isTTY || now - this.#started < 2_000 || now - this.#lastShown < 250) return
    this.#lastShown = now
    this.#shown = true
    process.stderr.write(`\r${seconds.toFixed(1)} s of virtual time`)
  }

  clear(): void {
    if (this.#shown) process.stderr.write("\r\x1b[K")
  }
}
