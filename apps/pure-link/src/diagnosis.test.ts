/**
 * What `pure-link doctor` finds and advises.
 */
import { assert, describe, it } from "@effect/vitest"
import { Cryptography, DatagramSocket, type OpenSocket } from "@pure-link/ports"
import { DatagramSocketNode } from "@pure-link/udp"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as TestClock from "effect/testing/TestClock"
import { execFileSync } from "node:child_process"
import { join } from "node:path"
import { linesOf } from "./commands/doctor.ts"
import { type Diagnosis, diagnose, remediesOf } from "./diagnosis.ts"

const best: Omit<Diagnosis, "remedies"> = {
  node: "24.21.0",
  kernel: "linux 6.18 x64",
  addon: { path: "/native/build/pure_link.node" },
  aead: { library: "OpenSSL 3.5" },
  sockets: {
    segments: 128,
    gro: true,
    receiveBufferBytes: 4_194_304,
    sendBufferBytes: 4_194_304,
    dontFragment: true,
    ecnReceive: true,
    ecnSend: true,
    packetInfo: true,
    dropCounter: true,
    timer: true
  },
  buffers: { receive: 4_194_304, send: 4_194_304 },
  limits: { receive: 4_194_304, send: 4_194_304 }
}

const asText = (found: Omit<Diagnosis, "remedies">): string =>
  linesOf({ ...found, remedies: remediesOf(found) })
    .map((line) => line.join(" "))
    .join("\n")

describe("a diagnosis", () => {
  it("advises nothing where everything is there", () => {
    assert.deepStrictEqual(remediesOf(best), [])
    assert.include(asText(best), "GSO of 128 datagrams, GRO, don't fragment")
  })

  it("gives the one reason of a missing addon once, and each of its own for the parts", () => {
    const reason = "not built: no C++ compiler found"
    const fallback = { ...best, addon: { reason }, aead: { reason }, sockets: { reason } }
    assert.deepStrictEqual(remediesOf(fallback), [`no native path, so packets cost several times the CPU: ${reason}`])
    assert.match(asText(fallback), /native path none: not built[^]*encryption node:crypto\nsockets node:dgram/)
    const parts = remediesOf({ ...best, aead: { reason: "EVP_seal is missing" }, sockets: { reason: "ENOSYS" } })
    assert.strictEqual(parts.length, 2)
    assert.include(parts[0]!, "EVP_seal is missing")
    assert.include(parts[1]!, "ENOSYS")
  })

  it("advises to raise the limit of a small buffer", () => {
    const [advice, ...others] = remediesOf({ ...best, buffers: { receive: 212_992, send: 4_194_304 } })
    assert.match(advice!, /^a receive buffer of 212,992 B drops bursts: `sysctl -w net.core.rmem_max=4194304`/)
    assert.deepStrictEqual(others, [])
    assert.match(remediesOf({ ...best, buffers: { receive: 4_194_304, send: 1 } })[0]!, /wmem_max/)
  })

  it("says what a kernel lacks", () => {
    const poor = { ...best, sockets: { ...best.sockets, segments: 0, gro: false } }
    assert.include(asText(poor), "no GSO, no GRO")
    assert.match(remediesOf(poor)[0]!, /^no GSO/)
  })
})

describe("diagnose", () => {
  it.live("tries a socket of this machine", () =>
    Effect.gen(function* () {
      const found = yield* diagnose
      assert.isAbove(found.buffers.receive, 0)
      assert.strictEqual(found.node, process.versions.node)
    }).pipe(Effect.provide(Layer.merge(DatagramSocketNode.layer, Cryptography.layerNode)))
  )

  it.effect("fails with the exit code of the network where nothing passes, or what passes was changed", () =>
    Effect.gen(function* () {
      const silent = yield* Effect.forkChild(Effect.flip(diagnose.pipe(Effect.provide(socketThat(() => undefined)))))
      yield* TestClock.adjust("3 seconds")
      const failure = yield* Fiber.join(silent)
      assert.strictEqual(failure.exit, 6)
      assert.match(failure.text, /do not arrive/)
      const changed = yield* Effect.flip(
        diagnose.pipe(Effect.provide(socketThat((slab) => slab.map((byte, i) => (i === 20 ? byte ^ 1 : byte)))))
      )
      assert.match(changed.text, /came back changed/)
    })
  )

  it("prints one JSON object, and exits with 0 on the fallback", () => {
    const output = execFileSync(
      process.execPath,
      [join(import.meta.dirname, "../bin/pure-link.js"), "doctor", "--json"],
      { encoding: "utf8", env: { ...process.env, PURE_LINK_NATIVE: "off" } }
    )
    const found = JSON.parse(output) as Diagnosis
    assert.deepStrictEqual(found.addon, { reason: "turned off by PURE_LINK_NATIVE=off" })
    assert.strictEqual(
      found.remedies.some((remedy) => remedy.includes("PURE_LINK_NATIVE=off")),
      true
    )
  })
})

/** A socket that hears of what it sent what `path` makes of it. */
const socketThat = (path: (slab: Uint8Array) => Uint8Array | undefined) => {
  const local = { host: "127.0.0.1", port: 1 }
  let came: Uint8Array | undefined
  let length = 0
  const socket = {
    local,
    buffers: { receive: 1, send: 1 },
    set onReadable(call: (() => void) | undefined) {
      if (came !== undefined) call?.()
    },
    send: (slab: Uint8Array, _stride: number, lengths: Uint32Array) => {
      length = lengths[0]!
      came = path(slab)
    },
    receive: () => ({ count: 1, bytes: came!, starts: Uint32Array.of(0), ends: Uint32Array.of(length), from: [local] })
  } as unknown as OpenSocket
  return Layer.merge(Layer.succeed(DatagramSocket, { open: () => Effect.succeed(socket) }), Cryptography.layerNode)
}
