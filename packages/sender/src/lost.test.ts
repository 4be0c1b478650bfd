import { assert, describe, it } from "@effect/vitest"
import { initialWindow } from "@pure-link/recovery"
import { allRecords, grow, numbersOf, roundTrip, same, second } from "../test/packets.ts"
import {
  Bench,
  type BenchOptions,
  frameOf,
  list,
  type OpenedPacket,
  recordBytesOf,
  recordsOf,
  stored,
  tagsOf
} from "../test/scriptedPeer.ts"
import { LostStarts } from "./lostStarts.ts"

/** A receiver that lost the run says so (spec §12.2), and what its sender makes of it (spec §12.3). */

/** A sender in epoch 1 with a window that has grown, and the datagrams that are in flight. */
const flying = (count = 40, options: BenchOptions = {}): { bench: Bench; flight: Array<Uint8Array> } => {
  const bench = new Bench({ records: same(900, count), ...options })
  grow(bench, (round) => 4 + round)
  bench.append(same(900, 20))
  const flight = bench.runUntil(bench.now + 4_000).map(({ datagram }) => datagram)
  assert.isAbove(flight.length, 5)
  assert.strictEqual(bench.link.status.epoch, 1)
  return { bench, flight }
}

/** What a LOST changes, if it changes anything. */
const view = (bench: Bench): unknown => {
  const { lostIgnored: _, ...counters } = bench.link.counters
  return [bench.link.run, bench.link.status, counters, bench.link.recoveryCounters, bench.events.length]
}

/** The peer forgets everything and says LOST to a datagram. */
const lose = (bench: Bench, datagram: Uint8Array): boolean => {
  const lost = bench.peer.lost(datagram)
  bench.peer.restart()
  return bench.hear(lost)
}

describe("LOST of a packet in flight (spec §12.3)", () => {
  it("starts a fresh run at once: epoch 0, STREAM, OFFER, and everything unstored within one initial window", () => {
    const { bench, flight } = flying()
    const former = bench.link.run
    assert.isTrue(lose(bench, flight[3]!))
    assert.notStrictEqual(bench.link.run, former)
    assert.deepStrictEqual(bench.events.at(-1), { _tag: "RunLost", withRecords: true })
    const packets = bench.pass(15_000)
    const base = bench.link.stored + 1
    assert.strictEqual(packets[0]!.number, 0)
    for (const packet of packets) {
      assert.deepStrictEqual([packet.epoch, packet.long, ...tagsOf(packet).slice(0, 2)], [0, true, "Stream", "Offer"])
      assert.strictEqual(frameOf(packet, "Stream")!.base, base)
    }
    assert.deepStrictEqual([...new Set(allRecords(packets, base))].slice(0, 3), [base, base + 1, base + 2])
    const bytes = packets.reduce((sum, packet) => sum + recordBytesOf(packet), 0)
    assert.isAbove(bytes, initialWindow(1_200) / 2)
    assert.isAtMost(bytes, initialWindow(1_200))
    assert.deepStrictEqual([bench.link.counters.runsLost, bench.link.counters.lostIgnored], [1, 0])
  })

  it("forgets what was in flight without a signal, and keeps window and round trip", () => {
    const { bench, flight } = flying()
    const { window, smoothedRtt } = bench.link.status
    assert.isAbove(window, 2 * initialWindow(1_200))
    const counts = { ...bench.link.recoveryCounters }
    lose(bench, flight[0]!)
    assert.deepStrictEqual(bench.link.status, { ...bench.link.status, window, smoothedRtt, inFlight: 0, epoch: 0 })
    assert.deepStrictEqual(bench.link.recoveryCounters, counts)
    const first = bench.pass(15_000)
    bench.now += 5_000
    bench.answer(list("Ack", ...numbersOf(first)), stored(bench.link.stored))
    const sent = bench.pass(roundTrip)
    assert.isAbove(sent.length * 1_000, initialWindow(1_200), "the window is used at once")
    assert.isTrue(sent.every((packet) => packet.epoch === 1))
    assert.strictEqual(bench.link.recoveryCounters.lost, counts.lost)
  })

  it("sends all unstored records again, and the link goes on", () => {
    const { bench, flight } = flying()
    lose(bench, flight[0]!)
    const base = bench.link.stored + 1
    const all: Array<OpenedPacket> = []
    while (new Set(allRecords(all, base)).size < bench.last - base + 1) {
      const packets = bench.pass(roundTrip)
      assert.isAbove(packets.length, 0)
      all.push(...packets)
      bench.answer(list("Ack", ...numbersOf(all)), stored(base - 1))
    }
    bench.answer(stored(bench.last))
    assert.strictEqual(bench.link.stored, bench.last)
    assert.deepStrictEqual(
      bench.eventTags().filter((tag) => tag === "SilentRecovery"),
      []
    )
  })

  it("ends a reported silence", () => {
    const { bench, flight } = flying()
    bench.now += 10.5 * second
    bench.link.handleTimeout(bench.now)
    assert.isTrue(lose(bench, flight.at(-1)!))
    assert.includeMembers([...bench.eventTags()], ["Silent", "SilenceEnded"])
  })
})

describe("LOST that has no effect", () => {
  /** Hears a LOST and demands that nothing came of it but a count. */
  const ignores = (bench: Bench, lost: Uint8Array, ours: boolean, what: string): void => {
    const before = view(bench)
    const { lostIgnored } = bench.link.counters
    bench.hear(lost)
    assert.deepStrictEqual(view(bench), before, what)
    assert.strictEqual(bench.link.counters.lostIgnored, lostIgnored + (ours ? 1 : 0), what)
  }

  it("is one that was changed in any byte, or has another length", () => {
    const { bench, flight } = flying()
    const genuine = bench.peer.lost(flight[0]!)
    for (let at = 0; at < genuine.length; at++) {
      for (const bit of [1, 128]) {
        const changed = genuine.slice()
        changed[at]! ^= bit
        // Kind, key id and run prefix tell whose it is; what is left must open. Tokens last for 64.
        bench.now += at % 2 === 0 ? 10_000 : 0
        ignores(bench, changed, at >= 9, `byte ${at}`)
      }
    }
    ignores(bench, genuine.slice(0, 44), true, "shorter")
    ignores(bench, Uint8Array.from([...genuine, 0]), true, "longer")
    assert.isTrue(bench.hear(genuine))
    assert.strictEqual(bench.link.counters.runsLost, 1)
  })

  it("is one that echoes other flags, another number or another tag", () => {
    const { bench, flight } = flying()
    const wrong = [
      bench.peer.lost(flight[0]!, (echo) => (echo.flags ^= 1)),
      bench.peer.lost(flight[0]!, (echo) => (echo.flags ^= 0x40)),
      bench.peer.lost(flight[0]!, (echo) => (echo.number += 1)),
      bench.peer.lost(flight[0]!, (echo) => (echo.tagHigh ^= 1)),
      bench.peer.lost(flight[0]!, (echo) => (echo.tagLow ^= 0x80))
    ]
    for (const [i, lost] of wrong.entries()) ignores(bench, lost, true, `echo ${i}`)
  })

  it("is one for a number that is not in flight: acknowledged, or never sent", () => {
    const { bench, flight } = flying()
    const numbers = flight.flatMap((datagram) => bench.peer.open(bench.now, datagram) ?? []).map(({ number }) => number)
    bench.answer(list("Ack", numbers[0]!), stored(bench.link.stored))
    ignores(bench, bench.peer.lost(flight[0]!), true, "acknowledged")
    ignores(
      bench,
      bench.peer.lost(flight[1]!, (echo) => (echo.number = numbers.at(-1)! + 1_000)),
      true,
      "never sent"
    )
    assert.isTrue(bench.hear(bench.peer.lost(flight[1]!)))
    assert.strictEqual(bench.link.counters.runsLost, 1)
  })

  it("is one for a packet in epoch 0, which draws none", () => {
    const bench = new Bench({ records: same(900, 4) })
    const datagrams = bench.send()
    ignores(bench, bench.peer.lost(datagrams[0]!), true, "epoch 0")
  })

  it("is one that is replayed, or of the former run", () => {
    const { bench, flight } = flying()
    const [lost, other] = [bench.peer.lost(flight[0]!), bench.peer.lost(flight[1]!)]
    assert.isTrue(bench.hear(lost.slice()))
    bench.transmit()
    bench.now += 3 * second
    ignores(bench, lost.slice(), false, "replayed")
    ignores(bench, other, false, "of the former run")
  })

  it("is any for a link without a packet in flight, which computes nothing for it", () => {
    const bench = new Bench({ records: same(100, 1) })
    bench.start()
    const [datagram] = bench.send()
    bench.peer.open(bench.now, datagram!)
    bench.answer(list("Ack", ...numbersOf(bench.peer.packets)), stored(1))
    for (let i = 0; i < 100; i++) ignores(bench, bench.peer.lost(datagram!), true, "idle")
    assert.strictEqual(bench.link.counters.limited, 0)
  })

  it("is any for a link that has stopped for good", () => {
    const { bench, flight } = flying()
    bench.answer(stored(1_000))
    assert.strictEqual(bench.link.state, "forked")
    ignores(bench, bench.peer.lost(flight[0]!), true, "forked")
  })

  it("costs at most 4,096 keys a second", () => {
    const { bench, flight } = flying()
    const forged = bench.peer.lost(flight[0]!)
    forged[44]! ^= 1
    bench.now += second
    for (let i = 0; i < 4_132; i++) bench.hear(forged.slice())
    assert.strictEqual(bench.link.counters.limited, 36)
    assert.strictEqual(bench.link.counters.lostIgnored, 4_132)
  })

  it("is what a fault of the tests takes for genuine", () => {
    const { bench, flight } = flying(40, { faults: { acceptAnyLost: true } })
    assert.isTrue(bench.hear(bench.peer.lost(flight[0]!, (echo) => (echo.tagLow ^= 1))))
    assert.strictEqual(bench.link.counters.runsLost, 1)
  })
})

describe("how often LOST starts a run (spec §12.3)", () => {
  /** A LOST at each of these seconds; what comes of them. */
  const starts = (seconds: ReadonlyArray<number>, rule = new LostStarts()): ReadonlyArray<string> =>
    seconds.map((at) => rule.take(at * second, true))

  it("is once in 2 s with records, and after each start with offers only not for 2 s, 4 s, … 64 s", () => {
    assert.deepStrictEqual(starts([0, 2, 4]), ["with records", "with records", "with records"])
    const rule = new LostStarts()
    let now = 0
    for (const pause of [2, 4, 8, 16, 32, 64, 64]) {
      assert.deepStrictEqual(starts([now, now + 1, now + 1 + pause - 0.001], rule), [
        "with records",
        "offers only",
        "not now"
      ])
      now += 1 + pause
    }
  })

  it("is as at first once records were stored", () => {
    const rule = new LostStarts()
    starts([0, 1, 3, 4], rule)
    assert.deepStrictEqual(starts([7], rule), ["not now"])
    rule.handleProgress()
    assert.deepStrictEqual(starts([7, 8, 9.9, 10], rule), ["with records", "offers only", "not now", "with records"])
  })

  it("holds for a link: the second start within 2 s only offers, and one within the pause has no effect", () => {
    const { bench, flight } = flying()
    lose(bench, flight[0]!)
    const again = (): Uint8Array => {
      const packets = bench.pass(roundTrip)
      bench.answer(list("Ack", ...numbersOf(packets)), stored(bench.link.stored))
      return bench.send()[0]!
    }
    assert.isTrue(lose(bench, again()))
    assert.deepStrictEqual(bench.events.at(-1), { _tag: "RunLost", withRecords: false })
    const [offer, ...more] = bench.transmit()
    assert.deepStrictEqual([offer!.epoch, ...tagsOf(offer!)], [0, "Stream", "Offer"])
    assert.deepStrictEqual(more, [])
    bench.now += roundTrip
    bench.answer(list("Ack", offer!.number), stored(bench.link.stored))
    const under = bench.send()
    const { run } = bench.link
    bench.hear(bench.peer.lost(under[0]!))
    assert.strictEqual(bench.link.run, run)
    assert.deepStrictEqual([bench.link.counters.runsLost, bench.link.counters.lostIgnored], [2, 1])
    // An answer in epoch 1: the receiver has the run's secret.
    bench.peer.open(bench.now, under[0]!.slice())
    bench.answer(stored(bench.link.stored))
    bench.now += 2.5 * second
    assert.isTrue(bench.hear(bench.peer.lost(under[0]!)))
    assert.deepStrictEqual(bench.events.at(-1), { _tag: "RunLost", withRecords: true })
  })

  it("is never with records for a run that was not answered in an epoch of its own", () => {
    const { bench, flight } = flying()
    lose(bench, flight[0]!)
    const packets = bench.pass(roundTrip)
    bench.answer(list("Ack", ...numbersOf(packets)), stored(bench.link.stored))
    bench.now += 3 * second
    assert.isTrue(bench.hear(bench.peer.lost(bench.send()[0]!)))
    assert.deepStrictEqual(bench.events.at(-1), { _tag: "RunLost", withRecords: false })
  })

  it("and records that were stored end the pause of a link", () => {
    const { bench, flight } = flying()
    lose(bench, flight[0]!)
    const packets = bench.pass(roundTrip)
    bench.answer(list("Ack", ...numbersOf(packets)), stored(bench.link.stored))
    lose(bench, bench.send()[0]!)
    const [offer] = bench.transmit()
    bench.now += roundTrip
    bench.answer(list("Ack", offer!.number), stored(bench.link.stored + 1))
    assert.isTrue(bench.hear(bench.peer.lost(bench.send()[0]!)))
    assert.deepStrictEqual([bench.link.counters.runsLost, bench.link.counters.lostIgnored], [3, 0])
  })
})

describe("LOST for a refused sender", () => {
  const refused = { _tag: "Refused", reason: 1 } as const

  it("starts a fresh run that is still refused: what the try was about goes again at once, and nothing else", () => {
    const { bench } = flying()
    bench.answer(stored(bench.link.stored), refused)
    assert.strictEqual(bench.link.state, "refused")
    const [attempt, ...none] = bench.runUntil(bench.now + second)
    assert.deepStrictEqual(none, [])
    bench.now += roundTrip
    assert.isTrue(lose(bench, attempt!.datagram))
    assert.strictEqual(bench.link.state, "refused")
    const [packet, ...more] = bench.transmit()
    const base = bench.link.stored + 1
    assert.deepStrictEqual([packet!.epoch, packet!.number, ...tagsOf(packet!)], [0, 0, "Stream", "Offer", "Records"])
    assert.strictEqual(recordsOf(packet!, base)[0], base)
    assert.deepStrictEqual(more, [])
    bench.now += roundTrip
    bench.answer(list("Seen", packet!.number), refused, stored(base - 1))
    assert.deepStrictEqual(bench.transmit(), [], "the next try comes when it is due")
    const [next] = bench.next()
    assert.strictEqual(next!.epoch, 1)
    bench.answer(list("Ack", next!.number), stored(base - 1))
    assert.strictEqual(bench.link.state, "sending")
    assert.isAbove(bench.pass(roundTrip).length, 5)
  })

  it("whose records may not go again yet waits with its offer for the next try", () => {
    const { bench, flight } = flying()
    lose(bench, flight[0]!)
    const packets = bench.pass(roundTrip)
    bench.answer(list("Ack", ...numbersOf(packets)), stored(bench.link.stored), refused)
    const [attempt] = bench.runUntil(bench.now + second)
    lose(bench, attempt!.datagram)
    assert.deepStrictEqual(bench.events.at(-1), { _tag: "RunLost", withRecords: false })
    assert.deepStrictEqual(bench.runUntil(bench.now + second), [])
    const [offer] = bench.next()
    assert.deepStrictEqual([offer!.epoch, ...tagsOf(offer!)], [0, "Stream", "Offer"])
    bench.answer(list("Seen", offer!.number), refused)
    const [records] = bench.transmit()
    assert.deepStrictEqual([records!.epoch, ...tagsOf(records!).slice(-1)], [1, "Records"])
  })
})
