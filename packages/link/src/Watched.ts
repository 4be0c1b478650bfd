/**
 * A value that plain code sets and Effect code watches. A watcher sees the present value and then each newer one; a
 * slow one misses what was replaced meanwhile, never the newest.
 */
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"

export class Watched<A> {
  #value: A
  #version = 0
  #changed = Deferred.makeUnsafe<void>()

  constructor(value: A) {
    this.#value = value
  }

  get value(): A {
    return this.#value
  }

  /** Replaces the value and resumes the watchers within this call: never call it from the middle of a machine. */
  set(value: A): void {
    this.#value = value
    this.#version++
    const changed = this.#changed
    this.#changed = Deferred.makeUnsafe()
    Deferred.doneUnsafe(changed, Effect.void)
  }

  /** Emits the present value and every newer one. */
  readonly changes: Stream.Stream<A> = Stream.fromPull(
    Effect.sync(() => {
      let seen = -1
      const next: Effect.Effect<readonly [A]> = Effect.suspend(() => {
        if (seen === this.#version) return Effect.andThen(Deferred.await(this.#changed), next)
        seen = this.#version
        return Effect.succeed([this.#value] as const)
      })
      return next
    })
  )
}
