/**
 * The receiving half without its types: joins the receiver machine and the inbox. The driver's turn notes what is to be
 * stored; one fiber commits all that waits in one transaction while the driver goes on answering (spec §10.5).
 */
import { formatPublicKey } from "@pure-link/keys"
import type { Inbox, StoreError } from "@pure-link/ports"
import type { Receiver, ReceiverEvent } from "@pure-link/receiver"
import { formatAddress, type Id64, type Micros, type StoreIntent } from "@pure-link/wire"
import * as Effect from "effect/Effect"
import * as Latch from "effect/Latch"
import type * as Scope from "effect/Scope"
import type { DrivenReceiver } from "./Driver.ts"
import type { NodeFailed, NodeSeam } from "./LinkNode.ts"
import { refusalRemedy } from "./OutputState.ts"

export class Intake implements DrivenReceiver {
  readonly machine: Receiver
  readonly inbox: Inbox["Service"]
  readonly #seam: NodeSeam
  /** Handed out by the machine and not taken by the committing fiber yet. */
  #waiting: Array<StoreIntent> = []
  readonly #latch = Latch.makeUnsafe(false)
  #storeFails = false
  /** The open inputs, and how many hold each open. */
  readonly #open = new Map<string, { readonly shape: Id64; readonly holders: number }>()
  /** Consumers that read just now, as `input\0consumer`. */
  readonly #consumers = new Set<string>()

  constructor(seam: NodeSeam, machine: Receiver, inbox: Inbox["Service"]) {
    this.#seam = seam
    this.machine = machine
    this.inbox = inbox
  }

  get counters(): Readonly<Record<string, number>> {
    const { dropped, ...counters } = this.machine.counters
    const drops = Object.entries(dropped).map(([reason, count]) => [`dropped: ${reason}`, count] as const)
    return { ...counters, ...Object.fromEntries(drops) }
  }

  /** Fails when the node has failed. */
  get failed(): Effect.Effect<never, NodeFailed> {
    return this.#seam.failed
  }

  /** Attaches the machine to the node and starts committing; both end with the scope. */
  readonly start: Effect.Effect<void, never, Scope.Scope> = Effect.gen({ self: this }, function* () {
    const { driver, guard, wake } = this.#seam
    yield* Effect.forkScoped(guard("writer of the inbox", this.#committing))
    if (this.inbox.ended) {
      yield* Effect.forkScoped(Effect.catch(this.inbox.ended, (error) => Effect.sync(() => this.#inboxEnded(error))))
    }
    yield* Effect.acquireRelease(
      Effect.sync(() => {
        driver.receiver = this
        wake()
      }),
      () =>
        Effect.sync(() => {
          if (driver.receiver === this) driver.receiver = undefined
        })
    )
  })

  /** Changes the machine from outside a turn, and lets it act. */
  change<A>(change: (machine: Receiver, now: Micros) => A): A {
    const result = change(this.machine, this.#seam.now())
    this.#seam.wake()
    return result
  }

  /** Declares an input once more; the machine hears of the first. False: it is open under another shape. */
  openInput(input: string, shape: Id64): boolean {
    const open = this.#open.get(input)
    if (open !== undefined && open.shape !== shape) return false
    this.#open.set(input, { shape, holders: (open?.holders ?? 0) + 1 })
    if (open === undefined) this.change((machine) => machine.addInput(input, shape))
    return true
  }

  closeInput(input: string): void {
    const { holders, shape } = this.#open.get(input)!
    if (holders > 1) return void this.#open.set(input, { shape, holders: holders - 1 })
    this.#open.delete(input)
    this.change((machine) => machine.removeInput(input))
  }

  /** Takes a consumer's name; false when somebody reads under it already. */
  takeConsumer(input: string, consumer: string): boolean {
    const key = `${input}\0${consumer}`
    if (this.#consumers.has(key)) return false
    this.#consumers.add(key)
    return true
  }

  releaseConsumer(input: string, consumer: string): void {
    this.#consumers.delete(`${input}\0${consumer}`)
  }

  collect(now: Micros): void {
    for (let intent = this.machine.pollStore(); intent; intent = this.machine.pollStore()) this.#waiting.push(intent)
    this.#collectEvents(now)
  }

  settle(now: Micros): void {
    this.#collectEvents(now)
    if (this.#waiting.length > 0) this.#latch.openUnsafe()
  }

  close(): void {
    this.#waiting = []
  }

  #collectEvents(now: Micros): void {
    for (let event = this.machine.pollEvent(); event; event = this.machine.pollEvent()) this.#note(event, now)
  }

  /** Commits whatever waits, again and again; the machine keeps what failed and hands it out again. */
  readonly #committing: Effect.Effect<never> = Effect.gen({ self: this }, function* () {
    for (;;) {
      yield* this.#latch.await
      this.#latch.closeUnsafe()
      const intents = this.#waiting
      if (intents.length === 0) continue
      this.#waiting = []
      const outcome = yield* Effect.result(this.inbox.commit(intents))
      const now = this.#seam.now()
      if (outcome._tag === "Success") {
        for (const [index, intent] of intents.entries()) this.machine.handleStored(now, intent, outcome.success[index]!)
      } else {
        for (const intent of intents) this.machine.handleStoreFailed(now, intent)
      }
      this.#reportStore(outcome._tag === "Success" ? undefined : outcome.failure.message, now)
      if (outcome._tag === "Failure" && outcome.failure.isFinal) this.#inboxEnded(outcome.failure)
      this.#seam.wake()
    }
  })

  /** What the memo on disk held is lost, or a part of it. */
  reportRebuilt(why: string): void {
    const message = `${why}; peers whose secrets are gone begin fresh runs, and no record is lost`
    this.#seam.journal.report({ _tag: "MemoRebuilt", at: this.#seam.now(), level: "warning", message })
  }

  /** A node that can store nothing any more is no receiver: it ends, so that its operator learns of it. */
  #inboxEnded(error: StoreError): void {
    this.#seam.fail(`the node has ended, because its inbox did: ${error.message}`)
  }

  /** One line when the inbox begins to fail and one when it works again, however often it is tried. */
  #reportStore(failure: string | undefined, at: Micros): void {
    if ((failure !== undefined) === this.#storeFails) return
    this.#storeFails = failure !== undefined
    const store = "inbox"
    const { journal } = this.#seam
    if (failure === undefined) {
      journal.report({ _tag: "StoreWorks", store, at, level: "info", message: "the inbox stores again" })
    } else {
      const message = `nothing is stored and senders wait: ${failure}`
      journal.report({ _tag: "StoreTrouble", store, at, level: "error", message })
    }
  }

  #note(event: ReceiverEvent, at: Micros): void {
    const { input, source } = event
    const stream = source === "" ? "a stream that is not named yet" : `"${source}" → "${input}"`
    const { journal } = this.#seam
    switch (event._tag) {
      case "RefusalBegan": {
        const { peer, reason } = event
        const message =
          `${stream} from ${formatPublicKey(peer)} is refused (reason ${reason}): ` + refusalRemedy(reason)
        return journal.report({ _tag: "InputRefused", source, input, reason, at, level: "warning", message })
      }
      case "RefusalEnded": {
        const message = `${stream} is accepted again, or ended`
        return journal.report({ _tag: "InputAccepted", source, input, at, level: "info", message })
      }
      case "RunLive":
        return this.#notice(event, "debug", `${stream} is live in a new run`)
      case "RunRestored":
        return this.#notice(event, "debug", `${stream} goes on in a run that the memo remembered`)
      case "LostSent": {
        const peer = formatPublicKey(event.peer)
        return this.#notice(event, "info", `${peer} was told that its run is lost here; it begins a fresh one`)
      }
      case "PathValidated": {
        const { address, peer } = event
        const message = `answers to ${formatPublicKey(peer)}, ${stream}, go to ${formatAddress(address)} from now on`
        return this.#notice(event, "debug", message)
      }
      case "MemoFailed": {
        const message =
          "the memo takes no more secrets (its disk fails, or it is full): nothing is lost, " +
          "but after a restart peers begin fresh runs; make room on its disk, or raise its capacity"
        return journal.report({ _tag: "MemoTrouble", at, level: "warning", message })
      }
      case "MemoWorks":
        return journal.report({ _tag: "MemoWorks", at, level: "info", message: "the memo takes secrets again" })
      case "RunEnded":
        return this.#notice(event, "debug", `a run of ${stream} ended: ${event.cause}`)
      case "GenerationReplaced":
        return this.#notice(event, "info", `${stream} goes on from a new outbox; the former is refused`)
      case "CursorChanged":
        return this.#notice(event, "warning", `${stream} stands elsewhere in the inbox than was known`)
      case "Violation": {
        const peer = formatPublicKey(event.peer)
        return this.#notice(event, "warning", `${peer} broke the protocol, without effect: ${event.detail}`)
      }
      case "StoreFailed":
      case "StoreRecovered":
        return // told once for all streams by #reportStore
    }
  }

  #notice(event: ReceiverEvent, level: "debug" | "info" | "warning", message: string): void {
    const { _tag: notice, at, input, source } = event
    this.#seam.journal.report({ _tag: "ReceiverNotice", notice, source, input, at, level, message })
  }
}
