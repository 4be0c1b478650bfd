/**
 * An output without its types: joins a sender machine, its outbox and those who wait. Plain calls from the driver's
 * turn note what is to be done; fibers of the output do what takes time: read the outbox, remove what is STORED (spec
 * §9.1, §9.4).
 */
import type { Outbox, StoreError, StoreFailure } from "@pure-link/ports"
import type { SenderEvent, SenderLink } from "@pure-link/sender"
import {
  type Address,
  formatAddress,
  type Micros,
  type RecordBatch,
  type RecordNumber,
  type RefusalReason,
  sameAddress,
  type StreamName
} from "@pure-link/wire"
import * as Effect from "effect/Effect"
import * as Latch from "effect/Latch"
import type * as Scope from "effect/Scope"
import type { DrivenSender } from "./Driver.ts"
import type { NodeSeam } from "./LinkNode.ts"
import { ForkedOutbox, OutputClosed, type OutputState, refusalRemedy, silenceRemedy } from "./OutputState.ts"
import { StoredLog } from "./StoredLog.ts"
import type { RecordBytes } from "./StreamType.ts"
import { Watched } from "./Watched.ts"

/** Why nothing more will become STORED in this life of the output. */
export type OutputEnded = ForkedOutbox | OutputClosed | StoreError

/** What a sender machine asks the outbox for. */
type Wanted = NonNullable<ReturnType<SenderLink["wanted"]>>

/** A read that failed for these reasons fails for ever. */
const endsReading: ReadonlySet<StoreFailure> = new Set(["unreadable", "version"])

/** STORED records wait this long for others before they leave the outbox, so that one transaction removes many. */
const removalLinger = 10
/** A store that failed is tried again after this, in milliseconds. */
const storeRetry = 1_000

export class OutputLink implements DrivenSender {
  readonly name: StreamName
  readonly machine: SenderLink
  readonly state: Watched<OutputState>
  readonly stored: StoredLog<OutputEnded>
  readonly #seam: NodeSeam
  readonly #outbox: Outbox["Service"]
  readonly #wallClock: () => number
  readonly #keys: { readonly peer: string; readonly own: string }
  /** Where datagrams go; undefined until the peer's address is found. */
  destination: Address | undefined
  #unresolved: string | undefined
  /** The application chose the address: what a look-up finds does not matter any more. */
  isRedirected = false
  #refused: RefusalReason | undefined
  #silentSince: Micros | undefined
  #behind: RecordNumber | undefined
  #forked: ForkedOutbox | undefined
  /** Why the outbox cannot be used any more, and the record up to which the output still brings what it has read. */
  #broken: { readonly error: StoreError; readonly through: RecordNumber } | undefined
  #closed = false
  /** Batches just appended that the machine was not told of, because an earlier one is not through yet. */
  readonly #fresh = new Map<RecordNumber, RecordBatch>()
  /** The last record number that the machine was told of. */
  #told: RecordNumber
  #storedThrough: RecordNumber
  #storedAtMicros: Micros = 0
  #removedThrough: RecordNumber
  #request: Wanted | undefined
  readonly #readLatch = Latch.makeUnsafe(false)
  readonly #removeLatch = Latch.makeUnsafe(false)
  /** Opened when the peer has been silent, so that its address is looked up again. */
  readonly silence = Latch.makeUnsafe(false)

  constructor(options: {
    readonly seam: NodeSeam
    readonly machine: SenderLink
    readonly outbox: Outbox["Service"]
    readonly wallClock: () => number
    readonly keys: { readonly peer: string; readonly own: string }
  }) {
    this.#seam = options.seam
    this.machine = options.machine
    this.#outbox = options.outbox
    this.#wallClock = options.wallClock
    this.#keys = options.keys
    this.name = { source: options.outbox.stream.source, input: options.outbox.stream.input }
    const { last, lowestHeld } = options.outbox.state()
    this.#told = last
    this.#storedThrough = this.#removedThrough = lowestHeld - 1
    const opened = { through: this.#storedThrough, at: options.wallClock(), atMicros: options.seam.now() }
    this.stored = new StoredLog(this.#storedThrough, opened)
    this.state = new Watched(this.#presentState())
  }

  get counters(): Readonly<Record<string, number>> {
    const { counters, recoveryCounters } = this.machine
    const ofRecovery = Object.entries(recoveryCounters).map(([name, count]) => [inRecovery(name), count])
    return { ...counters, ...Object.fromEntries(ofRecovery) }
  }

  /** Whether the peer has not answered for long (spec §9.9). */
  get isSilent(): boolean {
    return this.#silentSince !== undefined
  }

  /** The error that ended sending for good, if one did. */
  get ended(): OutputEnded | undefined {
    return this.#forked ?? this.#broken?.error ?? (this.#closed ? new OutputClosed(this.name) : undefined)
  }

  /** The fibers that do what takes time; they end with the scope, and what is STORED leaves the outbox at last. */
  readonly start: Effect.Effect<void, never, Scope.Scope> = Effect.gen({ self: this }, function* () {
    yield* Effect.addFinalizer(() => Effect.ignore(this.#removeStored))
    const { guard } = this.#seam
    yield* Effect.forkScoped(guard("reader of an outbox", this.#reading))
    yield* Effect.forkScoped(guard("cleaner of an outbox", this.#removing))
    if (this.#outbox.ended) {
      yield* Effect.forkScoped(Effect.catch(this.#outbox.ended, (error) => Effect.sync(() => this.#break(error, 0))))
    }
    yield* Effect.acquireRelease(
      Effect.sync(() => this.#seam.driver.addSender(this)),
      () =>
        Effect.sync(() => {
          this.#seam.driver.removeSender(this)
          this.close()
        })
    )
    this.#seam.wake()
  })

  /**
   * An append came to its end: with its batch, when it is durable; without, when it failed or was interrupted, which
   * may be after it became durable. Idempotent: the outbox knows what it holds.
   */
  appended(first: RecordNumber | undefined, records: RecordBytes): void {
    const { last, lives } = this.#outbox.state()
    if (this.#closed) return
    if (first !== undefined && first > this.#told && records.sizes.length > 0)
      this.#fresh.set(first, { first, ...records })
    const contiguous = first === undefined ? last : this.#contiguousEnd()
    if (contiguous <= this.#told) return
    this.#told = contiguous
    const hadWaiting = this.machine.hasWaiting
    this.machine.handleAppended(this.#seam.now(), contiguous, lives)
    this.#supply(this.#seam.now())
    for (const [number] of this.#fresh) if (number <= this.#told) this.#fresh.delete(number)
    if (this.state.value._tag === "Idle") this.state.set(this.#presentState())
    if (!hadWaiting) this.#seam.wake()
  }

  /**
   * The end of the batches at hand that follow what the machine knows: appends of one commit may come through in any
   * order.
   */
  #contiguousEnd(): RecordNumber {
    let end = this.#told
    for (let batch = this.#fresh.get(end + 1); batch; batch = this.#fresh.get(end + 1)) end += batch.sizes.length
    return end
  }

  /**
   * Gives the machine the records it wants: those at hand without reading them again, others through the reading fiber.
   */
  #supply(now: Micros): void {
    while (this.#request === undefined) {
      const wanted = this.machine.wanted()
      if (wanted === undefined) return
      const batch = this.#fresh.get(wanted.from)
      if (batch === undefined) {
        this.#request = wanted
        return
      }
      this.machine.supply(now, headOf(batch, wanted))
    }
  }

  collect(now: Micros): void {
    for (let event = this.machine.pollEvent(); event; event = this.machine.pollEvent()) this.#note(event, now)
    this.#supply(now)
  }

  settle(now: Micros): void {
    for (let event = this.machine.pollEvent(); event; event = this.machine.pollEvent()) this.#note(event, now)
    if (this.#request !== undefined) this.#readLatch.openUnsafe()
    this.#refreshState()
    if (this.#storedThrough > this.stored.through) {
      this.#removeLatch.openUnsafe()
      this.stored.advance({ through: this.#storedThrough, at: this.#wallClock(), atMicros: this.#storedAtMicros })
    }
    if (this.#forked) this.stored.fail(this.#forked)
    this.#endIfBroken()
    if (this.#silentSince !== undefined) this.silence.openUnsafe()
  }

  close(): void {
    if (this.#closed) return
    this.#closed = true
    this.stored.fail(this.#forked ?? this.#broken?.error ?? new OutputClosed(this.name))
  }

  /**
   * The outbox cannot be used any more. What was read of it goes on up to a record, since only its delivery can take it
   * out of the way; then nothing more can become STORED in this life.
   */
  #break(error: StoreError, through: RecordNumber): void {
    if (this.#closed || (this.#broken !== undefined && this.#broken.through <= through)) return
    const isNew = this.#broken === undefined
    this.#broken = { error, through }
    if (isNew) {
      const message = `"${this.name.source}" → "${this.name.input}" ends, because its outbox failed: ${error.message}`
      this.#seam.journal.report({ ...this.name, _tag: "OutputFailed", at: this.#seam.now(), level: "error", message })
    }
    this.#refreshState()
    this.#endIfBroken()
  }

  #endIfBroken(): void {
    if (this.#broken === undefined || this.#storedThrough < this.#broken.through) return
    this.#seam.driver.removeSender(this)
    this.close()
  }

  /** The peer's address was found: one line, and the path starts again, if it is another than before. */
  resolved(address: Address): void {
    if (this.isRedirected) return
    this.#moveTo(address, "AddressFound")
  }

  /** The application knows another address. */
  redirect(address: Address): void {
    this.isRedirected = true
    this.#moveTo(address, "OutputRedirected")
  }

  #moveTo(address: Address, event: "AddressFound" | "OutputRedirected"): void {
    const former = this.destination
    this.#unresolved = undefined
    if (former === undefined || !sameAddress(former, address)) {
      this.destination = address
      const from = former ? `, no longer to ${formatAddress(former)}` : ""
      const message = `"${this.name.source}" → "${this.name.input}" goes to ${formatAddress(address)}${from}`
      const at = this.#seam.now()
      this.#seam.journal.report({ ...this.name, _tag: event, at, level: "info", message, address })
      if (former) this.machine.handlePathChanged(at)
      this.#seam.wake()
    }
    this.#refreshState()
  }

  /** The peer's address could not be found. */
  unresolved(detail: string): void {
    if (this.destination !== undefined) return
    this.#unresolved = detail
    this.#refreshState()
  }

  #note(event: SenderEvent, now: Micros): void {
    const told = { ...this.name, at: now }
    const stream = `"${this.name.source}" → "${this.name.input}"`
    const report = this.#seam.journal
    switch (event._tag) {
      case "Stored":
        this.#storedThrough = Math.max(this.#storedThrough, event.n)
        this.#storedAtMicros = event.at
        this.#behind = undefined
        return
      case "Refused": {
        this.#refused = event.reason
        const message = `${stream} is refused (reason ${event.reason}): ${refusalRemedy(event.reason)}`
        return report.report({ ...told, _tag: "OutputRefused", reason: event.reason, level: "warning", message })
      }
      case "RefusalEnded":
        this.#refused = undefined
        return report.report({ ...told, _tag: "OutputAccepted", level: "info", message: `${stream} is accepted again` })
      case "Silent": {
        this.#silentSince = event.sinceMicros
        const message = `${stream}: ${silenceRemedy(this.#keys.peer, this.destination, this.#keys.own)}`
        return report.report({ ...told, _tag: "OutputSilent", level: "warning", message })
      }
      case "SilenceEnded":
        this.#silentSince = undefined
        return report.report({ ...told, _tag: "OutputAnswered", level: "info", message: `${stream} is answered again` })
      case "Forked": {
        this.#forked = new ForkedOutbox({ ...this.name, n: event.n, detail: event.detail })
        return report.report({ ...told, _tag: "OutputForked", level: "error", message: this.#forked.message })
      }
      case "InboxBehind": {
        this.#behind = event.n
        const message = `${stream}: the receiver's inbox is behind at ${event.n}: ${refusalRemedy(5)}`
        return report.report({ ...told, _tag: "InboxBehind", level: "error", message })
      }
      case "ReplyRunsFlapping": {
        const message = `${stream} is answered by two receivers in turn: let one node alone use key ${this.#keys.peer}`
        return report.report({ ...told, _tag: "TwoReceivers", level: "error", message })
      }
      case "RunLost": {
        const how = event.withRecords ? "sends again what is not stored" : "waits for its first answer before it sends"
        const message = `${stream}: the receiver has lost the run, as after a restart; a fresh one begins and ${how}`
        return report.report({ ...told, _tag: "RunLost", level: "info", message })
      }
      case "PathChanged": {
        const message = `${stream}: the path is another one; what was learned of the former is forgotten`
        return report.report({ ...told, _tag: "PathChanged", level: "info", message })
      }
      case "EpochAdvanced": {
        const { epoch } = event
        const message = `${stream} goes on under the secrets of epoch ${epoch}`
        return report.report({ ...told, _tag: "EpochAdvanced", epoch, level: "debug", message })
      }
      case "SilentRecovery": {
        const message = `${stream}: the receiver seems to have forgotten the run; a new epoch is offered`
        return report.report({ ...told, _tag: "SilentRecovery", level: "info", message })
      }
    }
  }

  #refreshState(): void {
    const next = this.#presentState()
    if (!sameState(next, this.state.value)) this.state.set(next)
  }

  #presentState(): OutputState {
    if (this.#forked) return { _tag: "Forked", error: this.#forked }
    if (this.#broken) return { _tag: "Failed", error: this.#broken.error, remedy: this.#broken.error.message }
    if (this.#behind !== undefined) return { _tag: "InboxBehind", n: this.#behind, remedy: refusalRemedy(5) }
    if (this.#silentSince !== undefined) {
      const remedy = silenceRemedy(this.#keys.peer, this.destination, this.#keys.own)
      return { _tag: "Silent", since: this.#silentSince, remedy }
    }
    const reason = this.#refused
    if (reason !== undefined) return { _tag: "Refused", reason, remedy: refusalRemedy(reason) }
    if (this.#unresolved !== undefined) return { _tag: "Resolving", detail: this.#unresolved }
    return { _tag: this.#storedThrough >= this.#told ? "Idle" : "Sending" }
  }

  /** Reads what the machine wants and the last append did not bring. */
  readonly #reading: Effect.Effect<never> = Effect.gen({ self: this }, function* () {
    for (;;) {
      yield* this.#readLatch.await
      this.#readLatch.closeUnsafe()
      const wanted = this.#request
      if (wanted === undefined) continue
      const batch = yield* this.#read(wanted)
      if (batch === undefined) continue // the request stays open, so that the machine asks for nothing more
      this.#request = undefined
      this.machine.supply(this.#seam.now(), batch.first === wanted.from ? batch : nothingFrom(wanted.from))
      this.#seam.wake()
    }
  })

  /** Only what the machine was told of: the outbox may hold more by now. */
  #read(wanted: Wanted): Effect.Effect<RecordBatch | undefined> {
    if (this.#broken) return Effect.undefined
    const announced = this.#told - wanted.from + 1
    return this.#outbox.read(wanted.from, { records: Math.min(wanted.records, announced), bytes: wanted.bytes }).pipe(
      Effect.catch((error) => {
        if (error.isFinal || error.reason === "died") this.#break(error, 0)
        else if (endsReading.has(error.reason)) this.#break(error, wanted.from - 1)
        else {
          this.#reportStore(error.message)
          return Effect.succeed(nothingFrom(wanted.from))
        }
        return Effect.undefined
      }),
      // Whatever came of it, the same is not asked for again without a pause.
      Effect.tap((batch) => (batch?.sizes.length === 0 ? Effect.sleep(storeRetry) : Effect.void))
    )
  }

  /** Removes what is STORED, a group at a time. */
  readonly #removing: Effect.Effect<never> = Effect.gen({ self: this }, function* () {
    for (;;) {
      yield* this.#removeLatch.await
      yield* Effect.sleep(removalLinger)
      this.#removeLatch.closeUnsafe()
      const removed = yield* Effect.exit(this.#removeStored)
      if (removed._tag === "Failure") {
        this.#removeLatch.openUnsafe()
        yield* Effect.sleep(storeRetry)
      }
    }
  })

  readonly #removeStored = Effect.suspend(() => {
    const through = this.#storedThrough
    if (through <= this.#removedThrough || this.#forked) return Effect.void
    return this.#outbox.removeThrough(through).pipe(
      Effect.tap(
        Effect.sync(() => {
          this.#removedThrough = Math.max(this.#removedThrough, through)
        })
      ),
      Effect.tapError((error) =>
        Effect.sync(() => (error.isFinal ? this.#break(error, 0) : this.#reportStore(error.message)))
      )
    )
  })

  #reportStore(detail: string): void {
    const at = this.#seam.now()
    this.#seam.journal.report({ _tag: "StoreTrouble", store: "outbox", at, level: "error", message: detail })
  }
}

/** `lost` counts as `recoveryLost` among the counters of an output. */
const inRecovery = (name: string): string => `recovery${name[0]!.toUpperCase()}${name.slice(1)}`

const nothingFrom = (first: RecordNumber): RecordBatch => ({
  first,
  bytes: new Uint8Array(0),
  sizes: new Uint32Array(0)
})

/** The first records of a batch, at least one, while they fit what is wanted. */
const headOf = (batch: RecordBatch, wanted: Wanted): RecordBatch => {
  if (batch.sizes.length <= wanted.records && batch.bytes.length <= wanted.bytes) return batch
  let bytes = 0
  let records = 0
  while (records < batch.sizes.length) {
    const size = batch.sizes[records]!
    if (records > 0 && (records >= wanted.records || bytes + size > wanted.bytes)) break
    bytes += size
    records++
  }
  if (records === batch.sizes.length) return batch
  return { first: batch.first, bytes: batch.bytes.subarray(0, bytes), sizes: batch.sizes.subarray(0, records) }
}

const sameState = (a: OutputState, b: OutputState): boolean => {
  if (a._tag !== b._tag) return false
  if (a._tag === "Refused" && b._tag === "Refused") return a.reason === b.reason
  if (a._tag === "Silent" && b._tag === "Silent") return a.since === b.since
  if (a._tag === "InboxBehind" && b._tag === "InboxBehind") return a.n === b.n
  if (a._tag === "Resolving" && b._tag === "Resolving") return a.detail === b.detail
  return true
}
