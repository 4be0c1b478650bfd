/**
 * The node's journal: machines' surroundings report events from plain code; one fiber logs each as one line and
 * publishes it.
 */
import * as Effect from "effect/Effect"
import * as Latch from "effect/Latch"
import * as PubSub from "effect/PubSub"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import type { LinkEvent } from "./LinkEvent.ts"

/** Events that a slow reader may lag behind, and that wait for the journal's fiber. */
const keptEvents = 256

export class Journal {
  /** Events so far, by name. */
  readonly counts: Record<string, number> = {}
  readonly #hub: PubSub.PubSub<LinkEvent>
  readonly #waiting: Array<LinkEvent> = []
  readonly #latch = Latch.makeUnsafe(false)

  constructor(hub: PubSub.PubSub<LinkEvent>) {
    this.#hub = hub
  }

  /** A journal whose fiber ends with the scope. */
  static readonly start: Effect.Effect<Journal, never, Scope.Scope> = Effect.gen(function* () {
    const journal = new Journal(yield* PubSub.sliding<LinkEvent>(keptEvents))
    yield* Effect.forkScoped(journal.#run)
    return journal
  })

  get events(): Stream.Stream<LinkEvent> {
    return Stream.fromPubSub(this.#hub)
  }

  /** Counts an event and queues it for log and readers; when too many wait the oldest is forgotten, though counted. */
  report(event: LinkEvent): void {
    this.counts[event._tag] = (this.counts[event._tag] ?? 0) + 1
    if (this.#waiting.length >= keptEvents) this.#waiting.shift()
    this.#waiting.push(event)
    this.#latch.openUnsafe()
  }

  readonly #run: Effect.Effect<never> = Effect.gen({ self: this }, function* () {
    for (;;) {
      yield* this.#latch.await
      yield* Effect.yieldNow
      this.#latch.closeUnsafe()
      for (const event of this.#waiting.splice(0)) {
        yield* log(event)
        yield* PubSub.publish(this.#hub, event)
      }
    }
  })
}

const loggers = { debug: Effect.logDebug, info: Effect.logInfo, warning: Effect.logWarning, error: Effect.logError }

const log = ({ _tag: event, level, message }: LinkEvent): Effect.Effect<void> =>
  Effect.annotateLogs(loggers[level](message), { event })
