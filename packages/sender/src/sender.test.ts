import { assert, describe, it } from "@effect/vitest"
import { never } from "@pure-link/wire"
import { allRecords, numbersOf, same, second } from "../test/packets.ts"
import { Bench, frameOf, list, ownLife, recordBytesOf, recordsOf, stored, tagsOf } from "../test/scriptedPeer.ts"

describe("the start of a run", () => {
  it("makes no packets for an empty outbox", () => {
    const bench = new Bench()
    assert.deepStrictEqual(bench.send(), [])
    assert.strictEqual(bench.link.deadline(), never)
  })

  it("sends records at once in epoch 0 with long header, STREAM and OFFER, within the initial window", () => {
    const bench = new Bench({ records: same(500, 100) })
    const packets = bench.transmit()
    assert.strictEqual(packets.length, 10)
    for (const packet of packets) {
      assert.deepStrictEqual(tagsOf(packet), ["Stream", "Offer", "Records"])
      assert.isTrue(packet.long && packet.epoch === 0 && packet.length <= 1200)
    }
    assert.isAtMost(
      packets.reduce((sum, packet) => sum + recordBytesOf(packet), 0),
      12_000
    )
    assert.deepStrictEqual(frameOf(packets[0]!, "Stream"), {
      _tag: "Stream",
      lowestHeld: 1,
      base: 1,
      generation: 3n,
      shape: 9n,
      source: "till-4",
      input: "orders",
      lives: [ownLife]
    })
  })

  it("never sends more than an initial window of record bytes under epoch 0, probes included", () => {
    const bench = new Bench({ records: same(500, 100) })
    bench.runUntil(60 * second)
    const packets = bench.datagrams.map((datagram) => bench.peer.open(bench.now, datagram)!)
    assert.isAbove(packets.length, 20)
    assert.isAtMost(
      packets.reduce((sum, packet) => sum + recordBytesOf(packet), 0),
      12_000
    )
  })

  it("sends offers only after an answer in epoch 0 without ACCEPT", () => {
    const bench = new Bench({ records: same(500, 100) })
    bench.peer.accepts = false
    const first = bench.start()
    const later = bench.runUntil(bench.now + 3 * second).map(({ datagram }) => bench.peer.open(bench.now, datagram)!)
    assert.isAbove(later.length, 1)
    for (const packet of later) {
      assert.isDefined(frameOf(packet, "Offer"))
      assert.deepStrictEqual(recordsOf(packet), [])
      assert.strictEqual(packet.epoch, 0)
    }
    assert.isAbove(first.length, 0)
  })

  it("sends under the new epoch at once after ACCEPT", () => {
    const bench = new Bench({ records: same(500, 100) })
    bench.start()
    const packets = bench.transmit()
    assert.isAbove(packets.length, 9)
    for (const packet of packets) {
      assert.strictEqual(packet.epoch, 1)
      assert.isUndefined(frameOf(packet, "Offer"))
      assert.isAbove(recordsOf(packet).length, 0)
    }
    assert.deepInclude(bench.events, { _tag: "EpochAdvanced", epoch: 1 })
  })

  it("sends a PING of 47 B under the new epoch when nothing waits", () => {
    const bench = new Bench({ records: same(10, 1) })
    bench.start()
    const packets = bench.transmit()
    assert.deepStrictEqual(packets.map(tagsOf), [["Ping"]])
    assert.strictEqual(packets[0]!.length, 47)
    assert.strictEqual(packets[0]!.epoch, 1)
  })
})

describe("headers and cutting", () => {
  it("uses the short header without STREAM once STREAM was answered, and the long one again after idle time", () => {
    const bench = new Bench({ records: same(10, 1) })
    bench.start(stored(1))
    bench.transmit()
    bench.answer(list("Ack", 0, 1), stored(1))
    bench.append(same(10, 1))
    const [short] = bench.transmit()
    assert.isFalse(short!.long)
    assert.deepStrictEqual(tagsOf(short!), ["Records"])
    bench.answer(list("Ack", 0, 1, 2), stored(2))
    bench.now += 10 * second
    bench.append(same(10, 1))
    const [afterIdle] = bench.transmit()
    assert.isTrue(afterIdle!.long)
    assert.deepStrictEqual(tagsOf(afterIdle!), ["Stream", "Records"])
  })

  it("spends at most 41 B beside records in full packets of 1,013 B records", () => {
    const bench = new Bench({ records: same(1013, 4_000), datagramSize: 1452 })
    bench.start()
    for (let round = 0; round < 5; round++) {
      const packets = bench.transmit()
      for (const packet of packets) {
        assert.isFalse(packet.long)
        assert.strictEqual(packet.length, 1452)
        assert.isAtMost(packet.length - recordBytesOf(packet), 41)
      }
      bench.now += 20_000
      bench.answer(list("Ack", ...numbersOf(bench.peer.packets)), stored(0))
    }
  })

  it("puts 22 records of 61 B into 1,399 B", () => {
    const bench = new Bench({ records: same(61, 2000), datagramSize: 1452 })
    bench.start()
    const packets = bench.transmit().slice(1)
    assert.isAbove(packets.length, 3)
    for (const packet of packets) {
      assert.strictEqual(recordsOf(packet).length, 22)
      assert.strictEqual(packet.length, 1399)
    }
  })

  it("does not cut a short record for less than 64 B of room", () => {
    const bench = new Bench({ records: same(200, 300) })
    bench.start()
    for (const packet of bench.transmit()) {
      for (const frame of packet.frames) {
        if (frame._tag !== "Records" || frame.endsRecord) continue
        assert.isAtLeast(frame.parts.at(-1)!.length, 64)
      }
    }
  })
})

describe("credit", () => {
  it("sends records only as far as credit in records and in bytes reaches", () => {
    const byRecords = new Bench({ records: same(2000, 50) })
    const first = byRecords.start(stored(0, { creditRecords: 12 }))
    assert.strictEqual(Math.max(...allRecords(first), ...allRecords(byRecords.pass(10_000))), 12)
    const byBytes = new Bench({ records: same(2000, 50) })
    const begun = byBytes.start(stored(0, { creditBytes: 27_999 }))
    assert.strictEqual(Math.max(...allRecords(begun), ...allRecords(byBytes.pass(10_000))), 13)
  })

  it("sends all of record n+1 whatever the byte credit is", () => {
    const bench = new Bench({ records: same(30_000, 3) })
    bench.start(stored(0, { creditRecords: 1, creditBytes: 0 }))
    const packets = bench.pass(10_000)
    assert.deepStrictEqual([...new Set(allRecords(packets))], [1])
    assert.isTrue(packets.at(-1)!.frames.some((frame) => frame._tag === "Records" && frame.endsRecord))
  })

  it("sends no records without record credit, and asks by PING a PTO after the answer, then doubling to 1 s", () => {
    const bench = new Bench({ records: same(500, 50) })
    bench.start(stored(0, { creditRecords: 0, creditBytes: 0 }))
    const confirm = bench.transmit()
    assert.deepStrictEqual(confirm.map(tagsOf), [["Ping"]])
    bench.now += 20_000
    bench.answer(list("Ack", ...numbersOf(bench.peer.packets)), stored(0, { creditRecords: 0 }))
    const gaps: Array<number> = []
    for (let i = 0; i < 7; i++) {
      const answered = bench.now
      const [question, ...more] = bench.next()
      assert.deepStrictEqual(more, [])
      gaps.push(bench.now - answered)
      assert.deepStrictEqual(tagsOf(question!), ["Ping"])
      bench.answer(list("Ack", ...numbersOf(bench.peer.packets)), stored(0, { creditRecords: 0 }))
    }
    assert.isBelow(gaps[0]!, 100_000)
    for (let i = 1; i < gaps.length; i++) assert.isAtLeast(gaps[i]!, Math.min(1.5 * gaps[i - 1]!, second))
    assert.strictEqual(gaps.at(-1), second)
  })

  it("sends on when credit opens", () => {
    const bench = new Bench({ records: same(500, 60) })
    bench.start(stored(0, { creditRecords: 0 }))
    bench.transmit()
    bench.answer(list("Ack", ...numbersOf(bench.peer.packets)), stored(0, { creditRecords: 40 }))
    assert.strictEqual(Math.max(...allRecords(bench.pass(10_000))), 40)
  })

  it("takes credit from the answer with the highest number, whatever order answers come in", () => {
    const bench = new Bench({ records: same(100, 5) })
    bench.start(stored(0, { creditRecords: 5 }))
    bench.transmit()
    const older = bench.peer.answer([list("Ack", 0), stored(0, { creditRecords: 6 })])
    const newer = bench.peer.answer([list("Ack", 0), stored(0, { creditRecords: 7 })])
    bench.hear(newer)
    bench.hear(older)
    bench.append(same(100, 5))
    assert.strictEqual(Math.max(...allRecords(bench.transmit())), 7)
  })
})

describe("answers", () => {
  it("drops stored records, reports them once, and reads on from the outbox", () => {
    const bench = new Bench({ records: same(1000, 100), queueBytes: 20_000 })
    const first = bench.start()
    assert.isAbove(first.length, 0)
    bench.transmit()
    bench.answer(list("Ack", ...numbersOf(bench.peer.packets)), stored(15))
    assert.deepInclude(bench.events, { _tag: "Stored", n: 15, at: bench.now })
    assert.strictEqual(bench.link.stored, 15)
    assert.isAbove(Math.max(...allRecords(bench.transmit())), 20, "beyond the first 20 kB")
  })

  it("sends a lost span again as it was, in a packet of a new number", () => {
    const bench = new Bench({ records: same(900, 40) })
    bench.start()
    const packets = bench.pass(5_000)
    assert.isAbove(packets.length, 4)
    bench.now += 20_000
    const rest = packets.slice(1)
    const others = numbersOf(bench.peer.packets).filter((number) => number !== packets[0]!.number)
    bench.answer(list("Ack", ...others), stored(0))
    const [again] = bench.transmit()
    assert.isAbove(again!.number, rest.at(-1)!.number)
    assert.deepStrictEqual(frameOf(again!, "Records"), frameOf(packets[0]!, "Records"))
  })

  it("cancels a re-send when the acknowledgement comes late", () => {
    const bench = new Bench({ records: same(900, 25) })
    bench.start()
    const packets = bench.pass(10_000)
    assert.includeMembers([...allRecords(packets)], [25])
    bench.now += 20_000
    const others = numbersOf(bench.peer.packets).filter((number) => number !== packets[0]!.number)
    bench.answer(list("Ack", ...others), stored(0))
    bench.answer(list("Ack", ...numbersOf(bench.peer.packets)), stored(0))
    assert.deepStrictEqual(allRecords(bench.transmit()), [])
  })

  it("does not send a span a third time when its first packet is acknowledged late and its second is lost", () => {
    const bench = new Bench({ records: same(900, 60) })
    bench.start()
    const packets = bench.pass(5_000)
    const acked = numbersOf(bench.peer.packets).filter((number) => number !== packets[0]!.number)
    bench.answer(list("Ack", ...acked), stored(0))
    const [again, ...others] = bench.pass(5_000)
    assert.deepStrictEqual(frameOf(again!, "Records"), frameOf(packets[0]!, "Records"))
    assert.isAbove(others.length, 2)
    acked.push(packets[0]!.number, ...numbersOf(others))
    bench.answer(list("Ack", ...acked), stored(0))
    const later = bench.pass(5_000)
    assert.isAbove(later.length, 0)
    assert.notInclude(allRecords(later), recordsOf(packets[0]!)[0])
  })

  it("sends nothing acknowledged again under an unchanged reply run, and asks by PING when STORED is late", () => {
    const bench = new Bench({ records: same(500, 4) })
    bench.start()
    bench.transmit()
    bench.now += 20_000
    bench.answer(list("Ack", 0, 1, 2, 3), stored(0))
    for (let i = 0; i < 10; i++) {
      const sent = bench.next()
      assert.deepStrictEqual(sent.map(tagsOf), [["Ping"]])
      bench.answer(list("Ack", ...numbersOf(bench.peer.packets)), stored(0))
    }
  })

  it("counts n that falls within a reply run as a violation and keeps n", () => {
    const bench = new Bench({ records: same(500, 4) })
    bench.start(stored(2))
    bench.transmit()
    bench.answer(list("Ack", 0), stored(1))
    assert.strictEqual(bench.link.stored, 2)
    assert.strictEqual(bench.link.counters.violations, 1)
  })

  it("counts acknowledgements of numbers never sent, and malformed bodies, without any effect", () => {
    const bench = new Bench({ records: same(500, 4) })
    bench.start()
    bench.transmit()
    const before = bench.link.status
    assert.isTrue(bench.answer(list("Ack", 0, 500), stored(4)))
    assert.isTrue(bench.hear(bench.peer.answer([], { body: Uint8Array.of(0x14, 0, 0) })))
    const ping = bench.peer.answer([], { body: Uint8Array.of(0x01) })
    assert.isTrue(bench.hear(ping), "PING is not for answers")
    assert.strictEqual(bench.link.counters.violations, 3)
    assert.strictEqual(bench.link.stored, 0)
    assert.deepStrictEqual(bench.link.status, before)
  })

  it("ignores answers that are tampered with at any byte, truncated or replayed", () => {
    const bench = new Bench({ records: same(500, 4) })
    const packets = bench.transmit()
    const answer = bench.peer.answer([list("Ack", ...numbersOf(packets)), stored(4)])
    for (let i = 0; i < answer.length; i++) {
      const tampered = answer.slice()
      tampered[i]! ^= 1
      assert.isFalse(bench.hear(tampered))
      bench.now += 10_000
    }
    for (let length = 0; length < answer.length; length++) {
      assert.isFalse(bench.hear(answer.slice(0, length)))
      bench.now += 10_000
    }
    assert.strictEqual(bench.link.stored, 0)
    assert.isTrue(bench.hear(answer.slice()))
    assert.isFalse(bench.hear(answer.slice()))
    assert.strictEqual(bench.link.stored, 4)
  })

  it("brings STREAM back when the receiver answers NAME", () => {
    const bench = new Bench({ records: same(500, 30) })
    bench.start()
    const packets = bench.transmit()
    assert.isFalse(packets[0]!.long)
    bench.now += 20_000
    bench.answer(list("Seen", ...numbersOf(packets)), { _tag: "Name" })
    const again = bench.transmit()
    assert.deepStrictEqual([...new Set(allRecords(again))], [...new Set(allRecords(packets))])
    for (const packet of again) assert.isDefined(frameOf(packet, "Stream"))
  })

  it("answers a CHALLENGE at once, whatever the window says", () => {
    const bench = new Bench({ records: same(500, 100) })
    bench.start()
    bench.transmit()
    bench.answer(list("Ack", 0), { _tag: "Challenge", ipChanged: false, token: 99n }, stored(0))
    const [response] = bench.transmit()
    assert.deepStrictEqual(frameOf(response!, "Response"), { _tag: "Response", token: 99n })
  })

  it("derives keys for unknown reply runs only at a bounded rate", () => {
    const bench = new Bench({ records: same(500, 4) })
    bench.transmit()
    const forged = bench.peer.answer([stored(4)])
    for (let i = 0; i < 5_000; i++) {
      const one = forged.slice()
      one[9] = i & 255
      one[10] = i >> 8
      one[11] = 0xff
      bench.hear(one)
    }
    assert.strictEqual(bench.link.counters.limited, 5_000 - 4_096)
  })
})

describe("SEEN", () => {
  it("holds what the receiver had no room for, and asks for it one packet at a time", () => {
    const bench = new Bench({ records: same(500, 40) })
    bench.start(stored(0))
    const packets = bench.transmit()
    bench.now += 20_000
    bench.answer(list("Seen", ...numbersOf(packets)), stored(0))
    assert.deepStrictEqual(bench.transmit(), [])
    let sent = 0
    const start = bench.now
    while (bench.now < start + 10 * second) {
      const asked = bench.next()
      assert.strictEqual(asked.length, 1)
      assert.deepStrictEqual(recordsOf(asked[0]!), recordsOf(packets[0]!))
      sent++
      bench.answer(list("Seen", ...numbersOf(asked)), stored(0))
    }
    assert.isBelow(sent, 16)
  })

  it("sends held records again when credit opens", () => {
    const bench = new Bench({ records: same(500, 40) })
    bench.start(stored(0, { creditRecords: 30 }))
    const packets = bench.transmit()
    bench.now += 20_000
    bench.answer(list("Seen", ...numbersOf(packets)), stored(0, { creditRecords: 30 }))
    assert.deepStrictEqual(bench.transmit(), [])
    bench.answer(list("Seen", ...numbersOf(packets)), stored(0, { creditRecords: 31 }))
    assert.includeMembers([...allRecords(bench.transmit())], [...recordsOf(packets[0]!)])
  })

  it("sends records that were SEEN under epoch 0 again as soon as the epoch advances", () => {
    const bench = new Bench({ records: same(500, 8) })
    const packets = bench.transmit()
    bench.answer(list("Seen", ...numbersOf(packets)), stored(0))
    const again = bench.transmit()
    assert.deepStrictEqual([...new Set(allRecords(again))], [1, 2, 3, 4, 5, 6, 7, 8])
    assert.isTrue(again.every((packet) => packet.epoch === 1))
  })
})
