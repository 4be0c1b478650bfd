import { assert, describe, it } from "@effect/vitest"
import { load } from "@pure-link/native"
import { DatagramSocket, type OpenSocket } from "@pure-link/ports"
import { datagramSocketContract } from "@pure-link/ports/contract/DatagramSocket"
import type { Address } from "@pure-link/wire"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import { networkInterfaces } from "node:os"
import { DatagramSocketNative, type NativeDatagramOptions } from "./DatagramSocketNative.ts"
import { DatagramSocketNode } from "./DatagramSocketNode.ts"
import type { NativeSocket } from "./NativeSocket.ts"

const hasAddon = load().addon !== undefined
const hasIPv6 = networkInterfaces().lo?.some(({ family }) => family === "IPv6") ?? false
const live = (test: Effect.Effect<void, unknown>) => Effect.runPromise(test)

const worlds = [
  ["native, IPv4", DatagramSocketNative.layer, "127.0.0.1", "127.0.0.1"],
  ["native, all of IPv4", DatagramSocketNative.layer, "0.0.0.0", "127.0.0.1"],
  ["native without GSO and GRO", DatagramSocketNative.layerWith({ gso: false, gro: false }), "127.0.0.1", "127.0.0.1"],
  ["native, dual stack reached by IPv4", DatagramSocketNative.layer, "::", "127.0.0.1"],
  ["native, dual stack reached by IPv6", DatagramSocketNative.layer, "::", "::1"],
  ["native, IPv6", DatagramSocketNative.layer, "::1", "::1"]
] as const
for (const [name, layer, bindHost, reachHost] of worlds) {
  if (!hasAddon || (!hasIPv6 && bindHost.includes(":"))) continue
  datagramSocketContract(name, { layer, bindHost, reachHost, run: live })
}

describe.skipIf(!hasAddon)("DatagramSocketNative", () => {
  it("equal datagrams in a row go as one message, within 64 KiB and the segments that the kernel takes", () =>
    run({}, function* (open) {
      const [a, b] = [yield* open("127.0.0.1"), yield* open("127.0.0.1")]
      const messagesFor = (lengths: ReadonlyArray<number>) => {
        const before = a.trace.messages
        send(a, b.local, lengths)
        return a.trace.messages - before
      }
      const { segments } = a.capabilities
      assert.isAtLeast(segments, 64)
      assert.strictEqual(messagesFor(times(45, 1_452)), 1)
      assert.strictEqual(messagesFor(times(46, 1_452)), 2)
      assert.strictEqual(messagesFor([...times(45, 1_452), 7]), 2)
      assert.strictEqual(messagesFor([...times(44, 1_452), 7]), 1)
      assert.strictEqual(messagesFor(times(segments, 61)), 1)
      assert.strictEqual(messagesFor(times(segments + 1, 61)), 2)
      assert.strictEqual(messagesFor([100, 100, 50, 50, 100, 0, 0, 1]), 6)
      const total = 45 + 46 + 46 + 45 + segments + segments + 1 + 8
      assert.strictEqual((yield* collect(b, total)).length, total)
      assert.strictEqual(b.trace.trains, 7)
    }))

  it("a batch that is longer than the tables, and strides longer than the datagrams, arrive whole and in order", () =>
    run({ receivedAtOnce: 100 }, function* (open) {
      const [a, b] = [yield* open("127.0.0.1"), yield* open("127.0.0.1")]
      const lengths = Array.from({ length: 1_500 }, (_, i) => 4 + ((i >> 4) % 40))
      send(a, b.local, lengths, 64)
      const got = yield* collect(b, 1_500)
      got.forEach(({ bytes }, i) => {
        assert.strictEqual(bytes.length, lengths[i])
        assert.strictEqual(new DataView(bytes.buffer).getUint32(0), i)
      })
    }))

  it("hands out the same address object while a peer goes on, also between other peers", () =>
    run({}, function* (open) {
      const b = yield* open("127.0.0.1")
      const peers: Array<NativeSocket> = []
      for (let i = 0; i < 20; i++) peers.push(yield* open("127.0.0.1"))
      const known = new Map<number, Address>()
      for (let round = 0; round < 5; round++) {
        for (const peer of peers) send(peer, b.local, [4, 4])
        for (const { from } of yield* collect(b, 40)) {
          assert.strictEqual(from, known.get(from.port) ?? from)
          known.set(from.port, from)
        }
      }
      assert.strictEqual(known.size, 20)
    }))

  it("tells the addresses of more peers than it remembers, each its own", () =>
    run({ receiveBufferBytes: 65_536, sendBufferBytes: 65_536, receiveSlots: 1 }, function* (open) {
      const b = yield* open("127.0.0.1")
      const peers: Array<NativeSocket> = []
      for (let i = 0; i < 300; i++) peers.push(yield* open("127.0.0.1"))
      for (let round = 0; round < 3; round++) {
        for (let i = 0; i < peers.length; i += 20) {
          const some = peers.slice(i, i + 20)
          for (const peer of some) send(peer, b.local, [peer.local.port >> 8, 1])
          for (const { bytes, from } of yield* collect(b, 40)) {
            if (bytes.length > 1) assert.strictEqual(from.port >> 8, bytes.length)
          }
        }
      }
    }))

  it("bound to all addresses, answers leave from the address that was asked", () =>
    run({}, function* (open) {
      const [server, client] = [yield* open("0.0.0.0"), yield* open("127.0.0.1")]
      for (const host of ["127.0.0.1", "127.0.0.9", "127.1.2.3"]) {
        send(client, { host, port: server.local.port }, [4])
        const { from } = (yield* collect(server, 1))[0]!
        assert.deepStrictEqual({ ...from }, { ...client.local, local: host })
        send(server, from, [4, 4, 2])
        for (const answer of yield* collect(client, 3)) {
          assert.deepStrictEqual(answer.from, { host, port: server.local.port })
        }
      }
    }))

  it.skipIf(!hasIPv6)("bound to all addresses of both families, the same", () =>
    run({}, function* (open) {
      const server = yield* open("::")
      for (const [own, host] of [
        ["127.0.0.1", "127.0.0.7"],
        ["::1", "::1"]
      ] as const) {
        const client = yield* open(own)
        send(client, { host, port: server.local.port }, [4])
        const { from } = (yield* collect(server, 1))[0]!
        assert.deepStrictEqual({ ...from }, { ...client.local, local: host })
        send(server, from, [4])
        assert.deepStrictEqual((yield* collect(client, 1))[0]!.from, { host, port: server.local.port })
      }
    })
  )

  for (const host of ["127.0.0.1", "::1"]) {
    it.skipIf(!hasIPv6 && host === "::1")(`ECN marks go out and come in, over ${host}`, () =>
      run({ sendEcn: 2 }, function* (open) {
        const [a, b] = [yield* open(host), yield* open(host)]
        send(a, b.local, [100, 100, 100, 50])
        for (const { ecn } of yield* collect(b, 4)) assert.strictEqual(ecn, 2)
      })
    )
  }

  it("talks to node:dgram", () =>
    run({}, function* (open) {
      const native = yield* open("127.0.0.1")
      const node = yield* Effect.provide(
        Effect.flatMap(DatagramSocket, (service) => service.open({ host: "127.0.0.1", port: 0 })),
        DatagramSocketNode.layer
      )
      send(native, node.local, times(32, 1_452))
      for (const { from } of yield* collect(node, 32)) assert.deepStrictEqual(from, native.local)
      send(node, native.local, times(32, 1_452))
      for (const { from } of yield* collect(native, 32)) assert.deepStrictEqual(from, node.local)
    }))

  it("sends nowhere, and throws nothing, for a name, a bad port or a family out of reach", () =>
    run({}, function* (open) {
      const [a, b] = [yield* open("127.0.0.1"), yield* open("127.0.0.1")]
      const nowhere = [
        ["localhost", 9],
        ["", 9],
        ["127.0.0.1", 0],
        ["127.0.0.1", 65_536],
        ["127.0.0.1", 1.5],
        ["::1", 9],
        ["fe80::1%nonsense", 9]
      ] as const
      for (const [host, port] of nowhere) send(a, { host, port }, [3, 3])
      assert.deepStrictEqual([a.counters.sendErrors, a.errorCodes.get("EINVAL")], [14, 14])
      send(a, b.local, [3])
      assert.strictEqual((yield* collect(b, 1)).length, 1)
    }))

  it("counts what the kernel dropped because nobody read", () =>
    run({ receiveBufferBytes: 65_536 }, function* (open) {
      const [a, b] = [yield* open("127.0.0.1"), yield* open("127.0.0.1")]
      for (let i = 0; i < 40; i++) send(a, b.local, times(45, 1_452))
      let got = 0
      for (let more = true; more;) {
        const received = b.receive(1_000)
        got += received.count
        more = received.more
      }
      send(a, b.local, [4])
      yield* collect(b, 1)
      assert.isAbove(b.counters.receiveDrops, 0)
      assert.isBelow(got, 1_800)
    }))

  it("says why it cannot bind and what to do", () =>
    run({}, function* (open) {
      const codeFor = (host: string, port = 0) =>
        Effect.map(Effect.flip(open(host, port)), ({ code, remedy }) => `${code}: ${remedy}`)
      assert.match(yield* codeFor("192.0.2.1"), /^EADDRNOTAVAIL: no interface/)
      assert.match(yield* codeFor("localhost"), /^EINVAL: give a numeric/)
      assert.match(yield* codeFor("127.0.0.1", 65_536), /^EINVAL: .* port from 0 to 65535/)
    }))

  it("wakes its driver after microseconds, once, at the latest time asked for", () =>
    run({}, function* (open) {
      const socket = yield* open("127.0.0.1")
      let calls = 0
      const wake = (delay: number) =>
        Effect.callback<number>((resume) => {
          socket.onReadable = () => {
            calls++
            resume(Effect.succeed(performance.now()))
          }
          socket.wakeAfter!(5_000_000)
          socket.wakeAfter!(delay)
        })
      const early: Array<number> = []
      for (const delay of [0, 1, 150, 700]) {
        const start = performance.now()
        early.push((yield* wake(delay)) - start - delay / 1_000)
      }
      assert.isAtLeast(Math.min(...early), 0)
      assert.strictEqual(calls, 4)
    }))

  it("does not call a driver again that has not come yet, and calls it for what came meanwhile", () =>
    run({}, function* (open) {
      const [a, b] = [yield* open("127.0.0.1"), yield* open("127.0.0.1")]
      let calls = 0
      b.onReadable = () => calls++
      for (let turn = 0; turn < 20; turn++) {
        send(a, b.local, [4])
        yield* nextTurn
      }
      assert.strictEqual(calls, 1)
      assert.strictEqual(b.receive(3).count, 3)
      yield* nextTurn
      yield* nextTurn
      assert.strictEqual(calls, 2)
    }))
})

const run = (
  options: Partial<NativeDatagramOptions>,
  body: (open: Open) => Generator<Effect.Effect<unknown, unknown, Scope.Scope>, void, never>
) => live(Effect.scoped(Effect.gen(() => body((host, port = 0) => openWith(options, { host, port })))))

type Open = (host: string, port?: number) => ReturnType<typeof openWith>

const openWith = (options: Partial<NativeDatagramOptions>, at: Address) =>
  Effect.map(
    Effect.provide(
      Effect.flatMap(DatagramSocket, (service) => service.open(at)),
      DatagramSocketNative.layerWith(options)
    ),
    (socket) => socket as NativeSocket
  )

const times = (count: number, length: number): ReadonlyArray<number> => Array.from({ length: count }, () => length)

/** Datagrams that begin with their number, as far as they are long enough for it. */
const send = (socket: OpenSocket, to: Address, lengths: ReadonlyArray<number>, stride = 1_452): void => {
  const slab = new Uint8Array(lengths.length * stride + 4)
  const view = new DataView(slab.buffer)
  for (let i = 0; i < lengths.length; i++) view.setUint32(i * stride, i)
  socket.send(slab, stride, Uint32Array.from(lengths), lengths.length, to)
}

const nextTurn = Effect.callback<void>((resume) => void setImmediate(() => resume(Effect.void)))

const collect = (socket: OpenSocket, count: number) =>
  Effect.timeout(
    Effect.callback<ReadonlyArray<{ readonly bytes: Uint8Array; readonly from: Address; readonly ecn: number }>>(
      (resume) => {
        const got: Array<{ readonly bytes: Uint8Array; readonly from: Address; readonly ecn: number }> = []
        socket.onReadable = () => {
          for (let more = true; more;) {
            const received = socket.receive(1_000)
            const { bytes, ecn, ends, from, starts } = received
            for (let i = 0; i < received.count; i++) {
              got.push({ bytes: bytes.slice(starts[i], ends[i]), from: from[i]!, ecn: ecn[i]! })
            }
            more = received.more
          }
          if (got.length < count) return
          socket.onReadable = undefined
          resume(Effect.succeed(got))
        }
      }
    ),
    "10 seconds"
  )
