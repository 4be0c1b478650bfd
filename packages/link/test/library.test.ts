/**
 * The examples of docs/library.md are the files in `examples/`: this test holds both equal and runs every one of them.
 */
import { assert, describe, it } from "@effect/vitest"
import { keyPair, nodeSuite, seededEntropy } from "@pure-link/keys"
import { Input, Inputs, LinkNode, Output } from "@pure-link/link"
import { Entropy } from "@pure-link/ports"
import { Policies } from "@pure-link/recovery"
import { InboxMemory, OutboxMemory } from "@pure-link/store"
import { CryptographySystem, DatagramSocketSystem } from "@pure-link/udp"
import * as DateTime from "effect/DateTime"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Result from "effect/Result"
import * as Stream from "effect/Stream"
import { type ChildProcess, spawn } from "node:child_process"
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { DatabaseSync } from "node:sqlite"
import { report } from "../examples/append.ts"
import { consume } from "../examples/atLeastOnce.ts"
import { exportLines } from "../examples/batches.ts"
import { summarize } from "../examples/exactlyOnce.ts"
import { newKey } from "../examples/newKey.ts"
import { type Reading, readings } from "../examples/readings.ts"
import { alarms, relay } from "../examples/relay.ts"
import { forAlarms, forTrickles } from "../examples/policies.ts"
import { openOutput } from "../examples/severalOutputs.ts"
import { untilDrained } from "../examples/watch.ts"

const examples = join(import.meta.dirname, "../examples")
const document = readFileSync(join(import.meta.dirname, "../../../docs/library.md"), "utf8")

/** Code blocks that say which file they are: a comment line `<!-- packages/link/examples/x.ts -->` before them. */
const blocks = new Map(
  [...document.matchAll(/<!-- packages\/link\/examples\/(\S+) -->\n```ts\n([\s\S]*?)```/g)].map(([, file, code]) => [
    file!,
    code!
  ])
)

const [greenhouse, hub, station] = [1, 2, 3].map((seed) => keyPair(nodeSuite, seededEntropy(seed))) as [
  Keys,
  Keys,
  Keys
]
type Keys = ReturnType<typeof keyPair>

const system = Layer.mergeAll(
  CryptographySystem.layer,
  Entropy.layerSystem,
  DatagramSocketSystem.layer,
  Policies.layerDefault
)
const nodeOf = (identity: Keys) => LinkNode.layer({ identity, listen: { host: "127.0.0.1", port: 0 } })
const inputsFor = (sender: Keys) =>
  Inputs.layer({ peers: [{ publicKey: sender.publicKey, sources: "any" }] }).pipe(Layer.provide(InboxMemory.layer({})))
const outboxOf = (source: string) =>
  OutboxMemory.layer({ stream: { source, input: readings.input, shape: readings.shape } }).pipe(
    Layer.provide(Entropy.layerSystem)
  )

const reading = (index: number): Reading => ({
  sensor: `sensor-${index % 3}`,
  celsius: 35 + (index % 10),
  takenAt: DateTime.makeUnsafe(1_000_000 + index)
})
const batch = Array.from({ length: 200 }, (_, index) => reading(index))

/** Runs a program on a receiving hub, and beside it the sending example with the hub's address. */
const withHub = <A, E>(program: (send: Effect.Effect<number, unknown>) => Effect.Effect<A, E, LinkNode | Inputs>) =>
  Effect.gen(function* () {
    const node = yield* LinkNode
    const address = { host: "127.0.0.1", port: node.address.port }
    return yield* program(
      report({ publicKey: hub.publicKey, address }, batch).pipe(
        Effect.provide(Layer.mergeAll(outboxOf("greenhouse-3"), nodeOf(greenhouse).pipe(Layer.provide(system))))
      )
    )
  }).pipe(Effect.provide(inputsFor(greenhouse).pipe(Layer.provideMerge(nodeOf(hub)), Layer.provide(system))))

describe("docs/library.md", () => {
  it("shows every example as it is", () => {
    const files = readdirSync(examples)
    assert.deepStrictEqual([...blocks.keys()].toSorted(), files.toSorted())
    for (const file of files) assert.strictEqual(blocks.get(file), readFileSync(join(examples, file), "utf8"), file)
  })

  it.effect("exchanges policies one by one, over the defaults", () =>
    Effect.gen(function* () {
      const chosen = yield* Effect.provide(Policies.chosen, forTrickles)
      const controller = chosen.congestionControl.make({ datagramSize: 1_200, largestWindow: 1_000_000 })
      assert.deepStrictEqual([controller.name, chosen.lossDetection.make().name], ["two at once", "adaptive"])
      assert.strictEqual((yield* Effect.provide(Policies.chosen, forAlarms)).tailRedundancy.make().name, "once")
    })
  )

  it.live("appends and consumes at least once, over real UDP", () =>
    withHub((send) =>
      Effect.gen(function* () {
        const seen: Array<Reading> = []
        const all = yield* Deferred.make<void>()
        const consumer = yield* Effect.forkChild(
          consume((value) =>
            Effect.suspend(() => {
              if (seen.push(value) === batch.length) Deferred.doneUnsafe(all, Effect.void)
              return Effect.void
            })
          )
        )
        assert.strictEqual(yield* send, batch.length)
        yield* Deferred.await(all)
        yield* Fiber.interrupt(consumer)
        assert.deepStrictEqual(seen, batch)
      })
    )
  )

  it.live("counts every reading exactly once, killed and started again in between", () =>
    withHub((send) =>
      Effect.gen(function* () {
        const database = new DatabaseSync(":memory:")
        const total = () =>
          (database.prepare("SELECT ifnull(sum(readings), 0) AS total FROM sums").get() as { total: number }).total
        const first = yield* Effect.forkChild(summarize(database))
        yield* send
        while (total() < batch.length) yield* Effect.sleep(1)
        yield* Fiber.interrupt(first)
        const second = yield* Effect.forkChild(summarize(database))
        yield* Effect.sleep(20)
        yield* Fiber.interrupt(second)
        assert.strictEqual(total(), batch.length)
      })
    )
  )

  it.live("exports every reading once, in batches", () =>
    withHub((send) =>
      Effect.gen(function* () {
        const file = join(yield* temporaryFolder, "readings.jsonl")
        const lines = () => (existsSync(file) ? readFileSync(file, "utf8").split("\n").slice(0, -1) : [])
        const exporting = yield* Effect.forkChild(exportLines(file))
        yield* send
        while (lines().length < batch.length) yield* Effect.sleep(1)
        const input = yield* Input.open(readings)
        while ((yield* input.position("export")) < batch.length) yield* Effect.sleep(1)
        yield* Fiber.interrupt(exporting)
        assert.deepStrictEqual(
          lines().map((line) => Result.getOrThrow(readings.decode(Buffer.from(line)))),
          batch
        )
      }).pipe(Effect.scoped)
    )
  )

  it.live("runs as two whole programs, each with a key file, the peer's key and a store on disk", () =>
    Effect.gen(function* () {
      const folder = yield* temporaryFolder
      const [hubKey, greenhouseKey] = [newKey(join(folder, "hub.key")), newKey(join(folder, "greenhouse.key"))]
      const port = String(yield* freePort)
      const receiver = yield* startExample(folder, "receiver.ts", ["hub.key", greenhouseKey, port])
      const sender = ["greenhouse.key", hubKey, "127.0.0.1", port]
      for (const number of [1, 2]) {
        const { ended, output } = yield* startExample(folder, "sender.ts", sender)
        assert.strictEqual(yield* ended, 0, output())
        assert.include(output(), `everything up to ${number}`)
      }
      const shown = () => receiver.output().match(/greenhouse-3: 21.5 °C at sensor north/g)?.length ?? 0
      while (shown() < 2) yield* Effect.sleep(10)
      assert.strictEqual(shown(), 2, receiver.output())
    })
  )

  it.live("opens several outputs on one node, each with its own outbox, until the scope closes", () =>
    Effect.gen(function* () {
      const folder = yield* temporaryFolder
      const { address } = yield* LinkNode
      const peer = { publicKey: hub.publicKey, address: { host: "127.0.0.1", port: address.port } }
      const [inReadings, inAlarms] = [yield* Input.open(readings), yield* Input.open(alarms)]
      yield* Effect.gen(function* () {
        const options = { source: "greenhouse-3", peer }
        const first = yield* openOutput(readings, { ...options, file: join(folder, "readings.outbox") })
        const second = yield* openOutput(alarms, { ...options, file: join(folder, "alarms.outbox") })
        const receipts = [yield* first.appendAll(batch), yield* second.append({ sensor: "north", celsius: 41 })]
        for (const { last, stored } of receipts) assert.strictEqual((yield* stored).through, last)
      }).pipe(Effect.scoped, Effect.provide(nodeOf(greenhouse).pipe(Layer.provideMerge(system)), { local: true }))
      assert.deepStrictEqual([yield* inReadings.lastPosition, yield* inAlarms.lastPosition], [batch.length, 1])
    }).pipe(
      Effect.scoped,
      Effect.provide(inputsFor(greenhouse).pipe(Layer.provideMerge(nodeOf(hub)), Layer.provide(system)))
    )
  )

  it.live("relays in both roles on one socket, with stores on disk, and tells when it is drained", () =>
    Effect.gen(function* () {
      const folder = yield* temporaryFolder
      const port = yield* freePort
      const hot = batch.filter(({ celsius }) => celsius > 40)
      const arrived = yield* Effect.gen(function* () {
        const { address } = yield* LinkNode
        const input = yield* Input.open(alarms)
        const relaying = yield* Effect.forkChild(
          relay({
            identity: hub,
            folder,
            port,
            greenhouse: greenhouse.publicKey,
            station: { publicKey: station.publicKey, host: "127.0.0.1", port: address.port }
          })
        )
        yield* Effect.gen(function* () {
          const peer = { publicKey: hub.publicKey, address: { host: "127.0.0.1", port } }
          const output = yield* Output.open(readings, { source: "greenhouse-3", peer })
          yield* output.appendAll(batch)
          yield* untilDrained(output)
        }).pipe(
          Effect.scoped,
          Effect.provide(Layer.mergeAll(outboxOf("greenhouse-3"), nodeOf(greenhouse).pipe(Layer.provide(system))))
        )
        const records = yield* input.from(0).pipe(
          Stream.flatMap((chunk) => Stream.fromIterable(chunk.records)),
          Stream.take(hot.length),
          Stream.runCollect
        )
        yield* Fiber.interrupt(relaying)
        return records.map(({ value }) => value)
      }).pipe(
        Effect.scoped,
        Effect.provide(inputsFor(hub).pipe(Layer.provideMerge(nodeOf(station)), Layer.provide(system)))
      )
      assert.deepStrictEqual(
        arrived,
        hot.map(({ celsius, sensor }) => ({ sensor, celsius }))
      )
    })
  )
})

const temporaryFolder = Effect.acquireRelease(
  Effect.sync(() => mkdtempSync(join(tmpdir(), "pure-link-"))),
  (folder) => Effect.sync(() => rmSync(folder, { recursive: true }))
)

/** Starts an example as a process of its own, in a folder; it is killed when the scope ends. */
const startExample = (folder: string, file: string, parameters: ReadonlyArray<string>) =>
  Effect.map(
    Effect.acquireRelease(
      Effect.sync((): RunningExample => {
        const child = spawn(process.execPath, [join(examples, file), ...parameters], { cwd: folder })
        const ended = new Promise<number | null>((resolve) => {
          child.once("close", resolve)
        })
        let output = ""
        for (const stream of [child.stdout, child.stderr])
          stream.setEncoding("utf8").on("data", (text) => (output += text))
        return { child, ended, output: () => output }
      }),
      ({ child, ended }) =>
        Effect.promise(() => {
          child.kill("SIGKILL")
          return ended
        })
    ),
    ({ ended, output }) => ({ ended: Effect.promise(() => ended), output })
  )

interface RunningExample {
  readonly child: ChildProcess
  readonly ended: Promise<number | null>
  readonly output: () => string
}

/** A port that was free a moment ago. */
const freePort = Effect.map(LinkNode, ({ address }) => address.port).pipe(
  Effect.provide(nodeOf(hub).pipe(Layer.provide(system)), { local: true })
)
