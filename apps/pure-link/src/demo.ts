/**
 * `npm run demo`: the main job on embedded defaults. Two real processes, real UDP, SQLite on both sides; the records are
 * the lines of a CSV file of US postal codes (the npm package vega-datasets). Afterwards the inbox is compared with the
 * file, record by record.
 */
import { inboxRecords, lastPositionOf } from "@pure-link/ports"
import { readInbox } from "@pure-link/store"
import * as Effect from "effect/Effect"
import { type ChildProcess, execFileSync, spawn } from "node:child_process"
import { createHash } from "node:crypto"
import { once } from "node:events"
import { mkdirSync, readFileSync, rmSync } from "node:fs"
import { join, relative } from "node:path"
import { createInterface } from "node:readline"

const root = join(import.meta.dirname, "../../..")
const folder = join(root, ".demo")
const program = join(import.meta.dirname, "main.ts")
const source = join(root, "node_modules/vega-datasets/data/zipcodes.csv")
const input = "zipcodes"
const asJson = process.argv.includes("--json")

const tell = (line: string): void => {
  if (!asJson) console.log(line)
}

const run = (...args: ReadonlyArray<string>): ChildProcess =>
  spawn(process.execPath, [program, ...args], { stdio: ["ignore", "pipe", asJson ? "ignore" : "inherit"] })

const publicKeyOf = (file: string): string =>
  execFileSync(process.execPath, [program, "keygen", "--file", file], {
    encoding: "utf8",
    stdio: ["ignore", "pipe", "ignore"]
  }).trim()

/** The address that `serve --json` prints first. */
const addressOf = async (serving: ChildProcess): Promise<string> => {
  for await (const line of createInterface({ input: serving.stdout! })) {
    const event = JSON.parse(line) as { event: string; address: string }
    if (event.event === "listening") return event.address
  }
  throw new Error("the receiver ended before it listened; its message is above")
}

const exitOf = async (child: ChildProcess): Promise<number> => {
  if (child.exitCode !== null) return child.exitCode
  const [code] = (await once(child, "exit")) as [number | null]
  return code ?? 1
}

/** Length and bytes of every record, so that no two sequences of records share a digest. */
class SequenceDigest {
  readonly #hash = createHash("sha256")

  add(record: Uint8Array): void {
    this.#hash.update(`${record.length}:`).update(record)
  }

  get value(): string {
    return this.#hash.digest("hex")
  }
}

const sourceLines = (): Array<Buffer> => {
  const bytes = readFileSync(source)
  const lines: Array<Buffer> = []
  for (let start = 0; start < bytes.length;) {
    const end = bytes.indexOf(10, start)
    lines.push(bytes.subarray(start, end < 0 ? bytes.length : end))
    start = end < 0 ? bytes.length : end + 1
  }
  return lines
}

/** Compares the inbox with the source by number and by digest. */
const compare = (store: string, lines: ReadonlyArray<Buffer>) =>
  Effect.gen(function* () {
    const reader = yield* readInbox(store)
    const seen = new Set<number>()
    const found = new SequenceDigest()
    const wanted = new SequenceDigest()
    for (const line of lines) wanted.add(line)
    let stored = 0
    let duplicates = 0
    let outOfOrder = 0
    let previous = 0
    for (let after = 0; ;) {
      const batch = yield* reader.read(input, after, { records: 4_096, bytes: 4_194_304 })
      if (batch.sizes.length === 0) break
      for (const { bytes, number } of inboxRecords(batch)) {
        stored += 1
        if (seen.has(number)) duplicates += 1
        if (number !== previous + 1) outOfOrder += 1
        seen.add(number)
        previous = number
        found.add(bytes)
      }
      after = lastPositionOf(batch)
    }
    return { stored, duplicates, missing: lines.length - seen.size, outOfOrder, same: found.value === wanted.value }
  }).pipe(Effect.scoped, Effect.runPromise)

const demo = async (): Promise<number> => {
  rmSync(folder, { recursive: true, force: true })
  mkdirSync(folder, { recursive: true })
  const at = (name: string) => join(folder, name)
  const serverKey = publicKeyOf(at("server.key"))
  const clientKey = publicKeyOf(at("client.key"))
  const lines = sourceLines()

  const serving = run(
    "serve",
    "--json",
    "--key",
    at("server.key"),
    "--listen",
    "127.0.0.1:0",
    "--store",
    at("inbox.db"),
    "--input",
    input,
    "--allow",
    clientKey
  )
  const address = await addressOf(serving)
  serving.stdout!.resume()
  tell(`receiver: process ${serving.pid} on ${address}`)
  const started = process.hrtime.bigint()
  const sending = run(
    "send",
    "--json",
    "--key",
    at("client.key"),
    "--to",
    address,
    "--peer",
    serverKey,
    "--input",
    input,
    "--source",
    "demo",
    "--outbox",
    at("outbox.db"),
    source
  )
  sending.stdout!.resume()
  tell(`sender: process ${sending.pid}, ${lines.length} records of ${relative(root, source)}`)
  const sent = await exitOf(sending)
  const seconds = Number(process.hrtime.bigint() - started) / 1e9
  serving.kill("SIGTERM")
  const served = await exitOf(serving)
  if (sent !== 0 || served !== 0) throw new Error(`sender exited with ${sent}, receiver with ${served}`)

  const { duplicates, missing, outOfOrder, same, stored } = await compare(at("inbox.db"), lines)
  if (asJson) {
    console.log(
      JSON.stringify({
        records: lines.length,
        stored,
        duplicates,
        missing,
        out_of_order: outOfOrder,
        seconds: Number(seconds.toFixed(3))
      })
    )
  } else {
    tell(
      `${stored} of ${lines.length} records stored in ${seconds.toFixed(2)} s; ${duplicates} doubled, ${missing} missing, ` +
        `${outOfOrder} out of order; digests ${same ? "equal" : "DIFFER"}`
    )
    tell(`look at them:  npx pure-link inbox list --store ${relative(root, at("inbox.db"))}`)
    tell(`               npx pure-link inbox show --store ${relative(root, at("inbox.db"))} --input ${input} --count 5`)
  }
  return same && duplicates === 0 && missing === 0 && outOfOrder === 0 ? 0 : 1
}

process.exitCode = await demo().catch((error: unknown) => {
  console.error(`demo: ${(error as Error).message}`)
  return 1
})
