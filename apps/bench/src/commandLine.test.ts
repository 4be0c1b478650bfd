/**
 * The command line: what it refuses, in one line, and two ends that were started by hand.
 */
import { assert, describe, it } from "@effect/vitest"
import { spawn } from "node:child_process"
import { createSocket } from "node:dgram"
import { once } from "node:events"
import { join } from "node:path"
import { GivenFlags, readFlags } from "./flags.ts"
import { UsageError } from "./usageError.ts"

const program = join(import.meta.dirname, "../bin/bench.js")

const start = (...given: ReadonlyArray<string>) => {
  const child = spawn(process.execPath, [program, ...given], { stdio: ["ignore", "pipe", "pipe"] })
  let output = ""
  let errors = ""
  child.stdout.on("data", (piece: Buffer) => (output += piece.toString()))
  child.stderr.on("data", (piece: Buffer) => (errors += piece.toString()))
  const closed = once(child, "close")
  return {
    child,
    /** Waits until it has said something. */
    said: async (text: string) => {
      while (!errors.includes(text)) await once(child.stderr, "data")
    },
    end: async () => {
      const [exit] = (await closed) as [number]
      return { exit, output, errors }
    }
  }
}

const freePort = async (): Promise<number> => {
  const socket = createSocket("udp4")
  socket.bind(0, "127.0.0.1")
  await once(socket, "listening")
  const { port } = socket.address()
  socket.close()
  return port
}

describe("flags", () => {
  const table = { count: { value: "N", help: "" }, kind: { value: "KIND", help: "" }, loud: { help: "" } }

  it("are read with their bounds", () => {
    const given = readFlags(table, ["--count", "1e3", "--kind", "b", "--loud"])
    assert.strictEqual(given.requiredNumber("count", { least: 1, most: 2_000, whole: true }), 1_000)
    assert.strictEqual(given.oneOf("kind", ["a", "b"]), "b")
    assert.isTrue(given.has("loud"))
    assert.isUndefined(readFlags(table, []).number("count", { least: 1, most: 2 }))
  })

  it("that are wrong say what is accepted", () => {
    const bounds = { least: 1, most: 9, whole: true }
    for (const text of ["0", "10", "1.5", "x", "", "1e", "-1"]) {
      const given = new GivenFlags({ count: text })
      assert.throws(() => given.number("count", bounds), UsageError, "from 1 to 9")
    }
    assert.throws(() => readFlags(table, []).required("count"), UsageError, "--count is missing")
    assert.throws(() => readFlags(table, ["--kind", "c"]).oneOf("kind", ["a", "b"]), UsageError, "a or b")
    assert.throws(() => readFlags(table, ["--count", "1", "--kind", "a"]).exclusive("count", "kind"), UsageError)
    for (const argv of [["--none"], ["loose"], ["--count"], ["--loud=1"]]) {
      assert.throws(() => readFlags(table, argv), UsageError)
    }
  })
})

describe("the command line", { timeout: 120_000 }, () => {
  it("refuses in one line with exit code 2", async () => {
    const wrong = [
      ["nonsense"],
      ["cpu"],
      ["cpu", "--size", "61", "--floor", "--fallback"],
      ["send", "--host", "localhost", "--port", "70000", "--size", "61", "--count", "1"],
      ["send", "--host", "127.0.0.1", "--port", "1", "--size", "4", "--count", "1", "--rate", "5"]
    ]
    for (const { errors, exit, output } of await Promise.all(wrong.map((argv) => start(...argv).end()))) {
      assert.strictEqual(exit, 2, errors)
      assert.match(errors, /^bench: [^\n]+\n$/)
      assert.strictEqual(output, "")
    }
  })

  it("says a taken port as JSON where it was asked to", async () => {
    const socket = createSocket("udp4")
    socket.bind(0, "0.0.0.0")
    await once(socket, "listening")
    const { port } = socket.address()
    const { exit, output } = await start("recv", "--port", `${port}`, "--fallback", "--json").end()
    socket.close()
    assert.strictEqual(exit, 2)
    assert.match((JSON.parse(output) as { message: string }).message, /EADDRINUSE/)
  })

  it("by hand, one end sends and the other has it all, each with its line of JSON", async () => {
    const port = `${await freePort()}`
    const receiver = start("recv", "--port", port, "--count", "3000", "--series", "--fallback")
    await receiver.said("listening")
    const sender = start(
      "send",
      "--host",
      "127.0.0.1",
      "--port",
      port,
      "--size",
      "200",
      "--count",
      "3000",
      "--fallback"
    )
    const [sent, received] = await Promise.all([sender.end(), receiver.end()])
    assert.deepStrictEqual([sent.exit, received.exit], [0, 0], sent.errors + received.errors)
    for (const { output } of [sent, received]) {
      const result = JSON.parse(output) as Record<string, number>
      assert.strictEqual(result["messages"], 3_000)
      assert.strictEqual(result["bytes"], 600_000)
      assert.strictEqual(result["bad"], 0)
      for (const name of ["seconds", "mbit_s", "user_s", "sys_s", "packets"]) assert.isAbove(result[name]!, 0, name)
    }
  })

  it("at a rate the receiver tells latencies, and an interrupt ends it with its line", async () => {
    const port = `${await freePort()}`
    const receiver = start("recv", "--port", port, "--fallback")
    await receiver.said("listening")
    const rated = ["--size", "100", "--rate", "200", "--seconds", "0.5", "--fallback"]
    const sent = await start("send", "--host", "127.0.0.1", "--port", port, ...rated).end()
    const { messages } = JSON.parse(sent.output) as { messages: number }
    receiver.child.kill("SIGINT")
    const received = await receiver.end()
    assert.deepStrictEqual([sent.exit, received.exit], [0, 0], sent.errors + received.errors)
    const result = JSON.parse(received.output) as Record<string, number>
    assert.strictEqual(result["messages"], messages)
    assert.isAbove(messages, 0)
    assert.isAbove(result["p50_ms"]!, 0)
    assert.isAtLeast(result["max_ms"]!, result["p99_ms"]!)
  })
})
