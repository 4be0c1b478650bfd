import { StoreError } from "@pure-link/ports"
import * as Effect from "effect/Effect"

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
  #places: Array<Place<Item, A>> = []
  #closed = false

  /** `changed` is called when a call joins or leaves the line. */
  constructor(file: string, changed: () => void) {
    this.#file = file
    this.#changed = changed
  }

  /** Joins the line, and waits until the call is settled. */
  join(item: Item): Effect.Effect<A, StoreError> {
    return Effect.callback<A, StoreError>((resume) => {
      if (this.#closed) return resume(Effect.fail(this.closedError()))
      let ended: (() => void) | undefined
      const place: Place<Item, A> = {
        item,
        state: "waiting",
        settle: (result) => {
          place.state = "ended"
          resume(result)
          ended?.()
        }
      }
      this.#places.push(place)
      this.#changed()
      return Effect.callback<void>((leave) => {
        if (place.state === "taken") {
          ended = () => leave(Effect.void)
          return
        }
        if (place.state === "waiting") {
          this.#places = this.#places.filter((other) => other !== place)
          this.#changed()
        }
        leave(Effect.void)
      })
    })
  }

  /** The call whose turn is next. */
  get next(): Item | undefined {
    return this.#places[0]?.item
  }

  /** Takes calls from the front while `wanted` says so. */
  take(wanted: (item: Item) => boolean): Array<Ticket<Item, A>> {
    let count = 0
    while (count < this.#places.length && wanted(this.#places[count]!.item)) this.#places[count++]!.state = "taken"
    return this.#places.splice(0, count)
  }

  /** Ends the line: who waits, and who comes later, fails. */
  close(): void {
    this.#closed = true
    for (const place of this.#places.splice(0)) place.settle(Effect.fail(this.closedError()))
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
