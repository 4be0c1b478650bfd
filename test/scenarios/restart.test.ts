/**
 * SIGKILL of a receiver in the middle of a transfer, with and without its memo (spec §12.1–§12.3): how long until the
 * first answer with a raised n, and nothing lost, nothing twice. Real processes over a wire with a fixed delay; on a machine
 * with much else to do they say less, and test/virtual/restart.test.ts holds the exact bar. PURE_LINK_RESTARTS changes how
 * many there are.
 */
import { assert, describe, it } from "@effect/vitest"
import { createHash, type Hash, randomInt } from "node:crypto"
import { readFileSync, rmSync, statSync, truncateSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { Chance } from "../world/chance.ts"
import { portOf, type Running, Scenario } from "./processes.ts"
import { Relay } from "./relay.ts"
import { Waiting } from "./waiting.ts"

const restarts = Number(process.env["PURE_LINK_RESTARTS"] ?? 20)
const markedServe = join(import.meta.dirname, "markedServe.ts")
const oneWayMillis = 25
const roundTripMillis = 2 * oneWayMillis
const allowanceMillis = 50
/** Of so many restarts one may be late, for reasons of the machine's that nobody counts. */
const oneLateIn = 10

/** Writes lines into a process's standard input all the time, so that something is always on its way. */
class Feeder {
  readonly digest: Hash = createHash("sha256")
  #lines = 0
  readonly #timer: NodeJS.Timeout
  readonly #process: Running

  constructor(sending: Running) {
    this.#process = sending
    this.#timer = setInterval(() => this.#write(), 5)
  }

  #write(): void {
    let text = ""
    for (let i = 0; i < 10; i++) text += `line ${++this.#lines} ${"x".repeat((this.#lines * 37) % 150)}\n`
    this.digest.update(text)
    this.#process.child.stdin!.write(text)
  }

  end(): string {
    clearInterval(this.#timer)
    this.#process.child.stdin!.end()
    return this.digest.digest("hex")
  }

  stop(): void {
    clearInterval(this.#timer)
  }
}

interface Restart {
  /** From the first packet at the new socket to the first answer with a raised n. */
  readonly millis: number
  /** How much of the time in which our processes were ready to run they waited for a processor. */
  readonly waiting: number
  /** Whether it drew LOST. */
  readonly drewLost: boolean
  readonly errors: string
}

/** One transfer through a relay, whose receiver is killed and started again. */
class Transfer {
  readonly scenario = new Scenario()
  relay!: Relay
  #serving!: Running
  #standby: Running | undefined
  #sending!: Running
  #feeder: Feeder | undefined
  #port = 0

  async begin(): Promise<void> {
    this.#serving = this.#load()
    this.#serving.child.stdin!.write("go\n")
    this.#port = await portOf(this.#serving)
    this.relay = await Relay.open(this.#port, oneWayMillis)
    const args = this.scenario.sendArguments(this.relay.address, "-")
    this.#sending = this.scenario.start(process.execPath, [this.scenario.program, ...args], "pipe")
    this.#feeder = new Feeder(this.#sending)
    await this.#serving.event("raised")
  }

  get memo(): string {
    return this.scenario.path("inbox.db.memo")
  }

  /** Loads the next receiver, so that it can take over at once: a sender that waits for 2 s would help itself (spec §9.8). */
  async prepare(): Promise<void> {
    this.#standby = this.#load()
    await this.#standby.event("standsBy")
  }

  /** Kills the receiver while records of a confirmed run are on their way, changes its files, and starts the next one. */
  async restart(change: () => void): Promise<Restart> {
    if (this.#standby === undefined) await this.prepare()
    const next = this.#standby!
    this.#standby = undefined
    const { confirmed, lost } = this.relay
    while (this.relay.confirmed === confirmed) await this.relay.departure()
    await this.#serving.kill("SIGKILL")
    change()
    const waiting = new Waiting([next.child.pid!, this.#sending.child.pid!])
    next.child.stdin!.write("go\n")
    this.#serving = next
    const bound = Number((await next.event("bound")).at)
    const raised = Number((await next.event("raised")).at)
    const first = this.relay.delivered.find((at) => at >= bound)!
    const drewLost = this.relay.lost > lost
    return { millis: (raised - first) / 1_000, waiting: waiting.share, drewLost, errors: next.errors }
  }

  /** Ends the transfer; what is in the inbox is what was fed, to the byte. */
  async end(): Promise<void> {
    const fed = this.#feeder!.end()
    const ended = await this.#sending.ended
    assert.strictEqual(ended.code, 0, ended.errors)
    assert.strictEqual((await this.#serving.kill("SIGTERM")).code, 0)
    const shown = ["inbox", "show", "--store", this.scenario.path("inbox.db"), "--input", "orders", "--raw"]
    const found = this.scenario.runToEnd(...shown)
    assert.strictEqual(createHash("sha256").update(found.output).digest("hex"), fed)
  }

  async close(): Promise<void> {
    this.#feeder?.stop()
    await this.scenario.close()
    this.relay?.close()
  }

  #load(): Running {
    const args = this.scenario.serveArguments({ port: this.#port })
    return this.scenario.start(process.execPath, [markedServe, "standby", ...args], "pipe")
  }
}

const withTransfers = async (
  count: number,
  body: (...transfers: ReadonlyArray<Transfer>) => Promise<void>
): Promise<void> => {
  const transfers = Array.from({ length: count }, () => new Transfer())
  try {
    for (const transfer of transfers) await transfer.begin()
    await body(...transfers)
    for (const transfer of transfers) await transfer.end()
  } finally {
    for (const transfer of transfers) await transfer.close()
  }
}

const pause = (chance: Chance, leastMillis = 0) =>
  new Promise((resolve) => setTimeout(resolve, leastMillis + chance.between(20, 150)))

/** A sender begins a fresh run with records at most this often (spec §12.3); sooner it costs a round trip more. */
const freshRunMillis = 2_000

const medianOf = (values: ReadonlyArray<number>): number => values.toSorted((a, b) => a - b)[values.length >> 1]!

/**
 * Prints what the restarts took, and judges the median, and all but a few: the bar is for what the wire takes, which is as
 * it is, and what we compute, without the time for which it waited for a processor.
 */
const judge = (name: string, roundTrips: number, all: ReadonlyArray<Restart>): void => {
  const bar = barOf(roundTrips)
  const wire = roundTrips * roundTripMillis
  const taken = all.map(({ millis }) => millis)
  const own = all.map(({ millis, waiting }) => millis - Math.max(0, millis - wire) * waiting)
  const within = own.filter((millis) => millis <= bar).length
  const summary = (values: ReadonlyArray<number>) =>
    `median ${medianOf(values).toFixed(0)} ms, largest ${Math.max(...values).toFixed(0)} ms`
  const told =
    `${name}: ${summary(taken)} of ${bar} allowed (less what the machine was late: ${summary(own)}; ${within} of ` +
    `${all.length} within); ${all.filter(({ drewLost }) => drewLost).length} drew LOST`
  console.log(told)
  const each = all.map(({ millis, waiting }) => `${millis.toFixed(0)} ms (${(100 * waiting).toFixed(0)} % waiting)`)
  assert.isAtMost(medianOf(own), bar, `${told}: ${each.join(", ")}`)
  assert.isAtLeast(within, allButFew(all.length), `${told}: ${each.join(", ")}`)
}

const barOf = (roundTrips: number): number => roundTrips * roundTripMillis + allowanceMillis

const allButFew = (count: number): number => count - Math.floor(count / oneLateIn)

describe("a receiver killed in the middle of a transfer", () => {
  const seed = Number(process.env["PURE_LINK_RESTART_SEED"] ?? randomInt(2 ** 31))

  const bars = `within ${barOf(1)} ms of the first packet with its memo, ${barOf(2)} ms without`

  it(`stores again ${bars}, ${restarts} times each (seed ${seed})`, () =>
    withTransfers(2, async (remembered, forgotten) => {
      const chance = new Chance(seed)
      const withMemo: Array<Restart> = []
      const without: Array<Restart> = []
      for (let i = 0; i < restarts; i++) {
        const rested = pause(chance, freshRunMillis)
        await Promise.all([remembered!.prepare(), forgotten!.prepare(), pause(chance)])
        withMemo.push(await remembered!.restart(() => {}))
        await rested
        without.push(await forgotten!.restart(() => rmSync(forgotten!.memo)))
      }
      assert.strictEqual(remembered!.relay.lost, 0)
      assert.isAtLeast(
        without.filter(({ drewLost }) => drewLost).length,
        allButFew(restarts),
        "restarts that drew LOST"
      )
      judge("with its memo", 1, withMemo)
      judge("without its memo", 2, without)
    }))

  it("makes a memo that cannot be read anew, with one line, and goes on from any that was cut or garbled", () =>
    withTransfers(1, async (transfer) => {
      const chance = new Chance(seed)
      const garble = (from: number, step: number) => () => {
        const bytes = readFileSync(transfer!.memo)
        for (let i = from; i < bytes.length; i += step) bytes[i]! ^= 0xff
        writeFileSync(transfer!.memo, bytes)
      }
      // What is wrong within a slot is an empty slot (spec §12.1), for which LOST is the cure and no line is needed.
      const spoiled: ReadonlyArray<{ readonly lines: number; readonly change: () => void }> = [
        { lines: 1, change: () => truncateSync(transfer!.memo, 100) },
        { lines: 1, change: garble(20, 2 ** 30) },
        { lines: 0, change: () => truncateSync(transfer!.memo, statSync(transfer!.memo).size >> 1) },
        { lines: 0, change: garble(2_000, 7) }
      ]
      for (const { change, lines } of spoiled) {
        await pause(chance)
        const { errors } = await transfer!.restart(change)
        assert.strictEqual(errors.split("\n").filter((line) => /memo was made anew/.test(line)).length, lines, errors)
        assert.notMatch(errors, /\n\s+at /)
      }
    }))
})
