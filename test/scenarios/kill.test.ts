/**
 * SIGKILL costs nothing (spec §2.1–§2.3): real processes are killed at random moments inside a transfer, and the inbox
 * equals the input. The seed of the moments is printed; PURE_LINK_KILL_SEED replays them, PURE_LINK_KILLS changes how
 * many there are.
 */
import { assert, describe, it } from "@effect/vitest"
import { createHash, randomInt } from "node:crypto"
import { createReadStream, createWriteStream } from "node:fs"
import { once } from "node:events"
import { join } from "node:path"
import { Chance } from "../world/chance.ts"
import { type Running, Scenario } from "./processes.ts"

const kills = Number(process.env["PURE_LINK_KILLS"] ?? 50)
const killsPerTransfer = 10
const records = 20_000
const markedServe = join(import.meta.dirname, "markedServe.ts")

/** 20,000 lines of 0 B, 61 B, 1 KiB and 16 KiB, and one of 16 MiB in their midst. */
const writeInput = async (path: string, chance: Chance): Promise<void> => {
  const file = createWriteStream(path)
  const letters = Array.from({ length: 97 }, (_, i) => String.fromCharCode(97 + (i % 26))).join("")
  const line = (size: number, i: number) => `${i}:${letters.repeat(Math.ceil(size / letters.length))}`.slice(0, size)
  const big = chance.between(5_000, 15_000)
  for (let i = 0; i < records; i++) {
    const size =
      i === big
        ? 16_777_216
        : chance.pick([0, 61, 61, 61, 61, 61, 61, 1_024, 1_024, chance.happens(0.2) ? 16_384 : 1_024])
    if (!file.write(`${line(size, i)}\n`)) await once(file, "drain")
  }
  file.end()
  await once(file, "close")
}

const digest = async (chunks: AsyncIterable<Uint8Array>): Promise<string> => {
  const hash = createHash("sha256")
  for await (const chunk of chunks) hash.update(chunk)
  return hash.digest("hex")
}

type Moment =
  | "receiver in a commit"
  | "receiver at a position"
  | "sender at a position"
  | "sender before its first STORED"

/** The transfer came to its end before a moment did: that kill is for another transfer. */
class Outrun extends Error {}

/** Transfers at most for all kills: a link that is never met in a moment fails. */
const mostTransfers = 4 * Math.ceil(kills / killsPerTransfer)

/** One transfer with several kills; `met` are the moments that were met. */
class Transfer {
  readonly scenario: Scenario
  readonly chance: Chance
  readonly file: string
  readonly met: Array<Moment> = []
  #serving!: Running
  #sending!: Running
  #address = ""
  #stored = 0
  #inCommit = false
  #commitsEnded = 0
  #commitBegan = 0
  /** What a commit took lately, as seen from here. */
  #commitMillis = 5

  constructor(scenario: Scenario, chance: Chance, file: string) {
    this.scenario = scenario
    this.chance = chance
    this.file = file
  }

  async run(moments: ReadonlyArray<Moment>): Promise<void> {
    await this.#serve()
    this.#send()
    try {
      for (const [index, moment] of moments.entries()) {
        const threshold = Math.floor((records * (index + this.chance.unit())) / (moments.length + 1)) + 1
        await this.#until(() => this.#stored >= threshold)
        await this.#meet(moment)
      }
    } catch (error) {
      if (!(error instanceof Outrun)) throw error
    }
    const end = await this.#sending.ended
    assert.strictEqual(end.code, 0, end.errors)
    assert.strictEqual((await this.#serving.kill("SIGTERM")).code, 0)
  }

  async #meet(moment: Moment): Promise<void> {
    if (moment === "receiver in a commit") await this.#untilInCommit()
    const before = this.#stored
    if (before === records) throw new Outrun()
    assert.isTrue(before > 0 && before < records, `${moment}: ${before} stored`)
    if (moment.startsWith("receiver")) {
      await this.#serving.kill("SIGKILL")
      await this.#serve()
    } else {
      await this.#sending.kill("SIGKILL")
      this.#send()
      if (moment === "sender before its first STORED") await this.#killBeforeStored()
    }
    this.met.push(moment)
  }

  /** A sender that was killed too late, on a slow machine, had told of STORED: then the next one may be the one. */
  async #killBeforeStored(): Promise<void> {
    for (let tries = 0; tries < 10; tries++) {
      const sending = this.#sending
      await sending.event("opened")
      await sending.kill("SIGKILL")
      this.#send()
      if (!/"stored"/.test(sending.output)) return
    }
    assert.fail("no sender was killed before its first STORED")
  }

  /**
   * Waits for a commit to begin, and then for a random part of what commits lately took, so that kills fall anywhere
   * inside one; a commit that ended meanwhile is not the moment, the next one may be.
   */
  async #untilInCommit(): Promise<void> {
    for (;;) {
      const ended = this.#commitsEnded
      await this.#until(() => this.#inCommit)
      await new Promise((resolve) => setTimeout(resolve, this.chance.unit() * this.#commitMillis))
      if (this.#inCommit && this.#commitsEnded === ended) return
    }
  }

  async #serve(): Promise<void> {
    const port = this.#address === "" ? 0 : Number(this.#address.split(":").pop())
    this.#inCommit = false
    this.#serving = this.scenario.start(process.execPath, [markedServe, ...this.scenario.serveArguments({ port })])
    this.#serving.onLine((line) => {
      const event = JSON.parse(line) as { event: string; n: number }
      if (event.event === "commitEnded") this.#stored = Math.max(this.#stored, event.n)
      if (event.event === "commitBegins") {
        this.#inCommit = true
        this.#commitBegan = performance.now()
      }
      if (event.event === "commitEnded") {
        this.#inCommit = false
        this.#commitsEnded += 1
        this.#commitMillis = (this.#commitMillis + performance.now() - this.#commitBegan) / 2
      }
    })
    this.#address = String((await this.#serving.event("listening")).address)
  }

  #send(): void {
    this.#sending = this.scenario.send(this.#address, this.file)
  }

  /** Waits for what the receiver prints to make it so. */
  async #until(condition: () => boolean): Promise<void> {
    if (condition()) return
    await new Promise<void>((resolve, reject) => {
      const look = () => {
        if (condition()) resolve()
      }
      this.#serving.onLine(look)
      void this.#sending.ended.then(({ code, errors }) =>
        reject(code === 0 ? new Outrun() : new Error(`the sender ended too early: ${code} ${errors}`))
      )
    })
  }
}

describe("SIGKILL", () => {
  const seed = Number(process.env["PURE_LINK_KILL_SEED"] ?? randomInt(2 ** 31))

  it(`${kills} kills inside transfers of ${records} records lose nothing and double nothing (seed ${seed})`, async () => {
    const chance = new Chance(seed)
    const all: ReadonlyArray<Moment> = [
      "receiver in a commit",
      "sender at a position",
      "receiver at a position",
      "sender before its first STORED"
    ]
    const met = new Map<Moment, number>()
    let transfers = 0
    for (let done = 0; done < kills;) {
      assert.isBelow(transfers++, mostTransfers, `${done} kills`)
      const scenario = new Scenario()
      try {
        await writeInput(scenario.path("input"), chance)
        const transfer = new Transfer(scenario, chance, scenario.path("input"))
        const moments = Array.from({ length: Math.min(killsPerTransfer, kills - done) }, () => chance.pick(all))
        await transfer.run(moments)
        done += transfer.met.length
        for (const moment of transfer.met) met.set(moment, (met.get(moment) ?? 0) + 1)
        const shown = scenario.start(process.execPath, [
          join(import.meta.dirname, "../../apps/pure-link/src/main.ts"),
          "inbox",
          "show",
          "--store",
          scenario.path("inbox.db"),
          "--input",
          "orders",
          "--raw",
          "--count",
          String(2 * records)
        ])
        const found = await digest(shown.child.stdout!)
        assert.strictEqual(found, await digest(createReadStream(scenario.path("input"))), `transfer ${transfers}`)
      } finally {
        await scenario.close()
      }
    }
    console.log(`seed ${seed}: ${[...met].map(([moment, count]) => `${count} × ${moment}`).join(", ")}`)
    if (kills >= 50) for (const moment of all) assert.isAbove(met.get(moment) ?? 0, 0, moment)
  })
})
