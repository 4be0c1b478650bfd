import { assert, describe, it } from "@effect/vitest"
import { type Address, sameAddress } from "@pure-link/wire"
import * as Effect from "effect/Effect"
import * as Latch from "effect/Latch"
import type * as Layer from "effect/Layer"
import type * as Scope from "effect/Scope"
import { DatagramSocket, type OpenSocket } from "../DatagramSocket.ts"
import { forEachDatagram, type ReceivedDatagrams } from "../ReceivedDatagrams.ts"

/**
 * What every `DatagramSocket` promises, as tests. An implementation calls this from a test of its own; sockets of the
 * world given must not lose, duplicate or overtake.
 */

export interface SocketWorld {
  readonly layer: Layer.Layer<DatagramSocket>
  /** Where sockets bind, and the host under which they reach each other. */
  readonly bindHost: string
  readonly reachHost: string
  /** Runs a test, on a clock that moves by itself. */
  readonly run: (test: Effect.Effect<void, unknown>) => void | Promise<void>
}

export const datagramSocketContract = (name: string, world: SocketWorld): void => {
  const test = (behaviour: string, body: () => Generator<Step, void, never>) =>
    it(behaviour, () => world.run(Effect.gen(body).pipe(Effect.scoped, Effect.provide(world.layer))))
  const open = (port = 0) => Effect.flatMap(DatagramSocket, (service) => service.open({ host: world.bindHost, port }))
  const reach = (socket: OpenSocket): Address => ({ host: world.reachHost, port: socket.local.port })

  describe(`DatagramSocket contract: ${name}`, () => {
    test("delivers every datagram of a batch, whole and apart, whatever its length", function* () {
      const [a, b] = [yield* open(), yield* open()]
      const lengths = [0, 1, 1_200, 1_452, 37, 1_452]
      const slab = patternedSlab(lengths.length, 1_500)
      a.send(slab, 1_500, Uint32Array.from(lengths), lengths.length, reach(b))
      const got = yield* collect(b, lengths.length)
      assert.deepStrictEqual(sorted(got), sorted(lengths.map((length, i) => slab.slice(i * 1_500, i * 1_500 + length))))
      assert.strictEqual(b.counters.received, lengths.length)
      assert.strictEqual(a.counters.sent, lengths.length)
      assert.strictEqual(a.counters.sendErrors, 0)
    })

    test("has taken the bytes when send returns", function* () {
      const [a, b] = [yield* open(), yield* open()]
      const slab = patternedSlab(32, 1_452)
      const sent = Array.from({ length: 32 }, (_, i) => slab.slice(i * 1_452, (i + 1) * 1_452))
      a.send(slab, 1_452, new Uint32Array(32).fill(1_452), 32, reach(b))
      slab.fill(0)
      assert.deepStrictEqual(sorted(yield* collect(b, 32)), sorted(sent))
    })

    test("lets the receiver change the bytes and answer the sender with them", function* () {
      const [a, b] = [yield* open(), yield* open()]
      b.onReadable = () => {
        forEachDatagram(b.receive(16), (bytes, from) => {
          for (let i = 0; i < bytes.length; i++) bytes[i]! ^= 0xff
          b.send(bytes, bytes.length, Uint32Array.of(bytes.length), 1, from)
        })
      }
      a.send(Uint8Array.of(1, 2, 3, 9, 4, 5, 6), 4, Uint32Array.of(3, 3), 2, reach(b))
      const got = yield* collectWithSource(a, 2)
      assert.deepStrictEqual(sorted(got.map(({ bytes }) => bytes)), [
        [251, 250, 249],
        [254, 253, 252]
      ])
      assert.isTrue(got.every(({ from }) => sameAddress(from, reach(b))))
    })

    test("hands over at most as many as asked for, and keeps the rest", function* () {
      const [a, b] = [yield* open(), yield* open()]
      sendNumbered(a, reach(b), 0, 5)
      const got: Array<number> = []
      const visit = (bytes: Uint8Array) => void got.push(bytes[1]!)
      let first = 0
      while (got.length < 2) {
        yield* readable(b)
        first += forEachDatagram(b.receive(2 - got.length), visit)
      }
      assert.strictEqual(first, 2)
      while (got.length < 5) {
        yield* readable(b)
        forEachDatagram(b.receive(5), visit)
      }
      assert.deepStrictEqual(got, [0, 1, 2, 3, 4])
      assert.strictEqual(b.receive(5).count, 0)
    })

    test("calls onReadable while it is being set if datagrams wait, and not once it was taken away", function* () {
      const [a, b, other] = [yield* open(), yield* open(), yield* open()]
      sendNumbered(a, reach(b), 7, 1)
      yield* readable(b)
      let calls = 0
      b.onReadable = () => calls++
      assert.strictEqual(calls, 1)
      b.onReadable = undefined
      sendNumbered(a, reach(b), 8, 1)
      sendNumbered(a, reach(other), 0, 1)
      yield* collect(other, 1)
      assert.strictEqual(calls, 1)
      assert.deepStrictEqual(sorted(yield* collect(b, 2)), [
        [0, 7],
        [0, 8]
      ])
    })

    test("loses no wake-up of a driver that closes its latch before it reads", function* () {
      const [a, b] = [yield* open(), yield* open()]
      const wake = Latch.makeUnsafe(false)
      const seen = new Set<number>()
      b.onReadable = () => wake.openUnsafe()
      const driver = Effect.gen(function* () {
        while (seen.size < 600) {
          yield* wake.await
          wake.closeUnsafe()
          for (let more = true; more;) {
            const received = b.receive(3)
            forEachDatagram(received, (bytes) => void seen.add(bytes[0]! * 256 + bytes[1]!))
            more = received.more
            if (more) yield* Effect.yieldNow
          }
        }
      })
      const source = Effect.gen(function* () {
        for (let next = 0; next < 600; next += 1 + (next % 5)) {
          sendNumbered(a, reach(b), next, Math.min(1 + (next % 5), 600 - next))
          for (let turn = next % 3; turn > 0; turn--) yield* Effect.yieldNow
        }
      })
      yield* inTime(Effect.all([driver, source], { concurrency: "unbounded" }))
      assert.strictEqual(seen.size, 600)
    })

    test("frees its port with the scope, and is then silent", function* () {
      const closed = yield* Effect.scoped(open())
      const port = closed.local.port
      closed.send(Uint8Array.of(1), 1, Uint32Array.of(1), 1, reach(closed))
      assert.strictEqual(closed.counters.sendErrors, 1)
      const [a, b] = [yield* open(), yield* open(port)]
      assert.strictEqual(b.local.port, port)
      sendNumbered(a, reach(b), 3, 1)
      assert.deepStrictEqual(sorted(yield* collect(b, 1)), [[0, 3]])
      assert.strictEqual(closed.receive(8).count, 0)
    })

    test("serves a live peer after sending to a dead one", function* () {
      const dead = yield* Effect.scoped(Effect.map(open(), reach))
      const [a, b] = [yield* open(), yield* open()]
      for (let round = 0; round < 20; round++) {
        sendNumbered(a, dead, round, 2)
        sendNumbered(a, reach(b), round, 1)
        assert.deepStrictEqual(sorted(yield* collect(b, 1)), [[0, round]])
      }
    })

    test("counts what the system refuses, and goes on", function* () {
      const [a, b] = [yield* open(), yield* open()]
      const slab = new Uint8Array(65_508 + 2)
      slab.set([5, 6], 65_508)
      a.send(slab, 65_508, Uint32Array.of(65_508, 2), 2, reach(b))
      assert.deepStrictEqual(sorted(yield* collect(b, 1)), [[5, 6]])
      assert.strictEqual(a.counters.sendErrors, 1)
      assert.strictEqual(a.errorCodes.get("EMSGSIZE"), 1)
    })

    test("refuses a port that is taken, by code and with a remedy", function* () {
      const holder = yield* open()
      const error = yield* Effect.flip(open(holder.local.port))
      assert.strictEqual(error.operation, "bind")
      assert.strictEqual(error.code, "EADDRINUSE")
      assert.strictEqual(error.address.port, holder.local.port)
      assert.isAbove(error.remedy.length, 10)
      assert.isAbove(holder.buffers.receive, 0)
    })
  })
}

type Step = Effect.Effect<unknown, unknown, DatagramSocket | Scope.Scope>

interface Datagram {
  readonly bytes: Uint8Array
  readonly from: Address
}

const inTime = <A, E, R>(effect: Effect.Effect<A, E, R>) => Effect.timeout(effect, "10 seconds")

/** Waits until datagrams wait, and leaves them. */
const readable = (socket: OpenSocket) =>
  inTime(
    Effect.callback<void>((resume) => {
      socket.onReadable = () => {
        socket.onReadable = undefined
        resume(Effect.void)
      }
    })
  )

const collectWithSource = (socket: OpenSocket, count: number) =>
  inTime(
    Effect.callback<ReadonlyArray<Datagram>>((resume) => {
      const got: Array<Datagram> = []
      socket.onReadable = () => {
        let received: ReceivedDatagrams
        do {
          received = socket.receive(16)
          forEachDatagram(received, (bytes, from) => void got.push({ bytes: Uint8Array.from(bytes), from }))
        } while (received.more)
        if (got.length < count) return
        socket.onReadable = undefined
        resume(Effect.succeed(got))
      }
    })
  )

const collect = (socket: OpenSocket, count: number) =>
  Effect.map(collectWithSource(socket, count), (got) => got.map(({ bytes }) => bytes))

/** Sends `count` datagrams of two bytes, the numbers from `first` on. */
const sendNumbered = (socket: OpenSocket, to: Address, first: number, count: number): void => {
  const slab = new Uint8Array(2 * count)
  for (let i = 0; i < count; i++) slab.set([(first + i) >> 8, (first + i) & 0xff], 2 * i)
  socket.send(slab, 2, new Uint32Array(count).fill(2), count, to)
}

const patternedSlab = (count: number, stride: number): Uint8Array =>
  Uint8Array.from({ length: count * stride }, (_, i) => (i * 7 + Math.floor(i / stride) * 31) & 0xff)

const sorted = (datagrams: ReadonlyArray<Uint8Array>): ReadonlyArray<ReadonlyArray<number>> =>
  datagrams.map((bytes) => Array.from(bytes)).sort((a, b) => a.length - b.length || (String(a) < String(b) ? -1 : 1))
