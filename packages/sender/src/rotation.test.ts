import { assert, describe, it } from "@effect/vitest"
import { type Epoch, never } from "@pure-link/wire"
import { numbersOf, type Packets, roundTrip, same, second } from "../test/packets.ts"
import {
  Bench,
  type BenchOptions,
  frameOf,
  list,
  type OpenedPacket,
  partsOf,
  recordsOf,
  stored,
  tagsOf
} from "../test/scriptedPeer.ts"
import { transfer } from "../test/transfer.ts"

/** How epochs follow each other (spec §7.6) while records go on, at rest, and when a key is spent. */

const epochsOf = (packets: Packets): ReadonlyArray<Epoch> => [...new Set(packets.map((packet) => packet.epoch))]
const hour = 3_600 * second

/** A sender in epoch 1, everything stored, its round trip measured; the answer to its last packet confirmed the epoch. */
const resting = (options: BenchOptions = {}): Bench => {
  const bench = new Bench({ records: same(100, 1), ...options })
  bench.start()
  bench.transmit()
  bench.now += roundTrip
  bench.answer(list("Ack", ...numbersOf(bench.peer.packets)), stored(1))
  bench.transmit()
  return bench
}

/** Appends one record and returns the packets that go at once. */
const append = (bench: Bench): Packets => {
  bench.append(same(100, 1))
  return bench.transmit()
}

/** The peer stores everything, and answers 20 ms after the packets were sent; returns what goes then. */
const store = (bench: Bench): Packets => {
  bench.now += roundTrip
  bench.answer(list("Ack", ...numbersOf(bench.peer.packets.slice(-20))), stored(bench.last))
  return bench.transmit()
}

const offered = (packets: Packets): Packets => packets.filter((packet) => frameOf(packet, "Offer") !== undefined)

describe("rotation of epochs (spec §7.6)", () => {
  it("comes every so many packets under reordering, and no honest packet or answer fails to open", () => {
    const bench = new Bench({ records: same(1_100, 3_500), epochLimits: { packets: 100 } })
    transfer(bench, { seed: 9, lossPercent: 1, jitter: 15_000, restarts: [], fullPercent: 0 })
    assert.deepStrictEqual([bench.peer.unopened, bench.link.counters.unopened], [0, 0])
    const epochs = epochsOf(bench.peer.packets)
    assert.isAbove(epochs.length, 10)
    assert.deepStrictEqual(
      [...epochs].sort((a, b) => a - b),
      epochs.map((_, i) => i)
    )
    for (const epoch of epochs.slice(1, -2)) {
      const packets = bench.peer.packets.filter((packet) => packet.epoch === epoch)
      assert.isTrue(packets.some((packet) => recordsOf(packet).length > 0 && frameOf(packet, "Offer") !== undefined))
      for (const packet of offered(packets)) assert.strictEqual(frameOf(packet, "Offer")!.epoch, epoch + 1)
    }
    assert.strictEqual(bench.link.counters.epochsConfirmed, epochs.length - 1)
    assert.isAtLeast(bench.link.counters.keyAgreements, epochs.length)
    assert.strictEqual(bench.link.counters.silentRecoveries, 0)
  })

  it("offers in every packet from the limit on until ACCEPT, and never sooner than three PTOs after confirmation", () => {
    const bench = resting({ epochLimits: { packets: 2 } })
    const confirmedAt = bench.now
    let first: OpenedPacket | undefined
    while (first === undefined) {
      const [packet] = append(bench)
      if (frameOf(packet!, "Offer") !== undefined) first = packet
      else store(bench)
    }
    const timeout = 3 * (roundTrip + 4 * 10_000)
    assert.isAtLeast(bench.now - confirmedAt, timeout * 0.5)
    assert.isAtMost(bench.now - confirmedAt, timeout + 2 * roundTrip)
    const others = [append(bench), append(bench)].flat()
    for (const packet of others) {
      assert.deepStrictEqual([packet.epoch, ...tagsOf(packet)], [1, "Offer", "Records"])
      assert.deepStrictEqual(frameOf(packet, "Offer"), frameOf(first, "Offer"))
    }
    const [under] = store(bench)
    assert.deepStrictEqual([under!.epoch, ...tagsOf(under!)], [2, "Ping"])
    assert.include(bench.eventTags(), "EpochAdvanced")
    assert.deepStrictEqual(tagsOf(append(bench)[0]!), ["Records"], "not confirmed yet")
  })

  it("wakes no idle link, and the first packet after hours carries an OFFER and its records at once", () => {
    const bench = resting()
    bench.now += hour - second
    const early = append(bench)
    assert.deepStrictEqual(offered(early), [])
    store(bench)
    assert.deepStrictEqual(bench.runUntil(bench.now + 5 * hour), [])
    assert.strictEqual(bench.link.deadline(), never)
    const [packet, ...more] = append(bench)
    assert.deepStrictEqual(more, [])
    assert.deepStrictEqual([packet!.epoch, ...tagsOf(packet!)], [1, "Stream", "Offer", "Records"])
    const [under] = store(bench)
    assert.strictEqual(under!.epoch, 2)
    assert.strictEqual(bench.link.status.epoch, 2)
  })

  it("comes for an old epoch also if the one answer that confirms it was lost before the link fell idle", () => {
    const bench = new Bench({ records: same(100, 1) })
    const packets = bench.transmit()
    bench.now += roundTrip
    bench.answer(list("Ack", ...numbersOf(packets)), stored(1))
    assert.strictEqual(bench.transmit()[0]!.epoch, 1)
    bench.runUntil(bench.now + 3 * hour)
    assert.strictEqual(bench.link.counters.epochsConfirmed, 0)
    const [packet] = append(bench)
    assert.deepStrictEqual([packet!.epoch, ...tagsOf(packet!)], [1, "Stream", "Offer", "Records"])
    store(bench)
    assert.deepStrictEqual([bench.link.status.epoch, bench.link.counters.silentRecoveries], [2, 0])
  })

  it("leaves room for the OFFER in packets that go again: their spans are split, and nothing of them is missing", () => {
    const bench = resting({ epochLimits: { lifetimeMicros: 300_000 } })
    bench.append(same(8_000, 1))
    const lost = bench.send()
    assert.deepStrictEqual([lost.length, lost[0]!.length], [7, 1_200])
    bench.now += 300_000
    bench.peer.accepts = false
    bench.append(same(10, 3))
    const packets = [...bench.transmit()]
    for (let i = 0; i < 6; i++) packets.push(...append(bench))
    bench.now += roundTrip
    bench.answer(list("Ack", ...numbersOf(packets)), stored(1))
    const again = bench.transmit()
    assert.isAtLeast(offered(again).length, 7)
    assert.deepStrictEqual(epochsOf(again), [1])
    bench.now += roundTrip
    bench.answer(list("Ack", ...numbersOf(again)), stored(1))
    again.push(...bench.transmit())
    const bytes = new Uint8Array(8_000)
    for (const part of again.flatMap((packet) => partsOf(packet, 1))) {
      if (part.number === 2) bytes.set(part.bytes, part.offset)
    }
    assert.isTrue(Buffer.from(bytes).equals(bench.records[1]!))
  })

  it("comes when half of the forged answers that a key may meet have come", () => {
    const bench = resting({ epochLimits: { mostForged: 8 } })
    bench.now += second
    const forge = (): void => {
      const answer = bench.peer.answer([list("Ack", 0)], { number: 3_000 })
      answer[answer.length - 1]! ^= 1
      assert.isFalse(bench.hear(answer))
    }
    for (let i = 0; i < 3; i++) forge()
    assert.deepStrictEqual(offered(append(bench)), [])
    forge()
    assert.strictEqual(offered(append(bench)).length, 1)
    assert.strictEqual(store(bench)[0]!.epoch, 2)
  })

  it("does not make a sender that can only wait ask sooner, nor send again what there was no room for", () => {
    const bench = resting({ epochLimits: { packets: 1 } })
    bench.append(same(500, 1))
    let sent = 0
    let records = 0
    const end = bench.now + 60 * second
    while (bench.now < end) {
      const now = bench.transmit()
      const packets = now.length > 0 ? now : bench.next()
      sent += packets.length
      records += packets.flatMap((packet) => recordsOf(packet)).length
      bench.now += roundTrip
      bench.answer(list("Seen", ...numbersOf(packets)), stored(1, { creditRecords: 0, creditBytes: 0 }))
    }
    assert.isAbove(bench.link.status.epoch, 20)
    assert.isBelow(sent, 3 * 60, "a question a second, and the first packet of each epoch")
    assert.isBelow(records, 3)
  })

  it("opens answers of the former epoch for 10 s", () => {
    const bench = resting({ epochLimits: { packets: 1 } })
    bench.now += second
    append(bench)
    const late = [0, 1].map(() => bench.peer.answer([list("Ack", bench.peer.packets.at(-1)!.number), stored(1)]))
    assert.strictEqual(store(bench)[0]!.epoch, 2)
    bench.now += 10 * second - 1
    assert.isTrue(bench.hear(late[0]!))
    bench.now += 1
    bench.link.handleTimeout(bench.now)
    assert.isFalse(bench.hear(late[1]!))
  })
})

describe("a key that is spent (spec §7.6)", () => {
  it("seals nothing more: silent recovery, without records, brings the next epoch", () => {
    const bench = resting({ epochLimits: { packets: 4, mostPackets: 12 } })
    const held: Array<Uint8Array> = []
    for (let i = 0; i < 20; i++) {
      bench.append(same(100, 1))
      held.push(...bench.send())
    }
    const answers: Array<Uint8Array> = []
    const packets = held.map((datagram) => {
      const packet = bench.peer.open(bench.now, datagram)!
      if (packet.epoch === 1) answers.push(bench.peer.answer([list("Ack", packet.number)]))
      return packet
    })
    const under = (epoch: Epoch): number => bench.peer.packets.filter((packet) => packet.epoch === epoch).length
    assert.strictEqual(under(1), 12)
    const last = packets.at(-1)!
    assert.deepStrictEqual([last.epoch, last.long, ...tagsOf(last)], [0, true, "Stream", "Offer"])
    assert.strictEqual(bench.link.counters.silentRecoveries, 1)
    const zero = bench.peer.packets.filter((packet) => packet.epoch === 0).length
    for (const answer of answers) {
      bench.hear(answer)
      bench.transmit()
    }
    assert.deepStrictEqual([under(1), under(0)], [12, zero], "answers under the spent epoch bring no second OFFER")
    bench.now += roundTrip
    bench.answer(list("Ack", ...numbersOf(packets)), stored(1))
    const next = bench.transmit()
    assert.deepStrictEqual(epochsOf(next), [2])
    assert.isTrue(next.some((packet) => recordsOf(packet).length > 0))
  })

  it("opens nothing after as many forged answers as it may meet, and another epoch follows", () => {
    const bench = resting({ epochLimits: { mostForged: 4 } })
    append(bench)
    const honest = bench.peer.answer([list("Ack", bench.peer.packets.at(-1)!.number), stored(2)])
    for (let i = 0; i < 4; i++) {
      const answer = bench.peer.answer([list("Ack", 0)], { number: 3_000 })
      answer[answer.length - 1]! ^= 1
      bench.hear(answer)
    }
    assert.isFalse(bench.hear(honest))
    const [packet] = bench.transmit()
    assert.deepStrictEqual([packet!.epoch, ...tagsOf(packet!)], [0, "Stream", "Offer"])
    store(bench)
    assert.strictEqual(bench.link.status.epoch, 2)
    assert.strictEqual(bench.link.stored, 2)
  })

  it("of epoch 0 ends the run: a fresh one carries offers only", () => {
    const bench = new Bench({ records: same(1_000, 30), epochLimits: { packets: 2, mostPackets: 4 } })
    const { run } = bench.link
    const packets = bench.transmit()
    assert.strictEqual(packets.filter((packet) => packet.run === run).length, 4)
    assert.notStrictEqual(bench.link.run, run)
    const fresh = packets.filter((packet) => packet.run !== run)
    assert.deepStrictEqual(
      fresh.map((packet) => [packet.epoch, ...tagsOf(packet)]),
      [[0, "Stream", "Offer"]]
    )
  })
})
