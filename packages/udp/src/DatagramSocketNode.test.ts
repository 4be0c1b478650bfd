import { assert, describe, it } from "@effect/vitest"
import { DatagramSocket, type OpenSocket } from "@pure-link/ports"
import { datagramSocketContract } from "@pure-link/ports/contract/DatagramSocket"
import type { Address } from "@pure-link/wire"
import * as Effect from "effect/Effect"
import * as Logger from "effect/Logger"
import * as Schedule from "effect/Schedule"
import type * as Scope from "effect/Scope"
import * as dgram from "node:dgram"
import { networkInterfaces } from "node:os"
import { DatagramSocketNode, type NodeDatagramOptions } from "./DatagramSocketNode.ts"

const hasIPv6 = networkInterfaces().lo?.some(({ family }) => family === "IPv6") ?? false
const live = (test: Effect.Effect<void, unknown>) => Effect.runPromise(Effect.provide(test, Logger.layer([])))

datagramSocketContract("node:dgram, IPv4", {
  layer: DatagramSocketNode.layer,
  bindHost: "127.0.0.1",
  reachHost: "127.0.0.1",
  run: live
})

datagramSocketContract("node:dgram, dual stack reached by IPv4", {
  layer: DatagramSocketNode.layer,
  bindHost: "::",
  reachHost: "127.0.0.1",
  run: live
})

if (hasIPv6) {
  datagramSocketContract("node:dgram, IPv6", {
    layer: DatagramSocketNode.layer,
    bindHost: "::1",
    reachHost: "::1",
    run: live
  })
}

describe("DatagramSocketNode", () => {
  it.skipIf(!hasIPv6)("speaks both families on one socket, each in its plain spelling", () =>
    run({}, function* (open) {
      const [both, four, six] = [yield* open("::"), yield* open("127.0.0.1"), yield* open("::1")]
      for (const [peer, host] of [
        [four, "127.0.0.1"],
        [six, "::1"]
      ] as const) {
        peer.send(Uint8Array.of(1), 1, Uint32Array.of(1), 1, { host, port: both.local.port })
        const from = yield* nextSource(both)
        assert.deepStrictEqual(from, peer.local)
        both.send(Uint8Array.of(2), 1, Uint32Array.of(1), 1, from)
        assert.deepStrictEqual(yield* nextSource(peer), { host, port: both.local.port })
      }
    })
  )

  it("sends nowhere, and throws nothing, for a name, a bad port or a family out of reach", () =>
    run({}, function* (open) {
      const [a, b] = [yield* open("127.0.0.1"), yield* open("127.0.0.1")]
      const nowhere = [
        ["localhost", 9],
        ["", 9],
        ["127.0.0.1", 0],
        ["127.0.0.1", 65_536],
        ["::1", 9]
      ] as const
      for (const [host, port] of nowhere) a.send(new Uint8Array(6), 3, Uint32Array.of(3, 3), 2, { host, port })
      assert.strictEqual(a.counters.sendErrors, 10)
      assert.strictEqual(a.errorCodes.get("EINVAL"), 10)
      yield* roundTrip(a, b)
    }))

  it("drops and counts what comes while its queue is full, by number and by bytes", () =>
    run({ receiveQueue: 4, receiveQueueBytes: 3_000 }, function* (open) {
      const [a, b] = [yield* open("127.0.0.1"), yield* open("127.0.0.1")]
      a.send(new Uint8Array(10), 1, new Uint32Array(10).fill(1), 10, b.local)
      a.send(new Uint8Array(14_520), 1_452, new Uint32Array(10).fill(1_452), 10, b.local)
      yield* eventually(() => b.counters.receiveDrops === 16)
      assert.strictEqual(b.receive(99).count, 4)
      a.send(new Uint8Array(14_520), 1_452, new Uint32Array(10).fill(1_452), 10, b.local)
      yield* eventually(() => b.counters.receiveDrops === 24)
      assert.strictEqual(b.receive(99).count, 2)
      yield* roundTrip(a, b)
    }))

  it("asks for large buffers and tells what was granted", () =>
    run({}, function* (open) {
      const { buffers } = yield* open("127.0.0.1")
      assert.isAbove(buffers.receive, 100_000)
      assert.isAtMost(buffers.receive, 4_194_304)
      assert.isAbove(buffers.send, 100_000)
    }))

  it("says why it cannot bind and what to do", () =>
    run({}, function* (open) {
      const codeFor = (host: string, port = 0) =>
        Effect.map(Effect.flip(open(host, port)), ({ code, remedy }) => `${code}: ${remedy}`)
      assert.match(yield* codeFor("192.0.2.1"), /^EADDRNOTAVAIL: no interface/)
      assert.match(yield* codeFor("localhost"), /^EINVAL: give a numeric/)
      assert.match(yield* codeFor("127.0.0.1", 65_536), /^EINVAL: .* port from 0 to 65535/)
    }))

  it("says so when a port needs privileges or the machine has no IPv6", () =>
    Effect.gen(function* () {
      for (const code of ["EACCES", "EAFNOSUPPORT", "EMFILE", "ESTRANGE"]) {
        const error = yield* Effect.flip(openWith({ createSocket: refusing(code) }, { host: "::1", port: 7 }))
        assert.strictEqual(error.code, code)
        assert.match(error.message, /^cannot bind \[::1\]:7: E[A-Z]+; .{15}/)
      }
    }).pipe(Effect.scoped, live))

  it("takes IPv4 alone for dual stack on a machine without IPv6", () => {
    const createSocket = (options: dgram.SocketOptions) =>
      options.type === "udp6" ? refusing("EAFNOSUPPORT")(options) : dgram.createSocket(options)
    return run({ createSocket }, function* (open) {
      assert.strictEqual((yield* open("::")).local.host, "0.0.0.0")
    })
  })

  for (const code of ["ECONNREFUSED", "EMSGSIZE", "ENOBUFS", "EPERM", "EHOSTUNREACH", "ENETUNREACH", "EAGAIN", "EIO"]) {
    it(`loses a datagram to ${code} on send, and nothing else`, () => {
      const faults = new Faults()
      return run({ createSocket: faults.createSocket }, function* (open) {
        const [a, b] = [yield* open("127.0.0.1"), yield* open("127.0.0.1")]
        faults.sends.push(code, code)
        a.send(new Uint8Array(2), 1, Uint32Array.of(1, 1), 2, b.local)
        yield* roundTrip(a, b)
        assert.strictEqual(a.counters.sendErrors, 2)
        assert.strictEqual(a.errorCodes.get(code), 2)
        assert.strictEqual(a.counters.rebinds, 0)
      })
    })
  }

  it("loses nothing of others to an error on receive", () => {
    const faults = new Faults()
    return run({ createSocket: faults.createSocket }, function* (open) {
      const [a, b] = [yield* open("127.0.0.1"), yield* open("127.0.0.1")]
      const codes = ["ECONNREFUSED", "EMSGSIZE", "ECONNRESET", "ENOBUFS"]
      for (const code of codes) faults.last().emit("error", failure(code))
      yield* roundTrip(a, b)
      assert.strictEqual(b.counters.receiveErrors, 4)
      assert.strictEqual(b.errorCodes.get("ECONNRESET"), 1)
      assert.strictEqual(b.counters.rebinds, 0)
    })
  })

  const deaths: ReadonlyArray<readonly [string, (faults: Faults, socket: OpenSocket) => void]> = [
    ["fails to receive with EBADF", (faults) => void faults.last().emit("error", failure("EBADF"))],
    [
      "fails to receive again and again",
      (faults) => {
        for (let i = 0; i < 64; i++) faults.last().emit("error", failure("EIO"))
      }
    ],
    ["is closed by others", (faults) => void faults.last().close()],
    [
      "fails to send with EPIPE",
      (faults, socket) => {
        faults.sends.push("EPIPE")
        socket.send(new Uint8Array(1), 1, Uint32Array.of(1), 1, { host: "127.0.0.1", port: 9 })
      }
    ]
  ]
  for (const [name, kill] of deaths) {
    it(`binds to the same port anew when the system's socket ${name}`, () => {
      const faults = new Faults()
      return run({ createSocket: faults.createSocket, rebind: Schedule.recurs(3) }, function* (open) {
        const [a, b] = [yield* open("127.0.0.1"), yield* open("127.0.0.1")]
        faults.binds.push("EADDRNOTAVAIL", "ENETDOWN")
        const before = faults.made
        kill(faults, b)
        yield* eventually(() => b.counters.rebinds === 1)
        assert.strictEqual(faults.made - before, 3)
        yield* roundTrip(a, b)
        yield* roundTrip(b, a)
      })
    })
  }

  it("fails `died` when a dead socket cannot be bound again, and counts sends as errors from then on", () => {
    const faults = new Faults()
    return run({ createSocket: faults.createSocket, rebind: Schedule.recurs(2) }, function* (open) {
      const [a, b] = [yield* open("127.0.0.1"), yield* open("127.0.0.1")]
      faults.binds.push("EADDRNOTAVAIL", "EADDRNOTAVAIL", "EADDRINUSE")
      faults.last().emit("error", failure("EBADF"))
      const error = yield* Effect.flip(b.died)
      assert.deepStrictEqual([error.operation, error.code, error.address], ["receive", "EBADF", b.local])
      assert.match(error.remedy, /could not be bound again \(EADDRINUSE\)/)
      const errors = b.counters.sendErrors
      b.send(new Uint8Array(3), 1, Uint32Array.of(1, 1, 1), 3, a.local)
      assert.strictEqual(b.counters.sendErrors, errors + 3)
    })
  })
})

type Open = (host: string, port?: number) => ReturnType<typeof openWith>

const openWith = (options: Partial<NodeDatagramOptions>, at: Address) =>
  Effect.provide(
    Effect.flatMap(DatagramSocket, (service) => service.open(at)),
    DatagramSocketNode.layerWith(options)
  )

const run = (
  options: Partial<NodeDatagramOptions>,
  body: (open: Open) => Generator<Effect.Effect<unknown, unknown, Scope.Scope>, void, never>
) => live(Effect.scoped(Effect.gen(() => body((host, port = 0) => openWith(options, { host, port })))))

/** Waits, turn by turn of the event loop, until something is so. */
const eventually = (isSo: () => boolean) =>
  Effect.timeout(
    Effect.callback<void>((resume) => {
      const look = () => (isSo() ? resume(Effect.void) : void setImmediate(look))
      look()
    }),
    "10 seconds"
  )

/** Takes the next datagram and tells where it came from. */
const nextSource = (socket: OpenSocket) =>
  Effect.timeout(
    Effect.callback<Address>((resume) => {
      socket.onReadable = () => {
        const received = socket.receive(1)
        if (received.count === 0) return
        socket.onReadable = undefined
        resume(Effect.succeed(received.from[0]!))
      }
    }),
    "10 seconds"
  )

const roundTrip = (a: OpenSocket, b: OpenSocket) =>
  Effect.gen(function* () {
    a.send(Uint8Array.of(1, 2, 3), 3, Uint32Array.of(3), 1, b.local)
    b.send(Uint8Array.of(4), 1, Uint32Array.of(1), 1, yield* nextSource(b))
    assert.deepStrictEqual(yield* nextSource(a), b.local)
  })

const failure = (code: string): Error => Object.assign(new Error(code), { code })

/** Makes real sockets whose next binds and sends fail with the codes given. */
class Faults {
  readonly binds: Array<string> = []
  readonly sends: Array<string> = []
  made = 0
  #last: dgram.Socket | undefined

  last(): dgram.Socket {
    return this.#last!
  }

  readonly createSocket = (options: dgram.SocketOptions): dgram.Socket => {
    this.made++
    const code = this.binds.shift()
    if (code !== undefined) return refusing(code)(options)
    const socket = dgram.createSocket(options)
    const send = socket.send.bind(socket) as (...values: ReadonlyArray<unknown>) => void
    socket.send = (...values: ReadonlyArray<unknown>) => {
      const fault = this.sends.shift()
      if (fault === undefined) send(...values)
      else process.nextTick(values.at(-1) as (error: Error) => void, failure(fault))
    }
    return (this.#last = socket)
  }
}

const refusing =
  (code: string) =>
  (options: dgram.SocketOptions): dgram.Socket => {
    const socket = dgram.createSocket(options)
    socket.bind = () => {
      process.nextTick(() => socket.emit("error", failure(code)))
      return socket
    }
    return socket
  }
