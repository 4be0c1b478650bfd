/** Where answers go while a sender's address changes (spec §10.9, §13). */
import { assert, describe, it } from "@effect/vitest"
import type { Frame } from "@pure-link/wire"
import {
  type Answer,
  begun,
  content,
  elsewhere,
  frameOf,
  live,
  ping,
  ScriptedPeer,
  second
} from "../test/scriptedPeer.ts"

const third = { host: "203.0.113.9", port: 77 }
const samePlace = { host: "192.0.2.1", port: 4_999 }

/** The answers that are due, by where they go. */
const byPlace = (peer: ScriptedPeer): Map<string, Answer> =>
  new Map(peer.answers().map((answer) => [`${answer.to.host}:${answer.to.port}`, answer]))
const at = (answers: Map<string, Answer>, { host, port }: { host: string; port: number }) =>
  answers.get(`${host}:${port}`)

/** A packet that is long enough to be answered wherever it comes from. */
const long: ReadonlyArray<Frame> = [ping, ...Array.from({ length: 150 }, () => ({ _tag: "Padding" }) as const)]

describe("a new address", () => {
  it("is challenged, and until it answers gets answers beside the validated one", () => {
    const { peer } = live()
    peer.send(long, { from: elsewhere })
    const answers = byPlace(peer)
    assert.strictEqual(answers.size, 2)
    assert.isUndefined(frameOf(at(answers, peer.from)!, "Challenge"))
    const { ipChanged, token } = frameOf(at(answers, elsewhere)!, "Challenge")!
    assert.isTrue(ipChanged)
    peer.send([{ _tag: "Response", token }, ...long], { from: elsewhere })
    const after = byPlace(peer)
    assert.deepStrictEqual([...after.keys()], [`${elsewhere.host}:${elsewhere.port}`])
    assert.isUndefined(frameOf(at(after, elsewhere)!, "Challenge"))
  })

  it("is told whether the IP or only the port changed", () => {
    const { peer } = live()
    peer.send(long, { from: samePlace })
    assert.isFalse(frameOf(at(byPlace(peer), samePlace)!, "Challenge")!.ipChanged)
  })

  it("is validated by a RESPONSE wherever that comes from, and that place is not", () => {
    const { world, peer } = live()
    peer.send(long, { from: elsewhere })
    const { token } = frameOf(at(byPlace(peer), elsewhere)!, "Challenge")!
    peer.send([{ _tag: "Response", token }, ...long], { from: third })
    const answers = byPlace(peer)
    // The packet came from a third place, which is not the one that the challenge went to, and is challenged now.
    assert.isUndefined(at(answers, peer.from))
    assert.isDefined(frameOf(at(answers, third)!, "Challenge"))
    assert.isUndefined(frameOf(at(answers, elsewhere)!, "Challenge"))
    assert.strictEqual(world.receiver.counters.pathsValidated, 1)
  })

  it("is not validated by a wrong token, or by that of an address given up for another", () => {
    const { world, peer } = live()
    peer.send(long, { from: elsewhere })
    const { token } = frameOf(at(byPlace(peer), elsewhere)!, "Challenge")!
    peer.send(long, { from: third })
    byPlace(peer)
    peer.send([{ _tag: "Response", token }, ...long], { from: third })
    peer.send([{ _tag: "Response", token: 0n }, ...long], { from: third })
    assert.isDefined(at(byPlace(peer), peer.from))
    assert.strictEqual(world.receiver.counters.pathsValidated, 0)
  })

  it("gets at most three times the bytes that came from it", () => {
    const { world, peer } = live()
    const packet = peer.seal([peer.records(1, content(1, 150))])
    peer.deliver(packet, elsewhere)
    let sent = 0
    for (let round = 0; round < 30; round++) {
      for (const { bytes, to } of world.transmit()) if (to === elsewhere) sent += bytes.length
      const intent = world.receiver.pollStore()
      if (intent !== undefined) world.receiver.handleStoreFailed(world.now, intent)
      world.now += second
      world.receiver.handleTimeout(world.now)
    }
    assert.isAbove(sent, packet.length)
    assert.isAtMost(sent, 3 * packet.length)
  })

  it("is forgotten when the sender is heard at the validated one again, and after 10 s", () => {
    const { world, peer } = live()
    peer.send(long, { from: elsewhere })
    byPlace(peer)
    peer.send(long)
    assert.deepStrictEqual([...byPlace(peer).keys()], [`${peer.from.host}:${peer.from.port}`])
    peer.send(long, { from: elsewhere })
    byPlace(peer)
    assert.strictEqual(world.receiver.deadline(), world.now + 10 * second)
    world.now += 10 * second
    world.receiver.handleTimeout(world.now)
    assert.strictEqual(world.receiver.counters.pathsGivenUp, 1)
    assert.strictEqual(world.receiver.deadline(), Number.POSITIVE_INFINITY)
  })

  it("is not believed for a packet that is older than others, or a copy", () => {
    const { peer } = live()
    const late = peer.seal(long)
    const copied = peer.seal(long)
    peer.deliver(copied)
    peer.deliver(copied, elsewhere)
    peer.deliver(late, third)
    assert.deepStrictEqual([...byPlace(peer).keys()], [`${peer.from.host}:${peer.from.port}`])
  })

  it("of a run that begins is validated by the packet that confirms what was accepted there, and no other", () => {
    for (const moved of [false, true]) {
      const { world, peer } = begun()
      peer.send([peer.stream, peer.offer()], { long: true })
      const accept = frameOf(peer.answer(), "Accept")!
      peer.epochs.handleAccept(world.now, accept.epoch, accept.echo, accept.publicKey)
      peer.send([peer.stream, ...long], { from: moved ? elsewhere : peer.from })
      const answer = peer.answer()
      assert.strictEqual(frameOf(answer, "Challenge") !== undefined, moved)
    }
  })

  it("leaves one timer, however many there are and whether they answer or not", () => {
    const { world, peer } = live()
    for (let i = 0; i < 10_000; i++) {
      const from = { host: `10.1.${i >>> 8}.${i & 255}`, port: 1_000 + i }
      peer.send(long, { from })
      const challenge = frameOf(at(byPlace(peer), from)!, "Challenge")!
      if (i % 3 > 0) peer.send([{ _tag: "Response", token: challenge.token }, ...long], { from })
      peer.answers()
      world.now += 1_000
      if (world.receiver.deadline() <= world.now) world.receiver.handleTimeout(world.now)
    }
    assert.strictEqual(world.receiver.counters.pathsValidated, Math.floor((10_000 * 2) / 3))
    const challenges = (world.receiver as unknown as { outgoing: { challenges: { runs: ReadonlyArray<unknown> } } })
      .outgoing.challenges
    assert.isAtMost(challenges.runs.length, 1)
  })
})
