import { StoreError } from "@pure-link/ports"
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import type * as Latch from "effect/Latch"
import * as Option from "effect/Option"

/**
 * Calls that wait, first come first served, to become part of a transaction. A call may leave while it waits; once
 * taken it completes, and whoever interrupts it waits for that: nothing is half done and nothing done is unknown.
 */

/** A call that was taken out of the line. */
export interface Ticket<Item, A> {
  readonly item: Item
  readonly settle: (result: Effect.Effect<A, StoreError>) => void
}

interface Place<Item, A> extends Ticket<Item, A> {
  state: "waiting" | "taken" | "ended"
}

export class WaitingLine<Item, A> {
  readonly #file: string
  readonly #changed: () => void
  /** In order; one leaves without a look at the others. */
  readonly #places = new Set<Place<Item, A>>()
  readonly #taken = new Set<Place<Item, A>>()
  #isTurning = false
  /** Why the line is closed, once it is. */
  #closed: StoreError | undefined

  /** `changed` is called when a call joins or leaves the line. */
  constructor(file: string, changed: () => void) {
    this.#file = file
    this.#changed = changed
  }

  /** Joins the line, and waits until the call is settled. */
  join(item: Item): Effect.Effect<A, StoreError> {
    return Effect.callback<A, StoreError>((resume) => {
      if (this.#closed) return resume(Effect.fail(this.#closed))
      let ended: (() => void) | undefined
      const place: Place<Item, A> = {
        item,
        state: "waiting",
        settle: (result) => {
          place.state = "ended"
          this.#taken.delete(place)
          resume(result)
          ended?.()
        }
      }
      this.#places.add(place)
      this.#changed()
      return Effect.callback<void>((leave) => {
        if (place.state === "taken") {
          ended = () => leave(Effect.void)
          return
        }
        if (place.state === "waiting") {
          this.#places.delete(place)
          this.#changed()
        }
        leave(Effect.void)
      })
    })
  }

  /** Nobody waits, and no transaction is under way. */
  get isIdle(): boolean {
    return !this.#isTurning && this.#places.size === 0 && this.#taken.size === 0 && this.#closed === undefined
  }

  /** What takes effect without waiting: an error of the code is a typed one here, too. */
  atOnce<B>(act: () => B): Effect.Effect<B, StoreError> {
    try {
      return Effect.succeed(act())
    } catch (error) {
      return Effect.fail(this.#defectError(Cause.die(error), "it is not known what was written"))
    }
  }

  /** The call whose turn is next. */
  get next(): Item | undefined {
    for (const { item } of this.#places) return item
    return undefined
  }

  /** Takes calls from the front while `wanted` says so. */
  take(wanted: (item: Item) => boolean): Array<Ticket<Item, A>> {
    const taken: Array<Place<Item, A>> = []
    for (const place of this.#places) {
      if (!wanted(place.item)) break
      taken.push(place)
    }
    for (const place of taken) {
      this.#places.delete(place)
      place.state = "taken"
      this.#taken.add(place)
    }
    return taken
  }

  /** Ends the line: who waits or was taken, and who comes later, fails. */
  close(error: StoreError = this.closedError()): void {
    this.#closed ??= error
    const left = [...this.#taken, ...this.#places]
    this.#places.clear()
    for (const place of left) place.settle(Effect.fail(this.#closed))
  }

  /**
   * Takes turns for ever, whenever `wake` is open and until a turn finds nothing to do. However it ends, the line is
   * closed then, so that nobody waits for a turn that does not come.
   */
  run(wake: Latch.Latch, turn: Effect.Effect<boolean>): Effect.Effect<never> {
    const turns: Effect.Effect<never> = Effect.gen({ self: this }, function* () {
      for (;;) {
        yield* wake.await
        yield* Effect.yieldNow // whoever is ready to join shares this transaction
        wake.closeUnsafe()
        for (;;) {
          this.#isTurning = true
          const hasDone = yield* turn
          this.#isTurning = false
          if (!hasDone) break
          yield* Effect.yieldNow
        }
      }
    })
    return Effect.onError(turns, (cause) => Effect.sync(() => this.close(this.errorOf(cause))))
  }

  /** What a call is settled with whose transaction ended in this way: an error of the code is a typed one too. */
  errorOf(cause: Cause.Cause<StoreError>): StoreError {
    const failure = Cause.findErrorOption(cause)
    if (Option.isSome(failure)) return failure.value
    return Cause.hasInterruptsOnly(cause) ? this.closedError() : this.#defectError(cause, "nothing was written")
  }

  #defectError(cause: Cause.Cause<unknown>, outcome: string): StoreError {
    return new StoreError({
      reason: "failed",
      file: this.#file,
      detail: `${outcome} because of an error of Pure Link itself: ${Cause.pretty(cause)}`,
      remedy: "open the store again, and report it"
    })
  }

  closedError(): StoreError {
    return new StoreError({
      reason: "failed",
      file: this.#file,
      detail: "the store was closed before this was written",
      remedy: "open the store again"
    })
  }
}
