import { Bench, list, makeRecords, stored } from "../../packages/sender/test/scriptedPeer.ts"
import { assert, describe, it } from "@effect/vitest"
import { id64, keyIdOf, lostKey, nodeSuite, seededEntropy, staticSecret } from "@pure-link/keys"
import { PacketEcho, writeLostHeader } from "@pure-link/wire"

/** LOST at a sender (spec §12.3): it counts once, for a packet in flight; an old one, or one that was made up, is nothing. */

const second = 1_000_000
const entropy = seededEntropy(31)

/** A LOST that a receiver with the static key would send for this packet. */
const lostFor = (bench: Bench, cause: Uint8Array, change: (echo: PacketEcho) => void = () => {}): Uint8Array => {
  const { pair, identity } = bench.peer
  const secret = staticSecret(nodeSuite, identity.privateKey, pair.sender, pair)!
  const echo = new PacketEcho()
  const isLong = (cause[0]! & 0x40) !== 0
  echo.take(cause, 0, cause.length, Buffer.from(cause).readUIntBE(isLong ? 18 : 9, 3))
  change(echo)
  const out = new Uint8Array(45)
  const replyRun = id64(entropy)
  const bodyStart = writeLostHeader(out, 0, keyIdOf(nodeSuite, pair.sender), bench.link.runPrefix, replyRun)
  lostKey(nodeSuite, secret, pair, replyRun).seal(out, 0, bodyStart, echo.write(out, bodyStart), 0)
  return out
}

const standing = ({ link, now }: Bench): string => {
  const { lostIgnored: _, unopened: __, ...counters } = link.counters
  return JSON.stringify({
    ...link.status,
    stored: link.stored,
    run: String(link.run),
    deadline: link.deadline(),
    now,
    counters
  })
}

/** A sender in epoch 1 with packets in flight, and one that was acknowledged. */
const inFlight = () => {
  const bench = new Bench({ records: makeRecords(Array.from({ length: 40 }, () => 900)) })
  bench.start()
  const acknowledged = bench.send()
  const numbers = acknowledged.map((datagram) => bench.peer.open(bench.now, datagram)!.number)
  bench.now += 20_000
  bench.answer(list("Ack", ...numbers), stored(1))
  const flying = bench.send()
  assert.isAbove(flying.length, 2)
  return { bench, acknowledged, flying }
}

describe("LOST at a sender", () => {
  it("of a packet in flight starts a fresh run; the same one again is nothing", () => {
    const { bench, flying } = inFlight()
    const { run } = bench.link
    const lost = lostFor(bench, flying[1]!)
    assert.isTrue(bench.hear(lost.slice()))
    assert.notStrictEqual(bench.link.run, run)
    bench.send()
    const before = standing(bench)
    for (let turn = 0; turn < 3; turn++) bench.hear(lost.slice())
    assert.strictEqual(standing(bench), before)
    bench.runUntil(bench.now + 5 * second)
    const fresh = bench.link.run
    bench.hear(lost.slice())
    assert.strictEqual(bench.link.run, fresh)
  })

  it("of a packet that was acknowledged, or of no packet, changes nothing", () => {
    const { bench, acknowledged, flying } = inFlight()
    const before = standing(bench)
    for (const cause of acknowledged) bench.hear(lostFor(bench, cause))
    const changes: ReadonlyArray<(echo: PacketEcho) => void> = [
      (echo) => (echo.flags ^= 1),
      (echo) => (echo.flags ^= 0x40),
      (echo) => (echo.number += 1),
      (echo) => (echo.tagHigh ^= 1),
      (echo) => (echo.tagLow ^= 0x80)
    ]
    for (const change of changes) bench.hear(lostFor(bench, flying[0]!, change))
    assert.strictEqual(standing(bench), before)
  })

  it("with any byte changed, or cut, changes nothing", () => {
    const { bench, flying } = inFlight()
    const before = standing(bench)
    const lost = lostFor(bench, flying[0]!)
    for (let at = 0; at < lost.length; at++) {
      const changed = lost.slice()
      changed[at]! ^= 1 << (at % 8)
      bench.hear(changed)
      bench.hear(lost.slice(0, at))
    }
    assert.strictEqual(standing(bench), before)
    assert.isTrue(bench.hear(lost))
  })

  it("again and again moves the sender no faster than its back-off lets it", () => {
    const { bench } = inFlight()
    let runs = 0
    for (let turn = 0; turn < 100; turn++) {
      bench.send()
      const last = bench.datagrams.at(-1)
      if (last !== undefined) {
        const { run } = bench.link
        bench.hear(lostFor(bench, last))
        if (bench.link.run !== run) runs += 1
      }
      bench.runUntil(bench.now + 100_000)
    }
    // 10 s: one every 2 s with records, and offers at 1, 3 and 7 s.
    assert.isAtLeast(runs, 1)
    assert.isAtMost(runs, 5 + 3)
  })
})
