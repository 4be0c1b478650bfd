import { assert, describe, it } from "@effect/vitest"
import { Policies } from "@pure-link/recovery"
import * as Schema from "effect/Schema"
import { grow, numbersOf, roundTrip, same } from "../test/packets.ts"
import { Bench, type BenchOptions, list, makeRecords, stored } from "../test/scriptedPeer.ts"
import { transfer } from "../test/transfer.ts"

/** Trains: many datagrams made and sealed in one call are the very datagrams that would have been made one by one. */

const between = (minimum: number, maximum: number) => Schema.Int.check(Schema.isBetween({ minimum, maximum }))
const stride = 1_500

/** A bench whose link is polled for trains of these lengths, over and over. */
class TrainBench extends Bench {
  readonly trains: Array<number> = []
  readonly #most: ReadonlyArray<number>

  constructor(options: BenchOptions, most: ReadonlyArray<number>) {
    super(options)
    this.#most = most
  }

  override send(): Array<Uint8Array> {
    const sent: Array<Uint8Array> = []
    const slab = new Uint8Array(64 * stride)
    const lengths = new Uint32Array(64)
    for (;;) {
      const most = this.#most[this.trains.length % this.#most.length]!
      const count = this.link.pollTrain(this.now, slab, stride, lengths, most)
      if (count === 0) break
      this.trains.push(count)
      for (let i = 0; i < count; i++) sent.push(slab.slice(i * stride, i * stride + lengths[i]!))
    }
    this.datagrams.push(...sent)
    return sent
  }
}

describe("trains", () => {
  it.prop(
    "carry the same datagrams, byte for byte, as polling one by one, whatever the path does",
    {
      seed: between(1, 1_000_000),
      lossPercent: between(0, 20),
      jitter: between(0, 20_000),
      fullPercent: between(0, 10),
      restarts: Schema.Array(between(1, 200)).check(Schema.isMaxLength(1)),
      saysLost: Schema.Boolean,
      packets: Schema.Literals([1, 20, 2 ** 22]),
      sizes: Schema.Array(Schema.Literals([0, 1, 61, 200, 255, 256, 1013, 4_000, 90_000])).check(
        Schema.isMaxLength(60)
      ),
      probesPath: Schema.Boolean,
      most: Schema.Array(between(1, 64)).check(Schema.isBetweenLength(1, 5))
    },
    ({ sizes, packets, probesPath, most, ...path }) => {
      const options: BenchOptions = {
        records: makeRecords([...sizes, ...sizes]),
        queueBytes: 100_000,
        epochLimits: { packets },
        ...(probesPath ? { policies: Policies.defaults } : {})
      }
      const single = new Bench(options)
      transfer(single, path)
      const train = new TrainBench(options, most)
      transfer(train, path)
      assert.strictEqual(train.datagrams.length, single.datagrams.length)
      for (const [i, datagram] of train.datagrams.entries()) assert.deepStrictEqual(datagram, single.datagrams[i])
      assert.deepStrictEqual(train.link.counters, single.link.counters)
      assert.deepStrictEqual(train.link.recoveryCounters, single.link.recoveryCounters)
    },
    { arbitrary: { runs: 60, seed: 5 } }
  )

  it("are as long as window and caller allow, in datagrams of one length", () => {
    const bench = new TrainBench({ records: same(1_013, 400), datagramSize: 1_452 }, [64])
    grow(bench, () => 0)
    bench.trains.length = 0
    const sent = bench.send()
    assert.deepStrictEqual(bench.trains, [sent.length])
    assert.isAtLeast(sent.length, 10)
    assert.deepStrictEqual([...new Set(sent.map(({ length }) => length))], [1_452])
  })

  it("leave a probe of the path alone, and ask to be polled again at once after it", () => {
    const bench = new Bench({ records: same(1_013, 400), policies: Policies.defaults })
    bench.start()
    const slab = new Uint8Array(64 * stride)
    const lengths = new Uint32Array(64)
    bench.now += roundTrip
    bench.answer(list("Ack", ...numbersOf(bench.peer.packets)), stored(0))
    const first = bench.link.pollTrain(bench.now, slab, stride, lengths, 64)
    assert.deepStrictEqual([first, lengths[0]], [1, 1_452])
    assert.isAtMost(bench.link.deadline(), bench.now)
    assert.isAbove(bench.link.pollTrain(bench.now, slab, stride, lengths, 64), 1)
    assert.isAbove(bench.link.deadline(), bench.now)
  })

  it("end before a fresh run begins", () => {
    const bench = new TrainBench({ records: same(500, 200), recordNumbersOfRun: 30 }, [64])
    const { run } = bench.link
    bench.start(stored(5))
    let opened = bench.transmit()
    while (bench.link.run === run) {
      bench.now += roundTrip
      const mine = bench.peer.packets.filter((packet) => packet.run === run)
      bench.answer(list("Ack", ...numbersOf(mine)), stored(25))
      opened = bench.transmit()
    }
    assert.isTrue(opened.some((packet) => packet.run === bench.link.run && packet.number === 0))
    assert.strictEqual(bench.peer.unopened, 0)
  })
})
