import * as Effect from "effect/Effect"
import * as Latch from "effect/Latch"

/** SIGINT and SIGTERM as an Effect: the first asks to end, the second ends at once. */
export class Interrupts {
  readonly #latch = Latch.makeUnsafe(false)
  count = 0

  constructor() {
    process.on("SIGINT", this.#hear)
    process.on("SIGTERM", this.#hear)
  }

  /** Succeeds when the process was asked to end. */
  get requested(): Effect.Effect<void> {
    return Effect.asVoid(this.#latch.await)
  }

  close(): void {
    process.off("SIGINT", this.#hear)
    process.off("SIGTERM", this.#hear)
  }

  readonly #hear = (): void => {
    if (++this.count > 1) process.exit(130)
    this.#latch.openUnsafe()
  }
}
