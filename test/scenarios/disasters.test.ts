/**
 * Ordinary disasters, with real processes: a cloned sender running twice, two receivers on copies of one store, a wall
 * clock that steps, a machine that sleeps. Nothing is lost silently, nothing doubled, and what cannot go on says so.
 * PURE_LINK_SUSPEND_SECONDS sets how long machines sleep.
 */
import { assert, describe, it } from "@effect/vitest"
import { copyFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { setTimeout as sleep } from "node:timers/promises"
import { numbered, portOf, type Running, type Scenario, withFlag, withScenario } from "./processes.ts"
import { monotonicMicros, Relay } from "./relay.ts"

const markedServe = join(import.meta.dirname, "markedServe.ts")
const steppedClock = join(import.meta.dirname, "steppedClock.ts")
const suspendSeconds = Number(process.env["PURE_LINK_SUSPEND_SECONDS"] ?? 4)

/** A sender that reads what is written to it. */
const feed = (scenario: Scenario, to: string, extra: ReadonlyArray<string> = []): Running =>
  scenario.start(process.execPath, [scenario.program, ...scenario.sendArguments(to, "-", extra)], "pipe")

describe("copies that run at the same time", () => {
  it("of a cloned sender one goes on and the other ends with exit 5, without a fight", () =>
    withScenario(async (scenario) => {
      const port = await portOf(scenario.serve())
      writeFileSync(scenario.path("a"), numbered("both", 1, 100))
      const first = await scenario.send(`127.0.0.1:${port}`, scenario.path("a")).ended
      assert.strictEqual(first.code, 0, first.errors)
      copyFileSync(scenario.path("outbox.db"), scenario.path("clone.db"))

      const relays = await Promise.all([Relay.open(port, 1), Relay.open(port, 1)])
      try {
        const senders = relays.map((relay, index) => {
          const args = scenario.sendArguments(relay.address, "-")
          const own = index === 0 ? args : withFlag(args, "--outbox", scenario.path("clone.db"))
          return scenario.start(process.execPath, [scenario.program, ...own], "pipe")
        })
        await Promise.all(senders.map((sender) => sender.event("opened")))
        for (const [index, sender] of senders.entries()) sender.child.stdin!.write(numbered(`of ${index}`, 1, 20))
        const loser = await Promise.race(senders.map(async (sender) => (await sender.ended, sender)))
        const winner = senders.find((sender) => sender !== loser)!
        const lost = await loser.ended
        assert.strictEqual(lost.code, 5, lost.errors)
        assert.match(lost.errors, /copy of another|another copy of the outbox/)
        winner.child.stdin!.end(numbered(`of ${senders.indexOf(winner)}`, 21, 40))
        assert.strictEqual((await winner.ended).code, 0, winner.errors)
        const expected = numbered("both", 1, 100) + numbered(`of ${senders.indexOf(winner)}`, 1, 40)
        assert.strictEqual(scenario.inboxLines().join("\n") + "\n", expected)
        for (const { answers, delivered } of relays) {
          assert.isBelow(delivered.length, 100, "packets of one of the two")
          assert.isBelow(answers, 100, "answers to one of the two")
        }
      } finally {
        for (const relay of relays) relay.close()
      }
    }))

  it("of one receiver answer in turn, and the sender says that there are two, or that one lacks what the other has", () =>
    withScenario(async (scenario) => {
      const original = scenario.serve()
      const relay = await Relay.open(await portOf(original), 1)
      try {
        const sending = feed(scenario, relay.address)
        let written = 0
        const write = () => sending.child.stdin!.write(numbered("record", written + 1, (written += 10)))
        write()
        await sending.eventWhere("stored", ({ through }) => through === written)
        for (const end of ["", "-wal", ".memo"]) {
          copyFileSync(scenario.path(`inbox.db${end}`), scenario.path(`copy.db${end}`))
        }
        const args = withFlag(scenario.serveArguments(), "--store", scenario.path("copy.db"))
        const copy = scenario.start(process.execPath, [scenario.program, ...args])
        await relay.join(await portOf(copy))
        const writing = setInterval(write, 50)
        // Which it hears first is the wire's matter: both answer again and again, or one has stored what the other never got.
        const told = await Promise.race([
          sending.eventWhere("notice", (event) => event.notice === "TwoReceivers").catch(() => undefined),
          sending.ended
        ])
        clearInterval(writing)
        await copy.kill("SIGTERM")
        const isPrefix = numbered("record", 1, written).startsWith(scenario.inboxLines().join("\n") + "\n")
        assert.isTrue(isPrefix, "what is stored is what was sent, in order")
        if (told === undefined || "code" in told) {
          const ended = await sending.ended
          assert.strictEqual(ended.code, 5, ended.errors)
          assert.match(ended.errors, /inbox is behind at \d+: .*a second receiver .* everything is kept in the outbox/)
          return
        }
        assert.match(String(told.message), /two receivers in turn: let one node alone use key/)
        sending.child.stdin!.end()
        const ended = await sending.ended
        // Either this one got all, too, or the sender says that its inbox is behind: nothing is lost without a word.
        const isWhole = scenario.inboxLines().join("\n") + "\n" === numbered("record", 1, written)
        assert.strictEqual(ended.code, isWhole ? 0 : 5, ended.errors)
      } finally {
        relay.close()
      }
    }))
})

describe("a wall clock that steps", () => {
  const day = 86_400_000

  it("by -30 days and +80 years on either side changes nothing", () =>
    withScenario(async (scenario) => {
      const clock = scenario.path("clock")
      const step = (days: number) => writeFileSync(clock, String(days * day))
      step(0)
      const stepped = (args: ReadonlyArray<string>, input: "none" | "pipe" = "none") =>
        scenario.start(
          "env",
          [`PURE_LINK_CLOCK_FILE=${clock}`, process.execPath, "--import", steppedClock, ...args],
          input
        )
      const year = async () => {
        const shown = await stepped(["--print", "new Date().getFullYear()"]).ended
        return Number(shown.output)
      }
      const present = await year()
      const serving = stepped([markedServe, ...scenario.serveArguments()])
      const sending = stepped(
        [scenario.program, ...scenario.sendArguments(`127.0.0.1:${await portOf(serving)}`, "-")],
        "pipe"
      )
      let written = 0
      const storeMore = async () => {
        const before = monotonicMicros()
        sending.child.stdin!.write(numbered("tick", written + 1, written + 500))
        written += 500
        await serving.eventWhere("commitEnded", ({ n }) => Number(n) >= written)
        return (monotonicMicros() - before) / 1_000
      }
      await storeMore()
      for (const days of [-30, 80 * 365, 0]) {
        step(days)
        for (let i = 0; i < 3; i++) assert.isBelow(await storeMore(), 1_500, `a step to ${days} days`)
      }
      step(80 * 365)
      assert.isAtLeast(await year(), present + 79, "the clock was stepped indeed")
      sending.child.stdin!.end()
      const ended = await sending.ended
      assert.strictEqual(ended.code, 0, ended.errors)
      assert.isBelow(Number(sending.events("done")[0]!.seconds), 120)
      assert.notMatch(ended.errors + serving.errors, /no answer|refused|forgotten/)
      assert.strictEqual(scenario.inboxLines().join("\n") + "\n", numbered("tick", 1, written))
    }))
})

describe("a machine that sleeps", () => {
  for (const side of ["receiver", "sender"] as const) {
    it(`${suspendSeconds} s, the ${side}'s: stored again within 2 s of waking, without a burst`, () =>
      withScenario(async (scenario) => {
        const serving = scenario.start(process.execPath, [markedServe, ...scenario.serveArguments()])
        const relay = await Relay.open(await portOf(serving), 5)
        const sending = feed(scenario, relay.address)
        let written = 0
        const write = () => sending.child.stdin!.write(numbered("tick", written + 1, (written += 2)))
        const writing = setInterval(write, 50)
        try {
          await serving.eventWhere("commitEnded", ({ n }) => Number(n) >= 10)
          const sleeper = side === "receiver" ? serving : sending
          sleeper.child.kill("SIGSTOP")
          await sleep(suspendSeconds * 1_000)
          const packets = relay.delivered.length
          const { answers } = relay
          const before = serving.events("commitEnded").length
          const woken = monotonicMicros()
          sleeper.child.kill("SIGCONT")
          await serving.event("commitEnded", before + 1)
          const millis = (monotonicMicros() - woken) / 1_000
          await sleep(Math.max(0, 1_000 - millis))
          const burst = { packets: relay.delivered.length - packets, answers: relay.answers - answers }
          clearInterval(writing)
          sending.child.stdin!.end()
          assert.strictEqual((await sending.ended).code, 0, sending.errors)
          assert.strictEqual(scenario.inboxLines().join("\n") + "\n", numbered("tick", 1, written))
          console.log(
            `${side} slept ${suspendSeconds} s: stored ${millis.toFixed(0)} ms after waking; in its first second ` +
              `${burst.packets} packets, ${burst.answers} answers`
          )
          assert.isBelow(millis, 2_000)
          // 20 portions of records come in a second, and each has its packet and its answers.
          const most = 100 + suspendSeconds
          assert.isBelow(burst.packets, most)
          assert.isBelow(burst.answers, 2 * most)
        } finally {
          clearInterval(writing)
          relay.close()
        }
      }))
  }
})
