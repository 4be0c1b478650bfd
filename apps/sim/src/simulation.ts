import type { NodeCounters } from "@pure-link/link"
import type { Trace, TraceEvent } from "@pure-link/trace"
import { type Network, Sim, VirtualNetwork } from "@pure-link/virtual-net"
import { type Bytes, type Micros, never } from "@pure-link/wire"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Option from "effect/Option"
import * as References from "effect/References"
import type * as Scope from "effect/Scope"
import { Digest } from "./digest.ts"
import { Endpoints, sourceOf } from "./endpoints.ts"
import { feed } from "./feeder.ts"
import { FlowWatch } from "./flowWatch.ts"
import type { SimOptions } from "./options.ts"
import { Path } from "./path.ts"
import { StoreWatch } from "./storeWatch.ts"
import { TcpFlows } from "./tcpFlows.ts"
import { TimeSeries } from "./timeSeries.ts"
import { watchNetwork } from "./networkWatch.ts"

/**
 * One run: the path, the two ends and those who watch are put up under a simulated clock and scheduler, the feeders
 * start, and all ends when everything is stored or the time is over. Driver and machines are the production ones.
 */

/** Everything that was seen, for `summary.ts` to sum up. */
export interface Observation {
  readonly options: SimOptions
  readonly flows: ReadonlyArray<FlowWatch>
  readonly store: StoreWatch
  readonly tcp: TcpFlows
  readonly series: TimeSeries
  readonly digest: string
  readonly receiver: NodeCounters
  /** What the receiver held that was not in order yet: received before it was stored. */
  readonly heldBytes: { readonly atSkip: Bytes; readonly atEnd: Bytes }
  /** Whether all was stored in time; null when the run ends by time. */
  readonly complete: boolean | null
  /** When the run ended. */
  readonly end: Micros
  /** When datagrams above the path's new MTU began to vanish; never without a black hole. */
  readonly blackHoleAt: Micros
}

export interface Listeners {
  /** Every event of every node, for a trace file. */
  readonly event?: (node: string, event: TraceEvent) => void
  /** Virtual time passes. */
  readonly progress?: (at: Micros) => void
}

export const simulate = (options: SimOptions, listeners: Listeners = {}): Observation => {
  const network = VirtualNetwork.layer({ seed: options.seed })
  const program = Effect.scoped(Effect.provide(new Run(options, listeners).play, network))
  const quiet = Effect.provideService(program, References.MinimumLogLevel, "None")
  const exit = new Sim().run(quiet, { micros: options.end + 60_000_000 })
  if (Exit.isSuccess(exit)) return exit.value
  throw new Error(`the simulation failed: ${String(exit.cause)}`, { cause: exit.cause })
}

const progressEvery: Micros = 100_000

class Run {
  readonly #options: SimOptions
  readonly #listeners: Listeners
  readonly #digest = new Digest()
  readonly #series = new TimeSeries()
  readonly #flows: ReadonlyArray<FlowWatch>
  readonly #store: StoreWatch
  #blackHoleAt: Micros = never
  /** The ends are closed: what they say now is no part of the run. */
  #isOver = false

  constructor(options: SimOptions, listeners: Listeners) {
    this.#options = options
    this.#listeners = listeners
    this.#flows = Array.from({ length: options.flows }, (_, flow) => {
      const node = sourceOf(flow)
      return new FlowWatch(node, options, this.#digest, this.#series, (told) => this.#tell(node, told))
    })
    this.#store = new StoreWatch(
      this.#flows.map((_, flow) => sourceOf(flow)),
      options,
      this.#series
    )
  }

  readonly play: Effect.Effect<Observation, unknown, VirtualNetwork | Scope.Scope> = Effect.gen(
    { self: this },
    function* () {
      const options = this.#options
      const network = yield* VirtualNetwork
      const path = new Path(network, options)
      watchNetwork(network, this.#flows, this.#digest)
      this.#prepareBlackHole(network, path)
      const endpoints = new Endpoints(options)
      const receiver = yield* endpoints.openReceiver(this.#receiverTrace, this.#store)
      let heldAtSkip = 0
      network.at(options.skip, () => {
        heldAtSkip = receiver.heldBytes()
      })
      this.#showProgress(network)
      const tcp = new TcpFlows(network, options, this.#series)
      const complete = yield* this.#transfer(endpoints)
      const end = Math.min(network.now(), options.end)
      this.#isOver = true
      return {
        options,
        flows: this.#flows,
        store: this.#store,
        tcp,
        series: this.#series,
        digest: this.#digest.text,
        receiver: yield* receiver.node.counters,
        heldBytes: { atSkip: heldAtSkip, atEnd: receiver.heldBytes() },
        complete,
        end,
        blackHoleAt: this.#blackHoleAt
      }
    }
  )

  /** Opens and feeds all flows; whether all was stored in time, null if records have no end. */
  #transfer(endpoints: Endpoints): Effect.Effect<boolean | null, unknown, VirtualNetwork | Scope.Scope> {
    const { end, records } = this.#options
    return Effect.gen({ self: this }, function* () {
      const feeders: Array<Effect.Effect<unknown, unknown>> = []
      for (const [flow, watch] of this.#flows.entries()) {
        const { output } = yield* endpoints.openSender(flow, watch)
        const feeding = feed(output, this.#options, this.#store.flows[flow]!, (at) => watch.window.resume(at))
        feeders.push(Effect.andThen(feeding, output.drained))
      }
      const all = Effect.all(feeders, { concurrency: "unbounded", discard: true })
      const done = Option.isSome(yield* Effect.timeoutOption(all, end / 1_000))
      return records === Infinity ? null : done
    })
  }

  readonly #receiverTrace: Trace = {
    packets: true,
    emit: (event) => {
      this.#digest.addWord("receiver")
      this.#digest.addEvent(event)
      this.#tell("receiver", event)
    }
  }

  #tell(node: string, event: TraceEvent): void {
    if (!this.#isOver) this.#listeners.event?.(node, event)
  }

  #showProgress(network: Network): void {
    const { progress } = this.#listeners
    if (progress === undefined) return
    const show = (): void => {
      progress(network.now())
      network.at(network.now() + progressEvery, show)
    }
    show()
  }

  #prepareBlackHole(network: Network, path: Path): void {
    const { blackHole } = this.#options
    if (blackHole === undefined) return
    if (blackHole.at !== "growth") {
      this.#blackHoleAt = blackHole.at
      return
    }
    for (const flow of this.#flows) {
      flow.onGrowth = () => {
        if (this.#blackHoleAt !== never) return
        this.#blackHoleAt = network.now() + blackHole.after
        if (blackHole.after === 0) path.openBlackHole(blackHole.mtu)
        else network.at(this.#blackHoleAt, () => path.openBlackHole(blackHole.mtu))
      }
    }
  }
}
