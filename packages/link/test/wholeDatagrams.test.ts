/**
 * Sockets that cannot keep datagrams whole, as those of node:dgram: what arrives may have been cut, so that no probe of the
 * path is believed, and none is sent (spec §3.1, §14.8).
 */
import { assert, describe, it } from "@effect/vitest"
import { Input, LinkNode, Output } from "@pure-link/link"
import { Cryptography, DatagramSocket, Entropy } from "@pure-link/ports"
import { PathMtu, Policies } from "@pure-link/recovery"
import { VirtualNetwork } from "@pure-link/virtual-net"
import type { Bytes } from "@pure-link/wire"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { blobs, device, hub, identities, outbox, play } from "./world.ts"

/** What a device sent while 400 records of 1,000 B went to the hub: probes of the path, and its longest datagram. */
const sendFrom = (dontFragment: boolean, policies = Policies.layerDefault) => {
  let longest: Bytes = 0
  const sockets = Layer.effect(
    DatagramSocket,
    Effect.map(DatagramSocket, ({ open }) => ({
      open: (at) =>
        Effect.map(open(at), (socket) => {
          const send = socket.send.bind(socket)
          const observed: typeof send = (slab, stride, lengths, count, to) => {
            longest = Math.max(longest, ...lengths.subarray(0, count))
            send(slab, stride, lengths, count, to)
          }
          return Object.defineProperties(socket, { dontFragment: { value: dontFragment }, send: { value: observed } })
        })
    }))
  ).pipe(Layer.provide(VirtualNetwork.host("device")))
  const node = LinkNode.layer({ identity: identities.device, listen: { host: "device", port: 0 } }).pipe(
    Layer.provide(sockets),
    Layer.provide(Layer.mergeAll(Cryptography.layerNode, policies, Entropy.layerSeeded(7)))
  )
  const sending = Effect.gen(function* () {
    const output = yield* Output.open(blobs, device)
    yield* output.appendAll(Array.from({ length: 400 }, () => new Uint8Array(1_000)))
    yield* output.drained
    const { counters } = (yield* (yield* LinkNode).counters).outputs[0]!
    return { probes: counters["recoveryPathProbes"]!, longest }
  }).pipe(Effect.provide(Layer.merge(node, outbox(blobs))))
  const program = Effect.andThen(Input.open(blobs), sending).pipe(Effect.scoped, Effect.provide(hub()))
  return play(program, { link: { delayMicros: 5_000 } })
}

describe("datagrams", () => {
  it("grow to 1,452 B after a probe where the socket keeps them whole", () => {
    assert.deepStrictEqual(sendFrom(true), { probes: 1, longest: 1_452 })
  })

  it("have at most 1,200 B, and no probe goes, where the system may cut them", () => {
    assert.deepStrictEqual(sendFrom(false), { probes: 0, longest: 1_200 })
  })

  it("have the size that an application's own policy gives, which is told that they may be cut", () => {
    const told: Array<boolean | undefined> = []
    const known = Layer.succeed(PathMtu, {
      make: ({ datagramSize, mayBeCut }) => {
        told.push(mayBeCut)
        return Policies.defaults.pathMtu.make({ datagramSize })
      }
    })
    assert.strictEqual(sendFrom(false, Layer.merge(Policies.layerDefault, known)).longest, 1_452)
    assert.deepStrictEqual(told, [true])
  })
})
