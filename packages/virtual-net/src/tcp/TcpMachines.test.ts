import { assert, describe, it } from "@effect/vitest"
import { SeededStream } from "../SeededStream.ts"
import { Mark, Scoreboard } from "./Scoreboard.ts"
import { Segment, segmentBytes, writeData } from "./segment.ts"
import { TcpReceiver } from "./TcpReceiver.ts"
import { ToyPath } from "./ToyPath.ts"
import { Undo } from "./Undo.ts"

const largestWindow = 16_000_000

describe("Scoreboard", () => {
  it("counts and orders as a naive model does, whatever happens to segments", () => {
    for (let seed = 0; seed < 10; seed++) compareWithModel(new SeededStream(seed, "scoreboard"))
  })
})

describe("Undo", () => {
  it("is due when D-SACKs told of every copy since the marker, and only then", () => {
    const undo = new Undo()
    undo.begin(10, 0)
    for (const timestamp of [50, 51]) undo.noteCopy(timestamp)
    undo.noteNeedless(10, 1)
    undo.noteNeedless(11, 1)
    assert.isFalse(undo.isDue(60))
    undo.noteNeedless(12, 1)
    assert.isTrue(undo.isDue(60))
    undo.end()
    assert.isFalse(undo.isDue(60))
  })

  it("is due when an acknowledgement answers what was sent before the first copy (Eifel)", () => {
    const undo = new Undo()
    undo.begin(10, 0)
    undo.noteCopy(50)
    assert.deepStrictEqual([undo.isDue(50), undo.isDue(0), undo.isDue(49)], [false, false, true])
  })
})

describe("TcpReceiver", () => {
  it("acknowledges sixteen segments at once, then every second one, and a last one after 40 ms", () => {
    const { arrive, told, receiver } = receiverAt()
    for (let n = 0; n < 21; n++) arrive(1_000 * n, n)
    assert.deepStrictEqual(
      told.map((ack) => ack.number),
      [...Array.from({ length: 16 }, (_, n) => n + 1), 18, 20]
    )
    assert.strictEqual(receiver.deadline(), 60_000)
    assert.strictEqual(receiver.poll(59_999, new Uint8Array(99)), 0)
    assert.isAbove(receiver.poll(60_000, new Uint8Array(99)), 0)
  })

  it("tells the last three ranges, newest first, and at once when a gap is filled", () => {
    const { arrive, told, receiver } = receiverAt()
    for (const n of [0, 2, 4, 6, 8, 5]) arrive(1_000, n)
    assert.deepStrictEqual(told.at(-1), { number: 1, blocks: ["4-7", "8-9", "2-3"] })
    arrive(1_100, 1)
    assert.deepStrictEqual(told.at(-1), { number: 3, blocks: ["4-7", "8-9"] })
    arrive(1_200, 3)
    arrive(1_300, 7)
    assert.deepStrictEqual(told.at(-1), { number: 9, blocks: [] })
    assert.strictEqual(receiver.deliveredBytes, 9 * segmentBytes)
  })

  it("tells a segment that came twice as D-SACK, once", () => {
    const { arrive, told } = receiverAt()
    for (const n of [0, 1, 0]) arrive(1_000, n)
    assert.deepStrictEqual(told.at(-1), { number: 2, blocks: ["0-1"] })
    for (const n of [4, 4]) arrive(1_000, n)
    assert.deepStrictEqual(told.slice(-2), [
      { number: 2, blocks: ["4-5"] },
      { number: 2, blocks: ["4-5", "4-5"] }
    ])
    arrive(1_000, 5)
    assert.deepStrictEqual(told.at(-1), { number: 2, blocks: ["4-6"] })
  })

  it("after three acknowledgements for one gap tells of it every millisecond only", () => {
    const { arrive, told, receiver } = receiverAt()
    for (let n = 0; n < 16; n++) arrive(0, n)
    for (let n = 17; n < 23; n++) arrive(100 * n, n)
    assert.strictEqual(told.length, 16 + 3)
    assert.strictEqual(receiver.deadline(), 2_000 + 1_000)
  })

  it("refuses what a copy that fills the gap overtook by more than a millisecond (PAWS)", () => {
    const { arrive, receiver } = receiverAt()
    arrive(10_000, 0, 10)
    arrive(20_000, 1, 20)
    arrive(20_000, 2, 19)
    arrive(20_000, 3, 18)
    assert.strictEqual(receiver.counters.stale, 1)
    assert.strictEqual(receiver.next, 3)
  })
})

describe("TcpSender and TcpReceiver", () => {
  it("starts with ten segments and doubles every round trip", () => {
    const path = new ToyPath({ largestWindow }, () => [50_000])
    path.run(0)
    assert.strictEqual(path.sender.counters.segmentsSent, 10)
    path.run(399_999)
    assert.closeTo(path.sender.window / segmentBytes, 80, 2)
  })

  it("delivers everything under loss, reordering and duplication, and the same for the same seed", () => {
    const bytes = 500 * segmentBytes + 7
    for (let seed = 0; seed < 40; seed++) {
      const [first, second] = [lossyPath(seed, bytes), lossyPath(seed, bytes)]
      assert.strictEqual(first.receiver.deliveredBytes, bytes, `seed ${seed}`)
      assert.isTrue(first.sender.isComplete, `seed ${seed}`)
      assert.strictEqual(first.now, second.now)
      assert.deepStrictEqual(first.sender.counters, second.sender.counters)
    }
  })

  it("backs its timeout off exponentially while nothing comes back, and goes on at the next sign of life", () => {
    const sent: Array<number> = []
    const path = new ToyPath({ largestWindow, bytes: 30 * segmentBytes }, ({ at, isData }) => {
      if (isData && at > 20_000) sent.push(at)
      return at > 20_000 && at < 10_000_000 ? [] : [10_000]
    })
    path.run(60_000_000)
    const blackout = sent.filter((at) => at > 200_000 && at < 10_000_000)
    const pauses = blackout.slice(1).map((at, i) => at - blackout[i]!)
    assert.isAtLeast(pauses.length, 4, `${pauses}`)
    for (let i = 1; i < pauses.length; i++) assert.closeTo(pauses[i]! / pauses[i - 1]!, 2, 0.01)
    assert.closeTo(pauses[0]!, 2 * 210_000, 100_000)
    assert.isTrue(path.sender.isComplete)
  })

  it("reduces once for an episode, by CUBIC's beta, however many segments it lost", () => {
    const lost = new Set<number>()
    let largest = 0
    let free = 0
    const path: ToyPath = new ToyPath({ largestWindow }, ({ at, number, isData }) => {
      if (path.sender.counters.fastRecoveries === 0) largest = Math.max(largest, path.sender.window)
      if (!isData) return [25_000]
      free = Math.max(free, at) + 20
      if (number < 600 || number >= 700 || number % 4 !== 0 || lost.has(number)) return [free - at + 25_000]
      lost.add(number)
      return []
    })
    while (path.receiver.next < 1_200) path.run(path.now + 1_000)
    const { fastRecoveries, retransmissions, timeouts } = path.sender.counters
    assert.deepStrictEqual([fastRecoveries, retransmissions, timeouts], [1, 25, 0])
    assert.isFalse(path.sender.inSlowStart)
    assert.closeTo(path.sender.window / largest, 717 / 1_024, 0.03)
  })

  it("repairs the loss of the last segments by a probe, without a timeout", () => {
    const path = new ToyPath({ largestWindow, bytes: 100 * segmentBytes }, ({ order, isData }) =>
      isData && (order === 98 || order === 99) ? [] : [10_000]
    )
    path.run(10_000_000)
    const { probes, timeouts } = path.sender.counters
    assert.deepStrictEqual({ probes, timeouts }, { probes: 1, timeouts: 0 })
    assert.isTrue(path.sender.isComplete)
    assert.isBelow(path.now, 300_000)
  })

  it("undoes a reduction whose loss was only late", () => {
    const late = new ToyPath({ largestWindow }, ({ order, isData }) => [isData && order === 300 ? 70_000 : 25_000])
    const lost = new ToyPath({ largestWindow }, ({ order, isData }) => (isData && order === 300 ? [] : [25_000]))
    for (const path of [late, lost]) path.run(600_000)
    assert.strictEqual(late.sender.counters.fastRecoveries, 1)
    assert.strictEqual(late.sender.counters.undone, 1)
    assert.strictEqual(lost.sender.counters.undone, 0)
    assert.isAbove(late.sender.window, 1.4 * lost.sender.window)
  })

  it("undoes a timeout whose segments were only late (F-RTO)", () => {
    const path = new ToyPath({ largestWindow: 400_000 }, ({ at }) => [
      at > 300_000 && at < 900_000 ? 900_000 - at + 25_000 : 25_000
    ])
    path.run(2_000_000)
    assert.isAtLeast(path.sender.counters.timeouts, 1)
    assert.isAtLeast(path.sender.counters.undone, 1)
  })

  it("waits out reordering once it has seen some", () => {
    const random = new SeededStream(1, "reordering")
    const path = new ToyPath({ largestWindow: 400_000 }, ({ isData }) => [
      Math.round(isData ? 50_000 + 2_000 * random.next() : 50_000)
    ])
    path.run(3_000_000)
    const before = path.sender.counters.retransmissions
    path.run(30_000_000)
    assert.strictEqual(path.sender.counters.retransmissions, before)
    assert.isAbove(path.receiver.deliveredBytes, 0.9 * 400_000 * 280)
  })

  it("grows no window that the receiver, not the window, limits", () => {
    const path = new ToyPath({ largestWindow: 100 * segmentBytes }, () => [10_000])
    path.run(5_000_000)
    assert.isAtMost(path.sender.window, 200 * segmentBytes)
    assert.closeTo((path.receiver.deliveredBytes * 20_000) / 5_000_000, 100 * segmentBytes, 5 * segmentBytes)
  })
})

/** Loses a tenth of everything, delays by up to 30 ms more, and delivers every twentieth twice. */
const lossyPath = (seed: number, bytes: number): ToyPath => {
  const random = new SeededStream(seed, "path")
  const delays = (): ReadonlyArray<number> => {
    const delay = () => 10_000 + Math.round(30_000 * random.next())
    if (random.next() < 0.1) return []
    return random.next() < 0.05 ? [delay(), delay()] : [delay()]
  }
  const path = new ToyPath({ largestWindow: 1_000_000, bytes }, delays)
  path.run(600_000_000)
  return path
}

const receiverAt = () => {
  const receiver = new TcpReceiver({ window: 1_000_000 })
  const told: Array<{ number: number; blocks: Array<string> }> = []
  const out = new Uint8Array(2_000)
  const segment = new Segment()
  const arrive = (now: number, number: number, timestamp = 1): void => {
    receiver.handleSegment(now, out.subarray(0, writeData(out, number, segmentBytes, timestamp)))
    const length = receiver.poll(now, out)
    if (length === 0) return
    assert.isTrue(segment.read(out.subarray(0, length)))
    const blocks = Array.from({ length: segment.blocks }, (_, i) => `${segment.starts[i]}-${segment.ends[i]}`)
    told.push({ number: segment.number, blocks })
  }
  return { receiver, told, arrive }
}

/** A scoreboard as plain objects in two arrays: by number, and by time of sending. */
const compareWithModel = (random: SeededStream): void => {
  interface Model {
    number: number
    marks: number
  }
  const board = new Scoreboard(64)
  const model: Array<Model> = []
  const order: Array<Model> = []
  const pick = <A>(from: ReadonlyArray<A>): A | undefined => from[Math.floor(random.next() * from.length)]
  const leave = (segment: Model) => order.includes(segment) && order.splice(order.indexOf(segment), 1)
  const count = (mark: number) => model.filter((segment) => (segment.marks & mark) !== 0).length
  const actions = [
    () => {
      if (model.length >= 60) return
      const segment = { number: board.send(order.length), marks: 0 }
      model.push(segment)
      order.push(segment)
    },
    () => {
      const segment = pick(model.filter(({ marks }) => (marks & Mark.sacked) === 0))
      if (segment === undefined) return
      board.sack(segment.number)
      leave(segment)
      const gone = (segment.marks & Mark.lost) !== 0 ? Mark.lost | Mark.retransmitted : 0
      segment.marks = (segment.marks & ~gone) | Mark.sacked
    },
    () => {
      const segment = pick(model)
      if (segment === undefined) return
      board.markLost(segment.number)
      if ((segment.marks & Mark.sacked) !== 0) return
      if ((segment.marks & Mark.lost) !== 0) segment.marks &= ~Mark.retransmitted
      segment.marks |= Mark.lost
    },
    () => {
      const segment = model.find(({ marks }) => (marks & Mark.lost) !== 0 && (marks & Mark.retransmitted) === 0)
      assert.strictEqual(board.nextToResend(), board.hasLostToResend ? (segment?.number ?? -1) : -1)
      if (segment === undefined || !board.hasLostToResend) return
      board.resend(segment.number, 0, false)
      segment.marks |= Mark.retransmitted | Mark.everRetransmitted
      leave(segment)
      order.push(segment)
    },
    () => {
      const segment = model.shift()
      if (segment === undefined) return
      leave(segment)
      board.release()
    }
  ]
  for (let step = 0; step < 1_000; step++) {
    pick(actions)!()
    const sacked = count(Mark.sacked)
    const inFlight = model.length - sacked - count(Mark.lost) + count(Mark.retransmitted)
    assert.deepStrictEqual(
      [board.outstanding, board.sacked, board.lost, board.retransmitted, board.inFlight],
      [model.length, sacked, count(Mark.lost), count(Mark.retransmitted), inFlight]
    )
    const highest = model.findLast(({ marks }) => (marks & Mark.sacked) !== 0)?.number
    assert.strictEqual(board.sackedEnd, highest === undefined ? board.unacknowledged : highest + 1)
    const listed: Array<number> = []
    for (let number = board.sentFirst(); number >= 0; number = board.sentAfter(number)) listed.push(number)
    assert.deepStrictEqual(
      listed,
      order.map(({ number }) => number)
    )
  }
}
