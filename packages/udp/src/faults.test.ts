import { afterEach, assert, describe, it } from "@effect/vitest"
import { type Fault, load } from "@pure-link/native"
import { DatagramSocket, type OpenSocket } from "@pure-link/ports"
import { type Address, largestDatagram } from "@pure-link/wire"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Logger from "effect/Logger"
import * as Schedule from "effect/Schedule"
import type * as Scope from "effect/Scope"
import { constants } from "node:os"
import { type NativeDatagramOptions, nativeLayer } from "./DatagramSocketNative.ts"
import { type FaultyAddon, faultyAddon } from "./faultyAddon.ts"
import type { NativeSocket } from "./NativeSocket.ts"

/** The rows of docs/errno.md, each made to happen in the addon's test build. */

const hasAddon = load().addon !== undefined
const addon = hasAddon ? faultyAddon().addon : (undefined as unknown as FaultyAddon)
const logged: Array<unknown> = []
const logger = Logger.layer([Logger.make(({ message }) => void logged.push(message))])

describe.skipIf(!hasAddon)("errors of the system while sending", () => {
  afterEach(clear)

  for (const code of ["EIO", "EINVAL", "EOPNOTSUPP"]) {
    it(`${code} for GSO at the first send: the same datagrams go at once without it, for good`, () =>
      run({}, function* (a, b) {
        inject({ call: "sendmmsg", errno: errno(code), gso: true })
        sendNumbered(a, b.local, 0, 64, 1_200)
        assert.deepStrictEqual(yield* numbers(b, 64), range(0, 64))
        assert.deepStrictEqual([a.counters.sendErrors, a.capabilities.segments, a.trace.stepDowns], [0, 0, 1])
        const messages = a.trace.messages
        sendNumbered(a, b.local, 64, 64, 1_200)
        assert.deepStrictEqual(yield* numbers(b, 64), range(64, 128))
        assert.deepStrictEqual([a.trace.messages - messages, a.trace.stepDowns], [64, 1])
      }))
  }

  it("EIO for GSO at the thousandth message: nothing is lost or sent twice", () =>
    run({}, function* (a, b) {
      inject({ call: "sendmmsg", errno: errno("EIO"), gso: true, after: 999 })
      for (let round = 0; round < 20; round++) {
        sendPairs(a, b.local, round * 128, 64)
        assert.deepStrictEqual(yield* numbers(b, 128), range(round * 128, round * 128 + 128))
        assert.strictEqual(a.capabilities.segments, round < 15 ? mostSegments : 0)
      }
      assert.deepStrictEqual([a.counters.sendErrors, a.trace.stepDowns], [0, 1])
    }))

  it("EIO of the plain batch as well: lost, and GSO is not to blame", () =>
    run({}, function* (a, b) {
      inject({ call: "sendmmsg", errno: errno("EIO"), times: 65 })
      sendNumbered(a, b.local, 0, 64, 100)
      assert.deepStrictEqual([a.counters.sendErrors, a.errorCodes.get("EIO")], [64, 64])
      assert.strictEqual(a.capabilities.segments, mostSegments)
      clear()
      sendNumbered(a, b.local, 64, 64, 100)
      assert.deepStrictEqual(yield* numbers(b, 64), range(64, 128))
    }))

  it("EINVAL for the address to send from: it is left out, and GSO stays", () =>
    run({ host: "0.0.0.0" }, function* (a, b) {
      const to = { host: "127.0.0.1", port: b.local.port, local: "203.0.113.77" }
      for (let round = 0; round < 3; round++) {
        sendNumbered(a, to, round * 32, 32, 1_000)
        assert.deepStrictEqual(yield* numbers(b, 32), range(round * 32, round * 32 + 32))
      }
      assert.deepStrictEqual([a.counters.sendErrors, a.capabilities.segments], [0, mostSegments])
    }))

  it("an address to leave from that was refused is tried again after a while: it may have come back", () =>
    run({ host: "0.0.0.0" }, function* (a, b) {
      const to = { host: "127.0.0.1", port: b.local.port, local: "127.0.0.7" }
      inject({ call: "sendmmsg", errno: errno("EINVAL"), times: 1 })
      const locals: Array<string> = []
      for (let round = 0; round < 66; round++) {
        sendNumbered(a, to, round, 1, 100)
        locals.push(...(yield* gather(b, 1, (_, from) => from.host)))
      }
      assert.strictEqual(locals.length, 66, "none was lost")
      assert.notStrictEqual(locals[1], "127.0.0.7")
      assert.strictEqual(locals.at(-1), "127.0.0.7")
    }))

  it("EINVAL for a train above the path's MTU, as older kernels say: the long ones are lost, and GSO stays", () =>
    run({}, function* (a, b) {
      inject({ call: "sendmmsg", errno: errno("EINVAL"), gso: true, above: 1_300 })
      inject({ call: "sendmmsg", errno: errno("EMSGSIZE"), above: 1_300 })
      const slab = new Uint8Array(10 * 1_452)
      slab[9 * 1_452] = 9
      a.send(
        slab,
        1_452,
        Uint32Array.from({ length: 10 }, (_, i) => (i < 9 ? 1_452 : 400)),
        10,
        b.local
      )
      assert.deepStrictEqual(yield* lengthsOf(b, 1), [400])
      assert.deepStrictEqual([a.errorCodes.get("EMSGSIZE"), a.capabilities.segments], [9, mostSegments])
    }))

  it("part of a batch, at random counts: the rest follows in order", () =>
    run({}, function* (a, b) {
      let seed = 7
      const random = (most: number) => ((seed = (seed * 48_271) % 2_147_483_647) % most) + 1
      for (let round = 0; round < 50; round++) {
        for (let i = 0; i < 8; i++) inject({ call: "sendmmsg", partial: random(9), times: random(3) })
        if (round % 3 === 0) inject({ call: "sendmmsg", errno: errno("EAGAIN"), after: random(20), times: 1 })
        sendPairs(a, b.local, round * 128, 64)
        assert.deepStrictEqual(yield* numbers(b, 128), range(round * 128, round * 128 + 128))
      }
      assert.deepStrictEqual([a.counters.sent, a.counters.sendErrors], [6_400, 0])
    }))

  it("EAGAIN in the middle of a GSO batch: the sealed rest goes later as it was, and nothing overtakes it", () =>
    run({}, function* (a, b) {
      inject({ call: "sendmmsg", errno: errno("EAGAIN"), after: 20, times: 2 })
      sendPairs(a, b.local, 0, 64)
      assert.strictEqual(a.trace.queued, 88)
      sendPairs(a, b.local, 128, 64)
      assert.strictEqual(a.trace.queued, 88 + 128)
      assert.deepStrictEqual(yield* numbers(b, 256), range(0, 256))
      assert.deepStrictEqual([a.counters.sent, a.counters.sendErrors], [256, 0])
      sendPairs(a, b.local, 256, 1)
      assert.deepStrictEqual(yield* numbers(b, 2), range(256, 258))
      assert.strictEqual(a.trace.queued, 88 + 128)
    }))

  it("EAGAIN for long: what the queue does not hold is lost as ENOBUFS", () =>
    run({ sendQueueBytes: 10_000 }, function* (a, b) {
      inject({ call: "sendmmsg", errno: errno("EAGAIN") })
      for (let round = 0; round < 4; round++) sendNumbered(a, b.local, round * 16, 16, 1_200)
      assert.deepStrictEqual([a.trace.queued, a.counters.sendErrors, a.errorCodes.get("ENOBUFS")], [8, 56, 56])
      clear()
      assert.deepStrictEqual(yield* numbers(b, 8), range(0, 8))
      for (let round = 1; round < 20; round++) {
        inject({ call: "sendmmsg", errno: errno("EAGAIN"), times: 1 })
        sendNumbered(a, b.local, round * 8, 8, 1_000 + round * 10)
        assert.deepStrictEqual(yield* numbers(b, 8), range(round * 8, round * 8 + 8))
      }
    }))

  it("EMSGSIZE: the datagrams that are too long for the path are lost, and those alone", () =>
    run({}, function* (a, b) {
      inject({ call: "sendmmsg", errno: errno("EMSGSIZE"), above: 1_300 })
      const lengths = [1_200, 1_452, 1_452, 1_300, 1_400, 200, 1_301, 1_301, 1_300]
      sendOfLengths(a, b.local, lengths)
      assert.deepStrictEqual(yield* numbers(b, 4), [0, 3, 5, 8])
      assert.deepStrictEqual([a.counters.sendErrors, a.errorCodes.get("EMSGSIZE")], [5, 5])
      sendNumbered(a, b.local, 0, 64, 1_452)
      assert.strictEqual(a.counters.sendErrors, 69)
      sendNumbered(a, b.local, 10, 64, 1_300)
      assert.deepStrictEqual(yield* numbers(b, 64), range(10, 74))
      assert.strictEqual(a.capabilities.segments, mostSegments)
    }))

  it("EMSGSIZE for a train, twice, but not for its first datagram: the others go as a plain batch, and GSO stays", () =>
    run({}, function* (a, b) {
      inject({ call: "sendmmsg", errno: errno("EMSGSIZE"), gso: true, times: 2 })
      sendNumbered(a, b.local, 0, 64, 1_000)
      assert.deepStrictEqual(yield* numbers(b, 64), range(0, 64))
      assert.deepStrictEqual([a.trace.messages, a.counters.sendErrors, a.capabilities.segments], [64, 0, mostSegments])
    }))

  for (const code of ["EMSGSIZE", "ECONNREFUSED", "EHOSTUNREACH", "ENETUNREACH", "ECONNRESET", "EPROTO"]) {
    it(`${code} that an earlier datagram to another peer caused: costs this peer nothing`, () =>
      run({}, function* (a, b) {
        inject({ call: "sendmmsg", errno: errno(code), times: 1 })
        sendNumbered(a, b.local, 0, 64, 1_452)
        assert.deepStrictEqual(yield* numbers(b, 64), range(0, 64))
        assert.strictEqual(a.counters.sendErrors, 0)
      }))
  }

  for (const code of ["ENOBUFS", "ENOMEM", "ENETUNREACH", "EHOSTUNREACH", "ECONNREFUSED", "ENETDOWN", "EACCES"]) {
    it(`${code}: lost, without a spin and without a word to others`, () =>
      run({}, function* (a, b) {
        inject({ call: "sendmmsg", errno: errno(code) })
        for (let i = 0; i < 50; i++) sendPairs(a, b.local, 0, 64)
        assert.deepStrictEqual([a.counters.sendErrors, a.errorCodes.get(code)], [6_400, 6_400])
        assert.strictEqual(a.trace.queued, 0)
        clear()
        sendPairs(a, b.local, 0, 64)
        assert.deepStrictEqual(yield* numbers(b, 128), range(0, 128))
        assert.strictEqual(a.counters.rebinds, 0)
      }))
  }

  it("ENETDOWN for eight messages in a row: the rest of the batch is given up without a call for each", () =>
    run({}, function* (a, b) {
      inject({ call: "sendmmsg", errno: errno("ENETDOWN"), times: 7 })
      sendPairs(a, b.local, 0, 64)
      assert.deepStrictEqual(yield* numbers(b, 114), range(14, 128))
      assert.strictEqual(a.counters.sendErrors, 14)
      inject({ call: "sendmmsg", errno: errno("ENETDOWN"), times: 8 })
      sendPairs(a, b.local, 0, 64)
      assert.strictEqual(a.counters.sendErrors, 14 + 128)
      sendPairs(a, b.local, 200, 1)
      assert.deepStrictEqual(yield* numbers(b, 2), range(200, 202))
    }))

  it("EINTR: the same call again at once", () =>
    run({}, function* (a, b) {
      inject({ call: "sendmmsg", errno: errno("EINTR"), times: 5 })
      sendNumbered(a, b.local, 0, 64, 1_000)
      assert.deepStrictEqual(yield* numbers(b, 64), range(0, 64))
      assert.strictEqual(a.counters.sendErrors, 0)
    }))

  it("EPERM for a while, as of a firewall: lost, one line in the log, then all is as before", () =>
    run({}, function* (a, b) {
      logged.length = 0
      inject({ call: "sendmmsg", errno: errno("EPERM"), gso: true, times: 500 })
      let refused = 0
      while (a.counters.sendErrors === refused + 64 || refused === 0) {
        refused = a.counters.sendErrors
        sendNumbered(a, b.local, 0, 64, 1_000)
        yield* Effect.yieldNow
      }
      assert.deepStrictEqual([a.errorCodes.get("EPERM"), refused], [refused, 500 * 64])
      assert.deepStrictEqual(yield* numbers(b, 64), range(0, 64))
      assert.deepStrictEqual(logged.map(String).filter((line) => /EPERM/.test(line)).length, 1)
    }))

  for (const code of ["EBADF", "ENOTSOCK", "EPIPE", "ENOTCONN"]) {
    it(`${code}: the socket is bound to its port anew`, () =>
      run({ rebind: Schedule.recurs(3) }, function* (a, b) {
        const { port } = a.local
        inject({ call: "sendmmsg", errno: errno(code), times: 1 })
        inject({ call: "bind", errno: errno("EADDRNOTAVAIL"), times: 2 })
        sendNumbered(a, b.local, 0, 64, 500)
        assert.deepStrictEqual([a.counters.sendErrors, a.errorCodes.get(code)], [64, 64])
        sendNumbered(a, b.local, 0, 2, 500)
        assert.deepStrictEqual([a.counters.sendErrors, a.errorCodes.get("EBADF") !== undefined], [66, true])
        yield* eventually(() => a.counters.rebinds === 1)
        assert.strictEqual(a.local.port, port)
        sendNumbered(a, b.local, 64, 64, 500)
        assert.deepStrictEqual(yield* numbers(b, 64), range(64, 128))
        sendNumbered(b, a.local, 0, 64, 500)
        assert.deepStrictEqual(yield* numbers(a, 64), range(0, 64))
      }))
  }

  it("EBADF while datagrams wait: they go by the new descriptor", () =>
    run({}, function* (a, b) {
      inject({ call: "sendmmsg", errno: errno("EAGAIN"), times: 1 })
      inject({ call: "sendmmsg", errno: errno("EBADF"), after: 3, times: 1 })
      sendPairs(a, b.local, 0, 8)
      yield* eventually(() => a.counters.rebinds === 1)
      const lost = a.counters.sendErrors
      sendPairs(a, b.local, 100, 8)
      const got = yield* numbers(b, 32 - lost)
      assert.deepStrictEqual(got.slice(-16), range(100, 116))
    }))

  it("EBADF while datagrams to two peers wait: one batch is lost with the descriptor, the other goes by the new one", () =>
    run({}, function* (a, b) {
      const c = yield* open({}, "127.0.0.1")
      inject({ call: "sendmmsg", errno: errno("EAGAIN"), times: 1 })
      inject({ call: "sendmmsg", errno: errno("EBADF"), times: 1 })
      sendPairs(a, b.local, 0, 8)
      sendPairs(a, c.local, 100, 8)
      assert.strictEqual(a.trace.queued, 32)
      assert.deepStrictEqual(yield* numbers(c, 16), range(100, 116))
      assert.deepStrictEqual([a.counters.rebinds, a.counters.sendErrors], [1, 16])
    }))
})

describe.skipIf(!hasAddon)("errors of the system while receiving", () => {
  afterEach(clear)

  for (const code of ["EMSGSIZE", "ECONNREFUSED", "EHOSTUNREACH", "ENOMEM", "ENOBUFS", "EINTR"]) {
    it(`${code}: costs no datagram`, () =>
      run({}, function* (a, b) {
        for (let round = 0; round < 25; round++) {
          inject({ call: "recvmmsg", errno: errno(code), times: 3 })
          sendNumbered(a, b.local, 0, 64, 1_452)
          assert.deepStrictEqual(yield* numbers(b, 64), range(0, 64))
        }
        assert.strictEqual(b.counters.receiveErrors, code === "EINTR" ? 0 : 75)
        assert.deepStrictEqual([b.counters.rebinds, b.counters.received], [0, 1_600])
      }))
  }

  it("errors at the head of what waits: the call is tried again, eight times in one receive", () =>
    run({}, function* (a, b) {
      sendNumbered(a, b.local, 0, 4, 10)
      inject({ call: "recvmmsg", errno: errno("EMSGSIZE"), times: 15 })
      const first = b.receive(8)
      assert.deepStrictEqual([first.count, first.more, b.counters.receiveErrors], [0, true, 8])
      assert.deepStrictEqual([b.receive(8).count, b.counters.receiveErrors], [4, 15])
      sendNumbered(a, b.local, 4, 4, 10)
      assert.deepStrictEqual(yield* numbers(b, 4), range(4, 8))
    }))

  it("ENOMEM without end: the socket counts as dead, and is bound anew", () =>
    run({}, function* (a, b) {
      inject({ call: "recvmmsg", errno: errno("ENOMEM"), times: 70 })
      sendNumbered(a, b.local, 0, 4, 10)
      b.onReadable = () => void b.receive(8)
      yield* eventually(() => b.counters.rebinds === 1)
      clear()
      sendNumbered(a, b.local, 4, 4, 10)
      assert.deepStrictEqual((yield* numbers(b, 4)).slice(-4), range(4, 8))
    }))

  it("EBADF: bound anew; if that cannot be, `died` tells and sends count as errors", () =>
    run({ rebind: Schedule.recurs(2) }, function* (a, b) {
      inject({ call: "recvmmsg", errno: errno("EBADF"), times: 1 })
      inject({ call: "bind", errno: errno("EADDRINUSE") })
      sendNumbered(a, b.local, 0, 4, 10)
      b.onReadable = () => void b.receive(8)
      const error = yield* Effect.flip(b.died)
      assert.deepStrictEqual([error.operation, error.code, error.address], ["receive", "EBADF", b.local])
      assert.match(error.remedy, /could not be bound again \(EADDRINUSE\)/)
      sendNumbered(b, a.local, 0, 3, 10)
      assert.strictEqual(b.counters.sendErrors, 3)
    }))

  it("a train that lost its segment size is one long datagram; when trains go on like that, GRO is given up", () =>
    run({}, function* (a, b) {
      const sendTrain = () => sendNumbered(a, b.local, 0, 32, 1_000)
      inject({ call: "recvmmsg", spoil: "segment", times: 1 })
      sendTrain()
      assert.deepStrictEqual(yield* lengthsOf(b, 1), [32_000])
      sendTrain()
      assert.deepStrictEqual(yield* numbers(b, 32), range(0, 32))
      inject({ call: "recvmmsg", spoil: "segment", times: 4 })
      for (let i = 0; i < 4; i++) {
        assert.isTrue(b.capabilities.gro)
        sendTrain()
        assert.deepStrictEqual(yield* lengthsOf(b, 1), [32_000])
      }
      assert.deepStrictEqual([b.capabilities.gro, b.trace.stepDowns], [false, 1])
      const trains = b.trace.trains
      sendTrain()
      assert.deepStrictEqual(yield* numbers(b, 32), range(0, 32))
      assert.strictEqual(b.trace.trains, trains)
    }))

  it("a train that was cut: what is whole of it arrives, the rest is counted, and GRO is given up", () =>
    run({}, function* (a, b) {
      inject({ call: "recvmmsg", spoil: "truncate", times: 1 })
      sendOfLengths(a, b.local, [1_000, 1_000, 1_000, 999])
      assert.deepStrictEqual(yield* numbers(b, 3), [0, 1, 2])
      assert.deepStrictEqual([b.trace.truncated, b.errorCodes.get("EMSGSIZE"), b.capabilities.gro], [1, 1, false])
      sendNumbered(a, b.local, 0, 32, 1_000)
      assert.deepStrictEqual(yield* numbers(b, 32), range(0, 32))
    }))
})

describe.skipIf(!hasAddon)("kernels that refuse what the socket asks for", () => {
  afterEach(clear)

  it("a kernel without any option of ours still carries datagrams", () => {
    inject({ call: "setsockopt", errno: errno("ENOPROTOOPT") })
    return run({}, function* (a, b) {
      const { segments, gro, dontFragment, packetInfo } = a.capabilities
      assert.deepStrictEqual([segments, gro, dontFragment, packetInfo], [0, false, false, false])
      assert.isFalse(a.dontFragment)
      assert.isAbove(a.buffers.receive, 0)
      sendNumbered(a, b.local, 0, 64, 1_452)
      assert.deepStrictEqual(yield* numbers(b, 64), range(0, 64))
    })
  })

  for (const call of ["socket", "bind"] as const) {
    it(`says why it has no socket: ${call}`, () =>
      Effect.gen(function* () {
        inject({ call, errno: errno("EACCES"), times: 1 })
        const error = yield* Effect.flip(open({}, "127.0.0.1"))
        assert.deepStrictEqual([error.operation, error.code], ["bind", "EACCES"])
      }).pipe(Effect.scoped, Effect.runPromise))
  }

  it("takes IPv4 alone for dual stack on a machine without IPv6", () =>
    Effect.gen(function* () {
      inject({ call: "socket", errno: errno("EAFNOSUPPORT"), times: 1 })
      assert.strictEqual((yield* open({}, "::")).local.host, "0.0.0.0")
    }).pipe(Effect.scoped, Effect.runPromise))
})

function inject(fault: Fault): void {
  addon.injectFault(fault)
}

function clear(): void {
  addon.clearFaults()
}

const errno = (code: string): number => constants.errno[code as keyof typeof constants.errno]

const open = (options: Partial<NativeDatagramOptions>, host: string) =>
  Effect.provide(
    Effect.flatMap(DatagramSocket, (service) => service.open({ host, port: 0 })),
    Layer.merge(nativeLayer(addon, options), logger)
  ) as Effect.Effect<NativeSocket, Effect.Error<ReturnType<DatagramSocket["Service"]["open"]>>, Scope.Scope>

const run = (
  { host = "127.0.0.1", ...options }: Partial<NativeDatagramOptions> & { readonly host?: string },
  body: (a: NativeSocket, b: NativeSocket) => Generator<Effect.Effect<unknown, unknown, Scope.Scope>, void, never>
) =>
  Effect.gen(function* () {
    const [a, b] = [yield* open(options, host), yield* open(options, host)]
    yield* Effect.gen(() => body(a, b))
  }).pipe(Effect.scoped, Effect.provide(logger), Effect.runPromise)

/** The most datagrams of a message that this kernel takes, as an untroubled socket says. */
const mostSegments = hasAddon ? probeSegments() : 0

function probeSegments(): number {
  const socket = Effect.runSync(Effect.scoped(Effect.map(open({}, "127.0.0.1"), (opened) => opened.capabilities)))
  return socket.segments
}

const range = (first: number, end: number) => Array.from({ length: end - first }, (_, i) => first + i)

/** Datagrams that begin with their number. */
const sendOfLengths = (socket: OpenSocket, to: Address, lengths: ReadonlyArray<number>, first = 0): void => {
  const slab = new Uint8Array(lengths.length * largestDatagram)
  const view = new DataView(slab.buffer)
  for (let i = 0; i < lengths.length; i++) view.setUint32(i * largestDatagram, first + i)
  socket.send(slab, largestDatagram, Uint32Array.from(lengths), lengths.length, to)
  slab.fill(0xee)
}

const sendNumbered = (socket: OpenSocket, to: Address, first: number, count: number, length: number): void =>
  sendOfLengths(
    socket,
    to,
    Array.from({ length: count }, () => length),
    first
  )

/** Pairs of a longer and a shorter datagram: each is a message of its own. */
const sendPairs = (socket: OpenSocket, to: Address, first: number, pairs: number): void =>
  sendOfLengths(
    socket,
    to,
    Array.from({ length: 2 * pairs }, (_, i) => (i % 2 === 0 ? 40 : 20)),
    first
  )

/** What arrives, until it is so many. */
const gather = <A>(socket: OpenSocket, count: number, take: (bytes: Uint8Array, from: Address) => A) =>
  Effect.timeout(
    Effect.callback<ReadonlyArray<A>>((resume) => {
      const got: Array<A> = []
      socket.onReadable = () => {
        for (let more = true; more && got.length < count;) {
          const received = socket.receive(count - got.length)
          for (let i = 0; i < received.count; i++) {
            got.push(take(received.bytes.subarray(received.starts[i], received.ends[i]), received.from[i]!))
          }
          more = received.more
        }
        if (got.length < count) return
        socket.onReadable = undefined
        resume(Effect.succeed(got))
      }
    }),
    "10 seconds"
  )

const numbers = (socket: OpenSocket, count: number) =>
  gather(socket, count, (bytes) => new DataView(bytes.buffer, bytes.byteOffset).getUint32(0))

const lengthsOf = (socket: OpenSocket, count: number) => gather(socket, count, (bytes) => bytes.length)

/** Waits, turn by turn of the event loop, until something is so. */
const eventually = (isSo: () => boolean) =>
  Effect.timeout(
    Effect.callback<void>((resume) => {
      const look = () => (isSo() ? resume(Effect.void) : void setImmediate(look))
      look()
    }),
    "10 seconds"
  )
