import { reserveBytes } from "../../packages/receiver/src/memory.ts"
import {
  content,
  elsewhere,
  MapMemo,
  ping,
  ScriptedPeer,
  second,
  World
} from "../../packages/receiver/test/scriptedPeer.ts"
import { encodeFrame, type Frame, Kind, type StoreIntent } from "@pure-link/wire"
import { deepStrictEqual, ok as assert } from "node:assert/strict"
import { rememberingSuite } from "./rememberingSuite.ts"
import { numberOf, readScript, type Step, timeOf, writeScript } from "./script.ts"
import type { Target } from "./target.ts"

/**
 * A whole receiver and four runs that write what the script says into packets that are sealed with the right keys:
 * authenticated garbage; and packets that are damaged after sealing, or were never sealed. Its process dies and begins again,
 * with its memo, an old copy of it, or none (spec §12.1). An honest run beside them must be served, the inbox must get
 * valid chains only, memory stays inside its bound, and what is not authentic changes nothing.
 */

const streamBytes = 65_536
const totalBytes = 131_072
/** Chunks are at least this long, streams at most five (spec §10.7 speaks of long buffers). */
const smallBuffers = 5 * 4_096

/** Counters that a forged packet may move. */
const costs = [
  "dropped",
  "lostSent",
  "lostLimited",
  "keyAgreements",
  "keyDerivations",
  "keyDerivationsLimited",
  "forgedPackets"
]

/** What the bits of `how` choose. */
const isLongOf = (step: Step): boolean => (step.how & 4) !== 0
const damageOf = (step: Step): number => (step.how >>> 3) & 3
const storeOf = (step: Step): number => (step.how >>> 5) & 3
const answersOf = (step: Step): boolean => (step.how & 0x80) === 0
/** What the bits of `choice` choose. */
const isZeroEpochOf = (step: Step): boolean => (step.choice & 1) !== 0
const isElsewhereOf = (step: Step): boolean => (step.choice & 2) !== 0
/** 5 to 7: the receiver begins again before the packet, with its memo, with an old copy of it, without. */
const restartOf = (step: Step): number => (step.choice >>> 2) & 7
const withMemo = 5
const withOldMemo = 6
const withoutMemo = 7

class FuzzedReceiver {
  readonly world = new World({ suite: rememberingSuite, streamBytes, totalBytes }, 7)
  honest: ScriptedPeer
  readonly actors: Array<ScriptedPeer>
  /** The batch whose commit failed, or that is under way. */
  private underWay: StoreIntent | undefined
  private memo = new MapMemo()
  /** The memo as it was when a process began. */
  private oldMemo = this.memo

  constructor() {
    const { world } = this
    this.begin()
    const honest = new ScriptedPeer(world, { source: "honest" })
    const hostile = new ScriptedPeer(world, { source: "a", from: { host: "192.0.2.2", port: 1 } })
    const { from, identity } = hostile
    const again = new ScriptedPeer(world, { source: "a", generation: 0xb2n, identity, from })
    const silent = new ScriptedPeer(world, { source: "b", identity, from })
    const second = new ScriptedPeer(world, { source: "c", from: { host: "192.0.2.3", port: 1 } })
    this.honest = honest
    this.actors = [hostile, again, second, silent]
    this.allow()
    honest.start()
    hostile.start()
    second.start()
    this.oldMemo = this.memo.copy()
    world.events()
  }

  /** A process begins, with what is in the memo now. */
  private begin(): void {
    const { memo, world } = this
    world.restart({ streamBytes, totalBytes, memo }).addInput("returns", 9n)
  }

  private allow(): void {
    const [hostile, , second] = this.actors
    this.honest.allowed(["honest"])
    hostile!.allowed(["a", "b"])
    second!.allowed("any")
  }

  take(step: Step): void {
    const { world } = this
    world.now += timeOf(step)
    if (restartOf(step) >= withMemo) this.restart(restartOf(step))
    world.receiver.handleTimeout(world.now)
    const actor = this.actors[step.how & 3]!
    const from = isElsewhereOf(step) ? elsewhere : actor.from
    if (damageOf(step) === 0) {
      if (step.body.length > 0) this.send(actor, step, from)
    } else this.sendForged(actor, step, from)
    this.store(storeOf(step))
    if (answersOf(step)) this.hear(actor)
    this.checkMemory()
  }

  /** The honest run's records are stored, however long the hostile ones kept the room. */
  finish(): void {
    const { world } = this
    const records = [1, 2, 3].map((number) => content(number, 300))
    for (let turn = 0; turn < 12; turn++) {
      const { honest } = this
      honest.send([honest.stream, honest.records(1, ...records)])
      this.store(0)
      world.transmit()
      if (world.inbox.cursor(honest.stream)?.n === 3) break
      world.now += 6 * second
      honest.send([ping])
      world.transmit()
      world.receiver.handleTimeout(world.now)
    }
    const stored = world.inbox.records.filter(({ name }) => name === "honest>orders").map(({ bytes }) => bytes)
    deepStrictEqual(stored, records, "an honest run is not served")
    this.checkChains()
    this.checkMemory()
  }

  /** The process dies and begins again. What it was committing is in the inbox or not, and nobody was told. */
  private restart(how: number): void {
    const { inbox } = this.world
    if (this.underWay !== undefined && how === withMemo) inbox.commit(this.underWay)
    this.underWay = undefined
    const before = this.memo.copy()
    if (how === withOldMemo) this.memo = this.oldMemo.copy()
    if (how === withoutMemo) this.memo = new MapMemo()
    this.oldMemo = before
    this.begin()
    this.allow()
    this.honest = this.startedAgain(this.honest)
    for (const index of [0, 2]) this.actors[index] = this.startedAgain(this.actors[index]!)
    this.world.events()
  }

  /** A sender whose run the memo does not hold learns it by LOST, and begins a fresh one. */
  private startedAgain(peer: ScriptedPeer): ScriptedPeer {
    const { from, identity, run, stream } = peer
    if (this.memo.peers.get(String(identity.publicKey))?.runs.get(run)?.isLive === true) return peer
    const fresh = new ScriptedPeer(this.world, { source: stream.source, identity, from })
    fresh.start()
    return fresh
  }

  private send(actor: ScriptedPeer, step: Step, from: typeof elsewhere): void {
    const number = numberOf(step, actor.number)
    const next = actor.number
    const packet = actor.sealBody(step.body, {
      number,
      long: isLongOf(step),
      ...(isZeroEpochOf(step) ? { epoch: 0 } : {})
    })
    // A number far ahead is the script's, not the run's next.
    if (number > next + 64) actor.number = next
    actor.deliver(packet, from)
  }

  /** Damaged after sealing, cut short, or never sealed: nothing changes but the count of drops (spec §10.1, §15.1). */
  private sendForged(actor: ScriptedPeer, step: Step, from: typeof elsewhere): void {
    const packet = this.forge(actor, step)
    if (packet === undefined) return
    const before = this.standing()
    assert(!actor.deliver(packet, from), "a forged packet opened")
    deepStrictEqual(this.standing(), before, "a forged packet changed something")
  }

  private forge(actor: ScriptedPeer, step: Step): Uint8Array | undefined {
    if (damageOf(step) === 3) return step.body
    const { number } = actor
    const body = step.body.length > 0 ? step.body : Uint8Array.of(1)
    const packet = actor.sealBody(body, { long: isLongOf(step), ...(isZeroEpochOf(step) ? { epoch: 0 } : {}) })
    actor.number = number
    if (damageOf(step) === 2) return packet.subarray(0, (step.number * 31 + step.time) % packet.length)
    packet[(step.number * 31 + step.time) % packet.length]! ^= 1 << (step.choice >>> 5)
    return packet
  }

  /** What a forged packet must leave as it is; it may cost work, and draw a LOST (spec §12.2). */
  private standing(): unknown {
    const { receiver } = this.world
    const counters: Record<string, unknown> = { ...receiver.counters }
    for (const name of costs) delete counters[name]
    return { ...counters, held: receiver.heldBytes, buffers: receiver.bufferBytes, deadline: receiver.deadline() }
  }

  /** 0: everything is committed. 1: commits fail. 2: nobody stores. 3: one commit, later. */
  private store(how: number): void {
    const { receiver, inbox, now } = this.world
    if (how === 2) return
    if (how === 3) {
      if (this.underWay === undefined) this.underWay = receiver.pollStore()
      else this.commitUnderWay()
      return
    }
    this.commitUnderWay()
    for (let intent = receiver.pollStore(); intent !== undefined; intent = receiver.pollStore()) {
      if (how === 1 && intent.source !== "honest") receiver.handleStoreFailed(now, intent)
      else receiver.handleStored(now, intent, inbox.commit(intent))
    }
  }

  private commitUnderWay(): void {
    const { underWay } = this
    if (underWay === undefined) return
    const { receiver, inbox, now } = this.world
    this.underWay = undefined
    receiver.handleStored(now, underWay, inbox.commit(underWay))
  }

  /** Takes what is answered, and follows an ACCEPT. */
  private hear(actor: ScriptedPeer): void {
    const { world } = this
    for (const { bytes, to } of world.transmit()) {
      if (bytes[0]! >>> 6 === Kind.lost) continue
      for (const frame of actor.open(bytes, to)?.frames ?? []) {
        if (frame._tag === "Accept") actor.epochs.handleAccept(world.now, frame.epoch, frame.echo, frame.publicKey)
      }
    }
    world.events()
  }

  private checkMemory(): void {
    const { heldBytes, bufferBytes } = this.world.receiver
    assert(heldBytes >= 0 && heldBytes <= totalBytes + reserveBytes, `${heldBytes} B are held`)
    assert(
      bufferBytes >= 0 && bufferBytes <= 1.25 * heldBytes + totalBytes / 4 + smallBuffers,
      `buffers of ${bufferBytes} B for ${heldBytes} B`
    )
  }

  /** Each stream's records are in the inbox once each, in order. */
  private checkChains(): void {
    const { inbox } = this.world
    const next = new Map<string, number>()
    for (const { name, number } of inbox.records) {
      const expected = next.get(name) ?? 1
      assert(number === expected || number === 1, `record ${number} of ${name} after ${expected - 1}`)
      next.set(name, number + 1)
    }
  }
}

/** How an honest sender would have filled the packets. */
const bodyOf = (...frames: ReadonlyArray<Frame>): Uint8Array => {
  const out = new Uint8Array(1_400)
  let at = 0
  for (const frame of frames) at = encodeFrame(frame, out, at)
  return out.slice(0, at)
}

const seeds = (): ReadonlyArray<Uint8Array> => {
  const { actors } = new FuzzedReceiver()
  const [first, again, other, silent] = actors as [ScriptedPeer, ScriptedPeer, ScriptedPeer, ScriptedPeer]
  const step = (how: number, body: Uint8Array, more: Partial<Step> = {}): Step => ({
    how,
    choice: 0,
    number: 0,
    time: 0,
    body,
    ...more
  })
  const offer = (epoch: number): Frame => ({ _tag: "Offer", epoch, publicKey: new Uint8Array(32).fill(9) })
  const lives = [
    { life: 0xaaaan, first: 1 },
    { life: 0xcccn, first: 3 }
  ]
  return [
    [step(0, bodyOf(first.records(1, content(1, 20), content(2, 20)))), step(0, bodyOf(ping))],
    [
      step(0, bodyOf(first.part(1, 500, content(1, 50), true))),
      step(0, bodyOf(first.part(1, 0, content(1, 500), false)))
    ],
    [
      step(0, bodyOf(first.part(2, 70_000, content(1, 50), true))),
      step(0, bodyOf(first.records(1, content(1, 10))), { time: 20 })
    ],
    [
      step(0, bodyOf(first.part(1, 16_000_000, content(1, 50), true)), { time: 3 }),
      step(2, bodyOf(other.part(1, 9_000_000, content(2, 9), false)), { time: 24 })
    ],
    [
      step(5, bodyOf(again.stream, again.offer()), { choice: 1 }),
      step(1, bodyOf(again.stream, again.records(1, content(1, 20))))
    ],
    [step(7, bodyOf(silent.stream, silent.offer(), silent.records(1, content(1, 20))), { choice: 1 })],
    [step(0, bodyOf(offer(2))), step(0, bodyOf(ping)), step(0, bodyOf(offer(3)), { number: 0x81 })],
    [
      step(0, bodyOf({ ...first.stream, lives })),
      step(0, bodyOf(first.records(1, content(1, 5), content(2, 5), content(3, 5))))
    ],
    [
      step(0x20, bodyOf(first.records(1, content(1, 9)))),
      step(0x40, bodyOf(first.records(2, content(1, 9))), { time: 21 })
    ],
    [step(0x60, bodyOf(first.records(1, content(1, 9)))), step(0x60, bodyOf({ ...first.stream, lowestHeld: 5 }))],
    [step(4, bodyOf(ping), { number: 0xff }), step(4, bodyOf(ping), { number: 0xd8 }), step(0, bodyOf(ping))],
    [
      step(0x80, bodyOf(ping)),
      step(0x84, bodyOf(ping), { number: 0xc1 }),
      step(0x84, bodyOf(first.part(9, 9, content(1, 9), false)), { number: 0xc4 })
    ],
    [
      step(8, bodyOf(first.records(1, content(1, 9)))),
      step(16, bodyOf(ping), { number: 1 }),
      step(24, new Uint8Array(60).fill(3))
    ],
    [
      step(0, bodyOf({ _tag: "Response", token: 5n }), { choice: 2 }),
      step(0, bodyOf({ _tag: "Padding" }, ping), { choice: 2 })
    ],
    [step(7, bodyOf({ ...silent.stream, input: "nowhere" }, silent.offer()), { choice: 1 })],
    [step(7, bodyOf({ ...silent.stream, input: "returns" }, silent.offer()), { choice: 1 })],
    ...[withMemo, withOldMemo, withoutMemo].map((how) => [
      step(0x60, bodyOf(first.records(1, content(1, 20)))),
      step(0, bodyOf(first.records(1, content(1, 20), content(2, 20))), { choice: how << 2, time: 18 }),
      step(3, bodyOf(first.stream, ping)),
      step(4, bodyOf(first.stream, offer(2)), { choice: how << 2 })
    ])
  ].map(writeScript)
}

export const receiverTarget: Target = {
  name: "receiver",
  isScript: true,
  seeds,
  run: (input) => {
    const fuzzed = new FuzzedReceiver()
    for (const step of readScript(input).slice(0, 64)) fuzzed.take(step)
    fuzzed.finish()
  }
}
