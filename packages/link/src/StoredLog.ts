/**
 * How far an output is STORED, since when, and who waits for it. Appends leave nothing behind here: a receipt asks for
 * its number when somebody cares. Times of the newest advances are kept in a ring, so that a late question still gets
 * its answer.
 */
import type { Micros, RecordNumber } from "@pure-link/wire"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"

/** When a record was stored by the other node. */
export interface StoredAt {
  /** The last record number that was stored with it. */
  readonly through: RecordNumber
  /** Wall-clock time at which this node learnt it, in milliseconds since 1970. */
  readonly at: number
  /** The same moment on the node's monotonic clock, in microseconds. */
  readonly atMicros: Micros
}

interface Waiter<E> {
  readonly number: RecordNumber
  readonly deferred: Deferred.Deferred<StoredAt, E>
}

/** Advances kept: at ten a millisecond this reaches back 0.4 s; older records answer with the oldest kept. */
const keptAdvances = 4_096

export class StoredLog<E> {
  #through: RecordNumber
  /** Ring of advances, in order. */
  readonly #advances: Array<StoredAt> = []
  #oldest = 0
  /** One entry per number waited for, by rising number. */
  #waiters: Array<Waiter<E>> = []
  #failure: E | undefined

  /** `through`: what was stored before this life; its records count as stored at `openedAt`. */
  constructor(through: RecordNumber, openedAt: StoredAt) {
    this.#through = through
    this.#advances.push(openedAt)
  }

  get through(): RecordNumber {
    return this.#through
  }

  /** Everything up to `stored.through` is stored. Resumes waiters within the call. */
  advance(stored: StoredAt): void {
    if (stored.through <= this.#through) return
    this.#through = stored.through
    if (this.#advances.length < keptAdvances) this.#advances.push(stored)
    else {
      this.#advances[this.#oldest] = stored
      this.#oldest = (this.#oldest + 1) % keptAdvances
    }
    const count = this.#position(stored.through + 1)
    const done = this.#waiters.slice(0, count)
    this.#waiters = this.#waiters.slice(count)
    for (const waiter of done) Deferred.doneUnsafe(waiter.deferred, Effect.succeed(stored))
  }

  /** No more advances will come, for this reason: present and future waits fail with it. */
  fail(failure: E): void {
    if (this.#failure !== undefined) return
    this.#failure = failure
    const waiters = this.#waiters
    this.#waiters = []
    for (const waiter of waiters) Deferred.doneUnsafe(waiter.deferred, Effect.fail(failure))
  }

  /** Succeeds when record `number` is stored, with the time. */
  wait(number: RecordNumber): Effect.Effect<StoredAt, E> {
    return Effect.suspend(() => {
      if (number <= this.#through) return Effect.succeed(this.#when(number))
      if (this.#failure !== undefined) return Effect.fail(this.#failure)
      const index = this.#position(number)
      const found = this.#waiters[index]
      if (found?.number === number) return Deferred.await(found.deferred)
      const waiter = { number, deferred: Deferred.makeUnsafe<StoredAt, E>() }
      this.#waiters.splice(index, 0, waiter)
      return Deferred.await(waiter.deferred)
    })
  }

  /** The index of the first waiter at or above a number. */
  #position(number: RecordNumber): number {
    let low = 0
    let high = this.#waiters.length
    while (low < high) {
      const middle = (low + high) >>> 1
      if (this.#waiters[middle]!.number < number) low = middle + 1
      else high = middle
    }
    return low
  }

  /** The first kept advance that covers a number. */
  #when(number: RecordNumber): StoredAt {
    const size = this.#advances.length
    let low = 0
    let high = size - 1
    while (low < high) {
      const middle = (low + high) >>> 1
      if (this.#advances[(this.#oldest + middle) % size]!.through < number) low = middle + 1
      else high = middle
    }
    return this.#advances[(this.#oldest + low) % size]!
  }
}
