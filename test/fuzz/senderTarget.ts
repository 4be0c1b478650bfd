import { Bench, list, makeRecords, ScriptedPeer, stored } from "../../packages/sender/test/scriptedPeer.ts"
import { id64, keyIdOf, keyPair, lostKey, nodeSuite, type Pair, seededEntropy, staticSecret } from "@pure-link/keys"
import { encodeFrame, type Frame, PacketEcho, tagLength, writeLostHeader } from "@pure-link/wire"
import { deepStrictEqual, ok as assert } from "node:assert/strict"
import { HonestReceiver } from "./honestReceiver.ts"
import { rememberingSuite } from "./rememberingSuite.ts"
import { numberOf, readScript, type Step, timeOf, writeScript } from "./script.ts"
import type { Target } from "./target.ts"

/**
 * A whole sender and a receiver that answers what the script says, sealed with the right keys: in reply runs and numbers as
 * it likes, and LOST for packets that are in flight or are not. Afterwards an honest receiver takes over, and gets every record
 * that is left, unless the sender stopped with the typed error of a fork.
 */

const second = 1_000_000
/** What the honest receiver may take: a refused sender tries every 64 s. */
const patience = 400 * second
/** Round trips of more than 8 s are another matter: their timeouts would not fit the honest receiver's time. */
const longestWait = 8 * second
const mostPackets = 3_000

/** What the low 3 bits of `how` choose. */
const How = {
  answer: 0,
  freshReplyRun: 1,
  oldReplyRun: 2,
  honest: 3,
  lost: 4,
  damaged: 5,
  append: 6,
  nothing: 7
} as const

class FuzzedSender {
  readonly bench: Bench
  private readonly seed: Pair & { readonly secret: Uint8Array }
  private answers = 0
  private packets = 0
  private received: Array<number> = []
  private readonly entropy = seededEntropy(3)

  constructor() {
    const identity = keyPair(nodeSuite, seededEntropy(11))
    const peer = new ScriptedPeer(identity.publicKey)
    this.bench = new Bench({
      suite: rememberingSuite,
      records: makeRecords([300, 0, 5_000, 61, 1_400, 20_000, 9]),
      identity,
      peerPublicKey: peer.identity.publicKey
    })
    const pair = { sender: identity.publicKey, receiver: peer.identity.publicKey }
    this.seed = { ...pair, secret: staticSecret(nodeSuite, peer.identity.privateKey, pair.sender, pair)! }
    // The bench made a peer of its own, for another identity; this one is the link's.
    Object.assign(this.bench, { peer })
    this.pump()
  }

  take(step: Step): void {
    const { bench } = this
    this.wait(timeOf(step) % longestWait)
    if (bench.peer.epochs === undefined) return
    switch (step.how & 7) {
      case How.freshReplyRun:
        bench.peer.freshReplyRun()
        this.answers = 0
        this.answer(step)
        break
      case How.oldReplyRun: {
        const { replyRun } = bench.peer
        bench.peer.replyRun = BigInt(0xa1 + (step.choice & 7))
        this.answer(step)
        bench.peer.replyRun = replyRun
        break
      }
      case How.honest:
        this.answerHonestly()
        break
      case How.lost:
        this.lose(step)
        break
      case How.damaged:
        this.damage(step)
        break
      case How.append:
        bench.append(makeRecords([step.choice, (step.number << 4) + step.time]))
        break
      default:
        this.answer(step)
    }
    this.pump()
    this.check()
  }

  finish(): void {
    const { bench } = this
    bench.peer.accepts = true
    const honest = new HonestReceiver(bench)
    honest.serve(bench.now + patience)
    const { state, stored: n } = bench.link
    assert(state === "forked" || n === bench.last, `stuck: ${this.standing()}`)
  }

  private answer(step: Step): void {
    if (step.body.length === 0) return
    const number = numberOf(step, this.answers)
    if (number >= this.answers && number < this.answers + 64) this.answers = number + 1
    this.bench.hear(this.bench.peer.answer([], { number, body: step.body }))
  }

  private answerHonestly(): void {
    const { bench, received } = this
    if (received.length === 0) return
    bench.hear(
      bench.peer.answer([list("Ack", ...received.splice(0)), stored(bench.link.stored, {}, bench.lives[0]!.life)], {
        number: this.answers++
      })
    )
  }

  /** LOST for the packet that `choice` names, newest first, with an echo that `number` may change, or an echo of the script. */
  private lose(step: Step): void {
    const { bench, seed } = this
    const cause = bench.datagrams.at(-1 - step.choice)
    const echo = new PacketEcho()
    if (cause === undefined || !echo.read(step.body, 0, step.body.length)) {
      if (cause === undefined) return
      const isLong = (cause[0]! & 0x40) !== 0
      echo.take(cause, 0, cause.length, Buffer.from(cause).readUIntBE(isLong ? 18 : 9, 3))
      if (step.number >= 0x80) echo.tagLow ^= step.number
    }
    const out = new Uint8Array(45)
    const replyRun = id64(this.entropy)
    const bodyStart = writeLostHeader(out, 0, keyIdOf(nodeSuite, seed.sender), bench.link.runPrefix, replyRun)
    lostKey(nodeSuite, seed.secret, seed, replyRun).seal(out, 0, bodyStart, echo.write(out, bodyStart), 0)
    bench.hear(out)
  }

  /** Nothing that is not authentic has an effect (spec §9.4, §15.1). */
  private damage(step: Step): void {
    const { bench } = this
    const body = step.body.length > 0 ? step.body : Uint8Array.of(0)
    const datagram = bench.peer.answer([], { number: this.answers, body })
    datagram[(step.number * 31 + step.time) % datagram.length]! ^= 1 << (step.choice & 7)
    const before = this.standing()
    assert(!bench.hear((step.choice & 8) === 0 ? datagram : step.body.slice(0)), "a damaged answer opened")
    deepStrictEqual(this.standing(), before, "a damaged answer changed something")
  }

  private wait(time: number): void {
    const { bench } = this
    const until = bench.now + time
    for (const { datagram } of bench.runUntil(until)) this.open(datagram)
  }

  private pump(): void {
    for (const datagram of this.bench.send()) this.open(datagram)
  }

  private open(datagram: Uint8Array): void {
    this.packets += 1
    assert(this.packets < mostPackets, "the sender spins")
    const packet = this.bench.peer.open(this.bench.now, datagram)
    if (packet !== undefined) this.received.push(packet.number)
  }

  private check(): void {
    const { link } = this.bench
    assert(link.stored <= this.bench.last)
    assert(link.status.inFlight >= 0 && link.status.window >= 2_400, "the window is gone")
    this.bench.events.length = 0
  }

  private standing(): string {
    const { bench } = this
    const { link, now } = bench
    const {
      replayed: _,
      unopened: __,
      limited: ___,
      lostIgnored: ____,
      ...counters
    } = link.counters as unknown as Record<string, number>
    const recovery = link.recoveryCounters
    return JSON.stringify({
      ...link.status,
      stored: link.stored,
      last: bench.last,
      state: link.state,
      deadline: link.deadline(),
      now,
      counters,
      recovery
    })
  }
}

const bodyOf = (...frames: ReadonlyArray<Frame>): Uint8Array => {
  const out = new Uint8Array(1_500)
  let at = 0
  for (const frame of frames) at = encodeFrame(frame, out, at)
  return out.slice(0, Math.min(at, 1_500 - tagLength))
}

const seeds = (): ReadonlyArray<Uint8Array> => {
  const { life } = new FuzzedSender().bench.lives[0]!
  const step = (how: number, body: Uint8Array, more: Partial<Step> = {}): Step => ({
    how,
    choice: 0,
    number: 0,
    time: 14,
    body,
    ...more
  })
  const honest = step(How.honest, new Uint8Array(0))
  const ack = (...numbers: ReadonlyArray<number>) => list("Ack", ...numbers)
  const begin = [honest, honest]
  return [
    [...begin, step(0, bodyOf(ack(3, 2, 1, 0), stored(2, {}, life))), honest],
    [...begin, step(0, bodyOf(list("Seen", 3, 2), stored(1, { creditRecords: 0 }, life)), { time: 20 })],
    [...begin, step(1, bodyOf(ack(4), stored(1, {}, life))), step(1, bodyOf(ack(5), stored(0)), { time: 18 })],
    [...begin, step(0, bodyOf(stored(7, {}, life))), step(2, bodyOf(ack(1), stored(0)))],
    [...begin, step(0, bodyOf(stored(3, {}, 0x77n)))],
    [...begin, step(0, bodyOf({ _tag: "Refused", reason: 1 })), step(0, bodyOf(ack(6)), { time: 21 }), honest],
    [...begin, step(0, bodyOf({ _tag: "Challenge", ipChanged: true, token: 9n }, { _tag: "Name" }))],
    [...begin, step(0, bodyOf({ _tag: "Ecn", ect0: 1, ect1: 0, ce: 3 }, ack(2, 1, 0)))],
    [...begin, step(0, bodyOf({ _tag: "AckMap", largest: 9, delay: 100, bits: Uint8Array.of(0x55, 1) }, ack(900)))],
    [...begin, step(0, bodyOf({ _tag: "Accept", epoch: 2, echo: 5, publicKey: new Uint8Array(32).fill(9) }))],
    [
      ...begin,
      step(How.lost, new Uint8Array(0), { time: 0 }),
      honest,
      step(How.lost, new Uint8Array(12), { time: 22 })
    ],
    [
      ...begin,
      step(How.damaged, bodyOf(ack(3), stored(1, {}, life))),
      step(How.damaged, new Uint8Array(30), { choice: 8 })
    ],
    [
      ...begin,
      step(How.append, new Uint8Array(0), { choice: 40, number: 90 }),
      step(0, bodyOf(ack(5)), { number: 0xff })
    ],
    [...begin, step(How.nothing, new Uint8Array(0), { time: 26 }), honest, step(0, bodyOf(ack(3)), { number: 0x82 })]
  ].map(writeScript)
}

export const senderTarget: Target = {
  name: "sender",
  isScript: true,
  seeds,
  run: (input) => {
    const fuzzed = new FuzzedSender()
    for (const step of readScript(input).slice(0, 48)) fuzzed.take(step)
    fuzzed.finish()
  }
}
