import { assert, describe, it } from "@effect/vitest"
import { never } from "@pure-link/wire"
import { allRecords, numbersOf, same, second } from "../test/packets.ts"
import { Bench, frameOf, list, type OpenedPacket, ownLife, recordsOf, stored, tagsOf } from "../test/scriptedPeer.ts"

describe("reply runs", () => {
  const established = (count = 12): Bench => {
    const bench = new Bench({ records: same(900, count) })
    bench.start()
    bench.transmit()
    bench.now += 20_000
    bench.answer(list("Ack", ...numbersOf(bench.peer.packets)), stored(2))
    return bench
  }

  it("sends everything unstored again at once, with STREAM, when the reply run changes", () => {
    const bench = established()
    bench.append(same(900, 1))
    const [packet] = bench.transmit()
    bench.peer.freshReplyRun()
    bench.answer(list("Ack", packet!.number), stored(2))
    const again = bench.transmit()
    const unstored = [3, 4, 5, 6, 7, 8, 9, 10, 11, 12]
    assert.deepStrictEqual([...new Set(allRecords(again))], unstored, "all but 13, which the new one acknowledged")
    for (const one of again) assert.isDefined(frameOf(one, "Stream"))
    assert.strictEqual(bench.link.counters.replyRunSwitches, 1)
  })

  it("sends the first record that the new one lacks at once, beyond a window that is in use", () => {
    const bench = new Bench({ records: same(1_000, 400) })
    bench.start()
    for (let round = 0; round < 3; round++) {
      const packets = bench.pass(20_000)
      bench.answer(list("Ack", ...numbersOf(packets)), stored(0))
    }
    const flight = bench.pass(20_000)
    bench.answer(list("Ack", flight[9]!.number), stored(0))
    assert.isAbove(bench.pass(1_000).length, 0)
    assert.deepStrictEqual(bench.transmit(), [])
    bench.peer.freshReplyRun()
    bench.answer(list("Ack", flight[10]!.number), stored(0))
    assert.isAbove(bench.link.status.inFlight + 1_200, bench.link.status.window)
    const [packet] = bench.pass(5_000)
    assert.deepStrictEqual([packet!.epoch, ...tagsOf(packet!)], [1, "Stream", "Records"])
    assert.strictEqual(recordsOf(packet!)[0], 1)
  })

  it("does not send again what flights from before the switch carried when they are lost", () => {
    const bench = new Bench({ records: same(900, 4) })
    bench.start()
    bench.append(same(900, 4))
    const inTheAir = bench.pass(5_000)
    assert.strictEqual(Math.max(...allRecords(inTheAir)), 8)
    bench.peer.freshReplyRun()
    bench.answer(list("Ack", inTheAir[0]!.number), stored(0))
    const again = bench.pass(20_000)
    assert.strictEqual(Math.max(...allRecords(again)), 8)
    bench.answer(list("Ack", inTheAir[0]!.number, ...numbersOf(again.slice(0, 4))), stored(0))
    assert.deepStrictEqual(bench.pass(5_000), [])
  })

  it("ignores an answer of another reply run that reports nothing newer", () => {
    const bench = established()
    assert.isTrue(bench.hear(bench.peer.answer([list("Ack", 0), stored(9)], { replyRun: 0xffn, number: 0 })))
    assert.strictEqual(bench.link.stored, 2)
    assert.strictEqual(bench.link.counters.ignoredAnswers, 1)
    assert.deepStrictEqual(allRecords(bench.transmit()), [])
  })

  it("takes such an answer, which may be an old one again, for no sign of life", () => {
    const bench = established()
    bench.append(same(900, 1))
    bench.transmit()
    let silences = 0
    for (let i = 0; i < 40; i++) {
      bench.runUntil(bench.now + 300_000)
      // Another reply run each time: the sender remembers the windows of few.
      bench.hear(bench.peer.answer([list("Ack", 0)], { replyRun: 0x100n + BigInt(i), number: 0 }))
      silences = bench.eventTags().filter((tag) => tag === "Silent").length
    }
    assert.strictEqual(silences, 1)
    assert.strictEqual(bench.link.counters.silentRecoveries, 1)
  })

  it("lets a second switch within a round trip wait for a later answer", () => {
    const bench = established()
    bench.append(same(900, 1))
    const [packet] = bench.transmit()
    bench.peer.freshReplyRun()
    bench.answer(list("Ack", packet!.number), stored(2))
    const again = bench.transmit()
    bench.peer.freshReplyRun()
    bench.answer(list("Ack", ...numbersOf(again)), stored(2))
    assert.strictEqual(bench.link.counters.replyRunSwitches, 1)
    bench.now += 100_000
    bench.answer(list("Ack", ...numbersOf(again)), stored(2))
    assert.strictEqual(bench.link.counters.replyRunSwitches, 2)
  })

  it("reports more than 8 switches in 10 s", () => {
    const bench = established(40)
    for (let i = 0; i < 9; i++) {
      bench.now += 500_000
      bench.append(same(10, 1))
      const [packet] = bench.transmit()
      bench.peer.freshReplyRun()
      assert.notInclude(bench.eventTags(), "ReplyRunsFlapping")
      bench.answer(list("Ack", packet!.number), stored(2))
    }
    assert.include(bench.eventTags(), "ReplyRunsFlapping")
  })

  it("reports an inbox that lacks what it had stored", () => {
    const bench = established()
    bench.append(same(900, 1))
    const [packet] = bench.transmit()
    bench.peer.freshReplyRun()
    bench.answer(list("Ack", packet!.number), stored(1))
    assert.notInclude(bench.eventTags(), "InboxBehind", "an answer may be late word of a receiver that is gone")
    bench.answer(list("Seen", packet!.number), stored(1), { _tag: "Refused", reason: 5 })
    assert.deepInclude(bench.events, { _tag: "InboxBehind", n: 1 })
    assert.strictEqual(bench.link.stored, 2)
  })
})

describe("forks", () => {
  it("stops for good on STORED beyond the outbox's last record", () => {
    const bench = new Bench({ records: same(500, 4) })
    bench.start(stored(5))
    assert.strictEqual(bench.link.state, "forked")
    assert.strictEqual(bench.eventTags().at(-1), "Forked")
    assert.strictEqual(bench.link.stored, 0)
    bench.append(same(500, 10))
    assert.deepStrictEqual(bench.runUntil(bench.now + 60 * second), [])
    assert.strictEqual(bench.link.deadline(), never)
  })

  it("stops for good when record n is of another life in the inbox", () => {
    const bench = new Bench({ records: same(500, 4), lives: [ownLife, { life: 0x22n, first: 3 }] })
    bench.start(stored(3, {}, 0x11n))
    assert.strictEqual(bench.link.state, "forked")
    const healthy = new Bench({ records: same(500, 4), lives: [ownLife, { life: 0x22n, first: 3 }] })
    healthy.start(stored(3, {}, 0x22n))
    assert.strictEqual(healthy.link.state, "sending")
  })

  it("checks the life of the last record that an earlier process had removed", () => {
    const bench = new Bench({ records: same(500, 4), lowestHeld: 101, lives: [{ life: 5n, first: 1 }] })
    bench.start(stored(100, {}, 6n))
    assert.strictEqual(bench.link.state, "forked")
  })
})

describe("refusal", () => {
  const refused = { _tag: "Refused", reason: 1 } as const

  it("tries one packet with records at 1, 3, 7, 15, 31 and 63 s and sends nothing else", () => {
    const bench = new Bench({ records: same(500, 1) })
    bench.transmit()
    const start = bench.now
    bench.answer(list("Seen", 0), refused)
    assert.strictEqual(bench.link.state, "refused")
    const times: Array<number> = []
    while (bench.link.deadline() < start + 90 * second) {
      for (const { at, datagram } of bench.runUntil(bench.link.deadline())) {
        times.push((at - start) / second)
        const packet = bench.peer.open(bench.now, datagram)!
        assert.deepStrictEqual(recordsOf(packet), [1])
        bench.answer(list("Seen", packet.number), refused)
      }
    }
    assert.deepStrictEqual(times, [1, 3, 7, 15, 31, 63])
    assert.deepStrictEqual(
      bench.eventTags().filter((tag) => tag === "Refused"),
      ["Refused"]
    )
  })

  it("ends when a try's own number is ACKed, and sends everything", () => {
    const bench = new Bench({ records: same(500, 40) })
    const first = bench.transmit()
    bench.answer(list("Seen", ...numbersOf(first)), refused)
    const [attempt, ...more] = bench.pass(second)
    assert.deepStrictEqual(more, [])
    bench.now += 20_000
    bench.answer(list("Ack", attempt!.number), stored(0))
    assert.strictEqual(bench.link.state, "sending")
    assert.include(bench.eventTags(), "RefusalEnded")
    assert.includeMembers([...allRecords(bench.transmit())], [5, 6, 7, 8])
  })

  it("tries record n+1 even without credit", () => {
    const bench = new Bench({ records: same(500, 40) })
    const first = bench.transmit()
    bench.answer(list("Seen", ...numbersOf(first)), stored(0, { creditRecords: 0 }), refused)
    assert.deepStrictEqual(
      bench.pass(second).map((packet) => recordsOf(packet)),
      [[1]]
    )
  })

  it("does not end by the acknowledgement of packets from before, but by an advance of n", () => {
    const bench = new Bench({ records: same(500, 40) })
    const first = bench.transmit()
    bench.answer(list("Seen", 0), refused)
    bench.answer(list("Seen", 0), list("Ack", ...numbersOf(first).slice(1)), stored(0))
    assert.strictEqual(bench.link.state, "refused")
    bench.answer(list("Ack", ...numbersOf(first).slice(1)), stored(1))
    assert.strictEqual(bench.link.state, "sending")
  })

  it("finds a receiver again that was restarted meanwhile: an OFFER in epoch 0, then a try with records", () => {
    const bench = new Bench({ records: same(500, 1) })
    const first = bench.transmit()
    bench.answer(list("Seen", ...numbersOf(first)), refused)
    bench.peer.restart()
    const sent: Array<OpenedPacket> = []
    const until = bench.now + 10 * second
    while (bench.link.deadline() <= until) {
      for (const { datagram } of bench.runUntil(bench.link.deadline())) {
        const packet = bench.peer.open(bench.now, datagram)
        if (packet === undefined) continue
        sent.push(packet)
        bench.answer(list("Seen", ...numbersOf(sent)), refused)
      }
    }
    assert.deepStrictEqual(
      sent.slice(0, 2).map((packet) => [packet.epoch, ...tagsOf(packet)]),
      [
        [0, "Stream", "Offer"],
        [2, "Records"]
      ]
    )
  })
})

describe("silence", () => {
  it("probes with the oldest unacknowledged span, one packet per timeout, whatever the window says", () => {
    const bench = new Bench({ records: same(900, 60) })
    bench.start()
    const packets = bench.pass(10_000)
    const [probe, ...more] = bench.next()
    assert.deepStrictEqual(more, [])
    assert.deepStrictEqual(frameOf(probe!, "Records"), frameOf(packets[0]!, "Records"))
  })

  it("leaves a span to its probe when the packet that it came from is lost", () => {
    const bench = new Bench({ records: same(900, 60) })
    bench.start()
    const packets = bench.pass(10_000)
    const [probe] = bench.next()
    assert.deepStrictEqual(recordsOf(probe!), recordsOf(packets[0]!))
    const others = numbersOf(bench.peer.packets).filter(
      (number) => ![packets[0]!.number, probe!.number].includes(number)
    )
    bench.answer(list("Ack", ...others), stored(0))
    const later = bench.pass(5_000)
    assert.isAbove(later.length, 0)
    assert.notInclude(allRecords(later), recordsOf(packets[0]!)[0])
  })

  const silent = (): { bench: Bench; probes: Array<OpenedPacket> } => {
    const bench = new Bench({ records: same(900, 60) })
    bench.start()
    bench.transmit()
    const probes = bench.runUntil(bench.now + 8 * second).map(({ datagram }) => bench.peer.open(bench.now, datagram)!)
    return { bench, probes }
  }

  it("offers a new epoch in epoch 0 without records after 2 s and 4 probes", () => {
    const { bench, probes } = silent()
    assert.include(bench.eventTags(), "SilentRecovery")
    const before = probes.filter((packet) => packet.epoch === 1)
    assert.isAtLeast(before.length, 4)
    const after = probes.slice(before.length)
    assert.isAtLeast(after.length, 2)
    for (const packet of after) {
      assert.strictEqual(packet.epoch, 0)
      assert.isTrue(packet.long)
      assert.deepStrictEqual(tagsOf(packet), ["Stream", "Offer"])
      assert.strictEqual(frameOf(packet, "Offer")!.epoch, 2)
    }
  })

  it("sends everything unacknowledged under the new epoch when the recovery's OFFER is accepted", () => {
    const { bench } = silent()
    bench.peer.restart()
    const [probe] = bench.next()
    assert.strictEqual(probe!.epoch, 0)
    bench.now += 20_000
    bench.answer(list("Ack", probe!.number), stored(0))
    const packets = bench.transmit()
    assert.isTrue(packets.every((packet) => packet.epoch >= 2))
    assert.strictEqual(recordsOf(packets[0]!)[0], 1)
  })

  it("goes on under the former epoch when an answer under it comes", () => {
    const { bench } = silent()
    const late = bench.peer.packets.filter((packet) => packet.epoch === 1)
    bench.peer.epochs!.handleOpened(bench.now, 1_000, 1)
    bench.peer.accepts = false
    bench.answer(list("Ack", ...numbersOf(late)), stored(0))
    const packets = bench.transmit()
    assert.isAbove(packets.length, 0)
    for (const packet of packets) {
      assert.strictEqual(packet.epoch, 1)
      assert.isUndefined(frameOf(packet, "Offer"))
    }
  })

  it("reports silence after 10 s of waiting, once, and its end", () => {
    const bench = new Bench({ records: same(900, 60) })
    const since = bench.now
    const packets = bench.transmit()
    bench.runUntil(bench.now + 60 * second)
    assert.deepStrictEqual(bench.events, [{ _tag: "Silent", sinceMicros: since }])
    bench.answer(list("Ack", packets[0]!.number), stored(0))
    assert.include(bench.eventTags(), "SilenceEnded")
  })

  it("neither probes nor reports silence once everything is stored", () => {
    const bench = new Bench({ records: same(900, 5) })
    bench.start(stored(5))
    bench.transmit()
    assert.deepStrictEqual(bench.runUntil(bench.now + 60 * second), [])
    assert.notInclude(bench.eventTags(), "Silent")
  })
})

describe("runs and lives", () => {
  it("starts a fresh run with offers only when record numbers run out", () => {
    const bench = new Bench({ records: same(500, 40), recordNumbersOfRun: 30 })
    const run = bench.link.run
    bench.start(stored(5))
    let all = bench.transmit()
    while (bench.link.run === run) {
      bench.now += 20_000
      bench.answer(list("Ack", ...numbersOf(bench.peer.packets.filter((packet) => packet.run === run))), stored(25))
      all = bench.transmit()
    }
    all = all.filter((packet) => packet.run !== run)
    assert.strictEqual(all.length, 1)
    assert.deepStrictEqual([all[0]!.epoch, all[0]!.number, ...tagsOf(all[0]!)], [0, 0, "Stream", "Offer"])
    assert.strictEqual(frameOf(all[0]!, "Stream")!.base, bench.link.stored + 1)
    bench.now += 20_000
    bench.answer(list("Ack", 0), stored(bench.link.stored))
    const records = bench.transmit()
    assert.isTrue(records.every((packet) => packet.epoch === 1))
    const base = bench.link.stored + 1
    assert.strictEqual(records.flatMap((packet) => recordsOf(packet, base))[0], base)
  })

  it("lists at most 8 lives and sends no record of a life that is not listed", () => {
    const lives = Array.from({ length: 12 }, (_, i) => ({ life: BigInt(i + 1), first: 2 * i + 1 }))
    const bench = new Bench({ records: same(20, 24), lives })
    const [first] = bench.transmit()
    assert.strictEqual(frameOf(first!, "Stream")!.lives.length, 8)
    assert.strictEqual(Math.max(...recordsOf(first!)), 16)
    bench.answer(list("Ack", 0), stored(6, {}, 3n))
    const [next] = bench.transmit()
    assert.deepStrictEqual(frameOf(next!, "Stream")!.lives, lives.slice(3, 11))
    assert.strictEqual(Math.max(...recordsOf(next!)), 22)
  })

  it("repeats STREAM when an append brings a new life", () => {
    const bench = new Bench({ records: same(20, 2) })
    bench.start()
    bench.transmit()
    bench.append(same(20, 1), [ownLife, { life: 0x22n, first: 3 }])
    const [packet] = bench.transmit()
    assert.deepStrictEqual(tagsOf(packet!), ["Stream", "Records"])
    assert.strictEqual(frameOf(packet!, "Stream")!.lives.length, 2)
  })

  it("sends the same bytes at the same times from the same inputs", () => {
    const run = (): ReadonlyArray<Uint8Array> => {
      const bench = new Bench({ records: same(700, 50) })
      bench.start()
      bench.runUntil(bench.now + 20 * second)
      return bench.datagrams
    }
    assert.deepStrictEqual(run(), run())
  })
})
