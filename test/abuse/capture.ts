import { content, ping, ScriptedPeer } from "../../packages/receiver/test/scriptedPeer.ts"
import type { ReceiverFaults } from "@pure-link/receiver"
import { lostLength, smallestEpochPacket } from "@pure-link/wire"
import { ok as assert, strictEqual } from "node:assert/strict"
import { follow, Stage } from "./stage.ts"
import { standingOf } from "./standing.ts"

/** The standing is compared after so many datagrams without effect, and at the end. */
const someEndured = 16

/**
 * A receiver in the midst of things, with all packets of its runs: a live run with records stored and records held, and one that
 * is not live yet. What is handed to `endure` must change nothing.
 */
export class Scene {
  readonly stage: Stage
  readonly live: ScriptedPeer
  readonly provisional: ScriptedPeer
  /** Every packet that was delivered. */
  readonly packets: Array<Uint8Array> = []
  /** Bytes of LOST that were drawn. */
  lostBytes = 0
  private endured = 0

  constructor(faults: ReceiverFaults = {}) {
    this.stage = new Stage({ totalBytes: 1_048_576, faults })
    const live = (this.live = new ScriptedPeer(this.stage, { source: "live" }).allowed())
    const from = { host: "192.0.2.9", port: 9 }
    const provisional = (this.provisional = new ScriptedPeer(this.stage, { source: "provisional", from }).allowed())
    for (let i = 0; i < 2; i++) {
      this.pass(live, live.seal([live.stream, live.offer(), live.records(1, content(1, 100))], { long: true }))
    }
    this.pass(live, live.seal([live.stream, ping]))
    this.pass(live, live.seal([live.records(2, content(2, 400), content(3, 20))]))
    this.pass(live, live.seal([live.part(5, 70_000, content(5, 300), false)]))
    this.pass(live, live.seal([live.records(6, content(6, 10)), { _tag: "Response", token: 77n }], { long: true }))
    this.pass(provisional, provisional.seal([provisional.stream, provisional.offer()], { long: true }))
    strictEqual(this.stage.inbox.cursor(live.stream)?.n, 3)
  }

  standing(): string {
    return standingOf(this.stage.receiver)
  }

  /** A datagram that must have no effect, and draw nothing but a LOST that is smaller than it. */
  endure(datagram: Uint8Array, before: string, why: string, from = this.live.from): void {
    const { stage } = this
    const bytes = datagram.slice()
    assert(!stage.receiver.handleDatagram(stage.now, bytes, 0, bytes.length, from), `${why}: opened`)
    stage.receiver.endBatch(stage.now)
    const out = new Uint8Array(1_500)
    for (let length; (length = stage.receiver.pollTransmit(stage.now, out, 0)) > 0;) {
      assert(out[0]! >>> 6 === 3 && length === lostLength, `${why}: answered`)
      assert(datagram.length >= smallestEpochPacket, `${why}: LOST is not smaller than its cause`)
      this.lostBytes += length
    }
    strictEqual(stage.receiver.pollStore(), undefined, why)
    if (++this.endured % someEndured === 0) this.compare(before, why)
  }

  /** Nothing changed since. */
  compare(before: string, why: string): void {
    const after = this.standing()
    if (after !== before) throw new Error(`${why}: something changed, ${differenceOf(before, after)}`)
  }

  /** One valid packet of every kind, none of them delivered yet. */
  fresh(): ReadonlyArray<{ readonly kind: string; readonly packet: Uint8Array }> {
    const { live, provisional } = this
    const stranger = new ScriptedPeer(this.stage, { source: "live", identity: live.identity })
    return [
      { kind: "records, short header", packet: live.seal([live.records(4, content(4, 60))]) },
      { kind: "records, long header", packet: live.seal([live.records(4, content(4, 60))], { long: true }) },
      { kind: "a part", packet: live.seal([live.part(5, 90_000, content(5, 60), true)]) },
      { kind: "STREAM", packet: live.seal([{ ...live.stream, lowestHeld: 3 }, ping]) },
      { kind: "OFFER", packet: live.seal([{ _tag: "Offer", epoch: 9, publicKey: new Uint8Array(32).fill(9) }]) },
      {
        kind: "RESPONSE",
        packet: live.seal([{ _tag: "Response", token: 5n }, { _tag: "Padding" }, { _tag: "Padding" }, ping])
      },
      { kind: "epoch 0 of a live run", packet: live.seal([ping, live.stream], { epoch: 0, long: true }) },
      { kind: "epoch 0 of a provisional run", packet: provisional.seal([provisional.stream, ping], { long: true }) },
      { kind: "the first of a run", packet: stranger.seal([stranger.stream, stranger.offer(), ping], { long: true }) }
    ]
  }

  private pass(peer: ScriptedPeer, packet: Uint8Array): void {
    const { stage } = this
    this.packets.push(packet)
    const bytes = packet.slice()
    assert(stage.receiver.handleDatagram(stage.now, bytes, 0, bytes.length, peer.from))
    stage.store()
    follow(stage, peer)
    stage.store()
    follow(stage, peer)
    stage.events()
  }
}

/** Where two texts part. */
const differenceOf = (before: string, after: string): string => {
  let at = 0
  while (before[at] === after[at]) at += 1
  return `from ${before.slice(at - 80, at + 40)} to ${after.slice(at - 80, at + 40)}`
}
