import { type CongestionController, FixedSize, Policies, type PolicyMakers } from "@pure-link/recovery"
import type { TraceEvent } from "@pure-link/trace"
import { type Bytes, type Micros, never, RefusalReason } from "@pure-link/wire"
import { assert, describe, it } from "@effect/vitest"
import { numbersOf, type Packets, same, second } from "../test/packets.ts"
import {
  Bench,
  frameOf,
  list,
  makeRecords,
  type OpenedPacket,
  type Part,
  partsOf,
  stored,
  tagsOf
} from "../test/scriptedPeer.ts"

const large = 1_452
const small = 1_200
const lengthsOf = (packets: Packets): ReadonlyArray<number> => packets.map((packet) => packet.length)
const isProbe = (packet: OpenedPacket): boolean => packet.length === large && tagsOf(packet).join() === "Ping"

/** A sender that probes its path, with the first round trip of 20 ms behind it unless told otherwise. */
const discovering = (records: ReadonlyArray<Uint8Array> = same(900, 200)): Bench =>
  new Bench({ records, policies: Policies.defaults })

/** Answers everything that the peer opened, a round trip after it was sent. */
const answerAll = (bench: Bench, n = 0): void => {
  bench.now += 20_000
  bench.answer(list("Ack", ...numbersOf(bench.peer.packets)), stored(n))
}

describe("probes of the path (spec §14.8)", () => {
  it("go alone, as PING and PADDING of 1,452 B, once STREAM and ACCEPT are there", () => {
    const bench = discovering()
    assert.isTrue(bench.start().every((packet) => packet.length <= small))
    const packets = bench.transmit()
    const probes = packets.filter((packet) => packet.length > small)
    assert.strictEqual(probes.length, 1)
    assert.deepStrictEqual(new Set(probes[0]!.frames.map((frame) => frame._tag)), new Set(["Ping", "Padding"]))
    assert.deepStrictEqual([probes[0]!.length, probes[0]!.long, probes[0]!.epoch], [large, false, 1])
    assert.isAbove(packets.length, 5)
  })

  it("let packets with records grow when they are acknowledged, and not before", () => {
    const bench = discovering()
    bench.start()
    const [probe, ...others] = bench.transmit()
    assert.isTrue(isProbe(probe!))
    bench.now += 20_000
    bench.answer(list("Ack", 0, ...numbersOf(others.slice(0, 2))), stored(0))
    assert.isTrue(bench.transmit().every((packet) => packet.length <= small))
    bench.answer(list("Ack", ...numbersOf(bench.peer.packets)), stored(0))
    const grown = bench.pass(5_000)
    assert.isAbove(grown.length, 3)
    assert.strictEqual(Math.max(...lengthsOf(grown)), large)
    assert.isFalse(grown.some(isProbe))
  })

  it("leave records and window alone when they are lost, and go again after a second, three times", () => {
    const bench = discovering(same(1, 1))
    const probes: Array<Micros> = []
    bench.start()
    for (const end = bench.now + 100 * second; bench.now < end;) {
      const packets = bench.next()
      if (packets.some(isProbe)) probes.push(bench.now)
      bench.now += 20_000
      const arrived = bench.peer.packets.filter((packet) => !isProbe(packet))
      bench.answer(list("Ack", ...numbersOf(arrived).slice(-200)), stored(0))
      if (bench.link.status.inFlight === 0) continue
      bench.append(same(1, 4))
    }
    assert.strictEqual(probes.length, 4)
    for (let i = 1; i < 4; i++) assert.closeTo(probes[i]! - probes[i - 1]!, 1_100_000, 200_000)
    assert.strictEqual(bench.link.recoveryCounters.episodes, 0)
  })

  it("do not go while nothing is to be delivered, but with the first record after that", () => {
    const bench = discovering(same(10, 1))
    bench.start(stored(1))
    assert.isTrue(bench.pass(20 * second).every((packet) => packet.length <= small))
    answerAll(bench, 1)
    bench.append(same(10, 1))
    assert.isTrue(bench.transmit().some(isProbe))
  })

  it("do not go to a receiver that refuses", () => {
    const bench = discovering()
    const packets = bench.transmit()
    bench.now += 20_000
    bench.answer(list("Seen", ...numbersOf(packets)), stored(0), {
      _tag: "Refused",
      reason: RefusalReason.noSuchInput
    })
    assert.strictEqual(bench.link.state, "refused")
    assert.isTrue(bench.pass(100 * second).every((packet) => packet.length <= small))
  })

  it("do not go into silence, but when it ends", () => {
    const bench = discovering()
    bench.start()
    const [probe, ...others] = bench.transmit()
    bench.now += 20_000
    bench.answer(list("Ack", 0, ...numbersOf(others)), stored(0))
    assert.isTrue(isProbe(probe!))
    bench.transmit()
    const silent = bench.pass(30 * second)
    assert.isAbove(silent.length, 5)
    assert.isFalse(silent.some(isProbe))
    const arrived = bench.peer.packets.filter((packet) => packet.number > 0 && !isProbe(packet))
    bench.answer(list("Ack", ...numbersOf(arrived)), stored(0))
    assert.isTrue(bench.pass(1_000).some(isProbe))
  })

  it("do not go in epoch 0, nor before STREAM was answered", () => {
    const inZero = discovering()
    inZero.peer.accepts = false
    inZero.start()
    const unnamed = discovering()
    const packets = unnamed.transmit()
    unnamed.now += 20_000
    unnamed.answer(list("Seen", ...numbersOf(packets)), { _tag: "Name" })
    for (const bench of [inZero, unnamed]) {
      assert.isTrue(bench.transmit().every((packet) => packet.length <= small))
      assert.isTrue(bench.pass(3 * second).every((packet) => packet.length <= small))
    }
    assert.isAbove(unnamed.peer.epochs!.answerEpoch, 0)
  })
})

/** A path whose size the test sets; the sender follows with the next answer. */
class ToldSize extends FixedSize {
  override datagramSize: Bytes = large
  override probeAt: Micros = never
  constructor() {
    super(large)
  }
}

const told = (path: ToldSize, others: Partial<PolicyMakers> = {}): PolicyMakers => ({
  ...Policies.defaults,
  pathMtu: { make: () => path },
  ...others
})

const partsIn = (packets: Packets): ReadonlyArray<Part> => packets.flatMap((packet) => partsOf(packet, 1))
const placesOf = (parts: ReadonlyArray<Part>): ReadonlyArray<string> =>
  parts.flatMap(({ number, offset, bytes }) => Array.from(bytes, (_, i) => `${number}:${offset + i}`))

/**
 * The first packet of a large round was lost, and by now packets must be small: it goes again in pieces. All others
 * arrived.
 */
const split = (): { readonly bench: Bench; readonly whole: OpenedPacket; readonly pieces: Packets } => {
  const path = new ToldSize()
  const bench = new Bench({ records: same(1_013, 300), datagramSize: large, policies: told(path) })
  bench.start()
  const [whole, ...others] = bench.pass(5_000)
  assert.strictEqual(whole!.length, large)
  path.datagramSize = small
  bench.now += 15_000
  bench.answer(list("Ack", 0, ...numbersOf(others)), stored(0))
  const sent = bench.pass(5_000)
  const wanted = new Set(placesOf(partsOf(whole!, 1)))
  const pieces = sent.filter((packet) => placesOf(partsOf(packet, 1)).some((place) => wanted.has(place)))
  return { bench, whole: whole!, pieces }
}

describe("packets after the path has shrunk (spec §9.2, §14.8)", () => {
  it("are small at once, and carry what no longer fits in pieces, every byte once", () => {
    const { bench, whole, pieces } = split()
    assert.isAtLeast(pieces.length, 2)
    assert.isTrue(bench.peer.packets.slice(-pieces.length).every((packet) => packet.length <= small))
    const wanted = placesOf(partsOf(whole, 1))
    const carried = placesOf(partsIn(pieces)).filter((place) => wanted.includes(place))
    assert.deepStrictEqual([...carried].sort(), [...wanted].sort())
  })

  it("are filled from one span to the next, whatever was cut", () => {
    const path = new ToldSize()
    const bench = new Bench({ records: same(1_013, 300), datagramSize: large, policies: told(path) })
    bench.start()
    const wholes = bench.pass(5_000).slice(0, 8)
    path.datagramSize = small
    bench.now += 15_000
    const lost = numbersOf(wholes)
    const answer = (): boolean =>
      bench.answer(list("Ack", ...numbersOf(bench.peer.packets).filter((n) => !lost.includes(n))), stored(0))
    answer()
    const wanted = new Set(wholes.flatMap((whole) => placesOf(partsOf(whole, 1))))
    const size = wanted.size
    const pieces: Array<OpenedPacket> = []
    for (let turn = 0; turn < 5; turn++) {
      const sent = bench.pass(20_000)
      pieces.push(...sent.filter((packet) => placesOf(partsOf(packet, 1)).some((place) => wanted.has(place))))
      answer()
    }
    for (const place of placesOf(partsIn(pieces))) wanted.delete(place)
    assert.strictEqual(wanted.size, 0)
    assert.strictEqual(pieces.length, Math.ceil(size / (small - 60)))
  })

  it("are not sent again, whatever becomes of them, once the whole was acknowledged late", () => {
    const { bench, whole, pieces } = split()
    bench.now += 1_000
    bench.answer(list("Ack", ...numbersOf(bench.peer.packets).filter((n) => n <= pieces[0]!.number - 1)), stored(0))
    const later = bench.pass(15_000)
    assert.isAbove(later.length, 3)
    const lost = numbersOf(pieces)
    bench.answer(list("Ack", ...numbersOf(bench.peer.packets).filter((n) => !lost.includes(n))), stored(0))
    bench.now += 20_000
    const again = [...later, ...bench.pass(20_000)]
    const wanted = new Set(placesOf(partsOf(whole, 1)))
    assert.isAbove(again.length, 3)
    assert.isFalse(placesOf(partsIn(again)).some((place) => wanted.has(place)))
  })

  it("go again as they were when a piece is lost", () => {
    const { bench, whole, pieces } = split()
    bench.now += 20_000
    const others = numbersOf(bench.peer.packets).filter((n) => n !== whole.number && n !== pieces[0]!.number)
    bench.answer(list("Ack", ...others), stored(0))
    const [again] = bench.transmit()
    assert.isAbove(again!.number, pieces.at(-1)!.number)
    assert.deepStrictEqual(frameOf(again!, "Records"), frameOf(pieces[0]!, "Records"))
  })

  it("bring everything over when a black hole opens below all that is in flight", () => {
    const bench = new Bench({ records: same(1_013, 300), policies: Policies.defaults })
    bench.start()
    bench.transmit()
    answerAll(bench)
    const vanished = bench.send()
    assert.isTrue(vanished.some((datagram) => datagram.length === large))
    const places = new Set<string>()
    const start = bench.now
    for (let turns = 0; places.size < 1_013 * 300; turns++) {
      assert.isBelow(turns, 1_000)
      for (const packet of bench.peer.packets.splice(0)) {
        for (const place of placesOf(partsOf(packet, 1))) places.add(place)
      }
      const sent = bench.runUntil(bench.now + 20_000).filter(({ datagram }) => datagram.length <= 1_300)
      const arrived = sent.flatMap(({ datagram }) => bench.peer.open(bench.now, datagram) ?? [])
      if (arrived.length > 0) bench.answer(list("Ack", ...numbersOf(arrived)), stored(0))
    }
    assert.isBelow(bench.now - start, 2 * second)
    assert.strictEqual(bench.link.recoveryCounters.blackHoles, 1)
  })
})

describe("the size of datagrams", () => {
  it("is from 1,200 to 1,452 B, which the constructor holds options to", () => {
    for (const datagramSize of [100, 1_199, 1_453, 9_000, NaN]) {
      assert.throws(() => new Bench({ datagramSize }), RangeError, `${datagramSize}`)
    }
    for (const datagramSize of [1_200, 1_452]) {
      const bench = new Bench({ datagramSize, records: makeRecords([5_000]) })
      assert.strictEqual(Math.max(...lengthsOf(bench.start())), datagramSize)
    }
  })
})

describe("a black hole that is suspected (spec §14.8)", () => {
  /** All datagrams above 1,200 B vanish, until the first small one arrived; the answer to it is heard. */
  const suspicious = (): Bench => {
    const bench = new Bench({ records: same(1_013, 300), datagramSize: large, policies: Policies.defaults })
    bench.start()
    assert.isTrue(bench.send().some((datagram) => datagram.length === large))
    for (;;) {
      const [first] = bench.runUntil(bench.link.deadline()).filter(({ datagram }) => datagram.length <= small)
      if (first === undefined) continue
      const packet = bench.peer.open(bench.now, first.datagram)!
      bench.now += 20_000
      bench.answer(list("Ack", packet.number), stored(0))
      return bench
    }
  }

  it("is probed for at once, after all that may go, though neither window nor pacer have room", () => {
    const bench = suspicious()
    const packets = bench.transmit()
    assert.isAbove(packets.length, 2)
    assert.isTrue(isProbe(packets.at(-1)!))
    assert.isTrue(packets.slice(0, -1).every((packet) => packet.length <= small && partsOf(packet, 1).length > 0))
    assert.deepStrictEqual(bench.transmit(), [], "and nothing is left that may go")
  })

  it("gives the size back with the answer to the probe", () => {
    const bench = suspicious()
    assert.isTrue(isProbe(bench.transmit().at(-1)!))
    answerAll(bench)
    assert.strictEqual(Math.max(...lengthsOf(bench.pass(20_000))), large)
    const { blackHoles, reductions, undone } = bench.link.recoveryCounters
    assert.deepStrictEqual([blackHoles, reductions, undone], [0, 1, 0])
  })
})

describe("framing", () => {
  /** Drains records, a window per round trip of 20 ms, and returns what left in full plain packets of a size. */
  const drain = (records: ReadonlyArray<Uint8Array>, datagramSize: Bytes): Array<number> => {
    const overheads: Array<number> = []
    const emit = (event: TraceEvent): void => {
      if (event._tag !== "PacketSent" || !event.plain || !event.full) return
      assert.isAtMost(event.bytes, datagramSize)
      if (event.recordBytes > small / 2) overheads.push(event.bytes - event.recordBytes)
    }
    const path = new ToldSize()
    path.datagramSize = datagramSize
    const bench = new Bench({ records, datagramSize, policies: told(path), trace: { packets: true, emit } })
    bench.start()
    const ends = new Set<number>()
    let n = 0
    for (let turns = 0; n < records.length; turns++) {
      assert.isBelow(turns, 2_000)
      const packets = bench.pass(20_000)
      for (const part of partsIn(packets)) if (part.ends) ends.add(part.number)
      for (const packet of bench.peer.packets.splice(0)) {
        for (const part of partsOf(packet, 1)) if (part.ends) ends.add(part.number)
      }
      while (ends.delete(n + 1)) n++
      if (packets.length > 0) bench.answer(list("Ack", ...numbersOf(packets)), stored(n))
    }
    return overheads
  }

  for (const datagramSize of [small, large]) {
    it(`takes at most 41 B of every full plain packet of ${datagramSize} B in a drain of 1,013 B records`, () => {
      const overheads = drain(same(1_013, 1_500), datagramSize)
      assert.isAbove(overheads.length, 900)
      assert.strictEqual(Math.max(...overheads), 41)
    })
  }

  it("takes no more at a record number far above the base of the run", () => {
    const empty = new Uint8Array(0)
    const records = [...Array.from({ length: 70_000 }, () => empty), ...same(1_013, 300)]
    const overheads = drain(records, large)
    assert.isAbove(overheads.length, 150)
    assert.strictEqual(Math.max(...overheads), 41)
  })
})

describe("deadlines", () => {
  it("lie ahead while the flight ring is full and a probe of the path has become due, and the pacer rests", () => {
    const rests: Array<Micros> = []
    const rest = (now: Micros): void => void rests.push(now)
    const path = new ToldSize()
    path.datagramSize = small
    const window = 2 ** 30
    const controller = { name: "vast", window, inSlowStart: false } as unknown as CongestionController
    for (const call of ["handleSent", "handleAcknowledged", "handleLate", "handleCongestion", "setDatagramSize"]) {
      Object.assign(controller, { [call]: () => undefined })
    }
    const policies = told(path, {
      congestionControl: { make: () => controller },
      pacing: {
        make: () => ({
          name: "none",
          paceAt: (now) => now,
          roomFor: () => Infinity,
          handleSent() {},
          rest,
          waitForRoom: (now) => (rest(now), never),
          setDatagramSize() {},
          restart() {}
        })
      }
    })
    const records = [new Uint8Array(12_000_000), new Uint8Array(12_000_000)]
    const bench = new Bench({ records, policies })
    bench.start()
    path.probeAt = bench.now + 10
    assert.strictEqual(bench.send().length, 16_384)
    bench.now += 20
    assert.deepStrictEqual(bench.send(), [])
    assert.isAbove(bench.link.deadline(), bench.now)
    assert.strictEqual(rests.at(-1), bench.now, "time that passes now gives no credit")
  })
})
