import { content, type ScriptedPeer, shapeOfTest, World } from "../../packages/receiver/test/scriptedPeer.ts"
import { keyPair, nodeSuite } from "@pure-link/keys"
import type { ReceiverOptions } from "@pure-link/receiver"
import { type SenderEvent, SenderLink } from "@pure-link/sender"
import { type Address, type Micros, sameAddress } from "@pure-link/wire"
import { deepStrictEqual, ok as assert } from "node:assert/strict"
import { Timeline } from "../world/timeline.ts"

/**
 * One receiver in virtual time, honest senders on a path of 5 ms, and a place for attackers who write what they like. What
 * attackers hand over arrives at once, and what is answered to them waits until they look.
 */

export const delay: Micros = 5_000
export const second: Micros = 1_000_000
/** Datagrams that a driver reads before it lets the machine answer (spec §10.4). */
const datagramsInBatch = 64

export class Stage extends World {
  readonly timeline = new Timeline()
  readonly outputs: Array<HonestOutput> = []
  /** The keys of honest senders, to be allowed again after a restart. */
  readonly allowedKeys: Array<Uint8Array> = []
  /** Bytes that the receiver sent to whoever is no honest sender. */
  strayBytes = 0
  private wakesAt = Number.POSITIVE_INFINITY

  constructor(options: Partial<ReceiverOptions> = {}, seed = 1) {
    super(options, seed)
    this.now = 0
    this.timeline.at(second, () => {})
    this.advance(second)
  }

  /** An honest sender of its own key, with records to send. */
  join(source: string, records: ReadonlyArray<Uint8Array>, options: Partial<OutputOptions> = {}): HonestOutput {
    const output = new HonestOutput(this, source, records, options)
    this.receiver.allow({ publicKey: output.identity.publicKey, sources: [source] })
    this.allowedKeys.push(output.identity.publicKey)
    this.outputs.push(output)
    output.turn()
    return output
  }

  /** Virtual time passes. */
  advance(time: Micros): void {
    const until = this.now + time
    let isOver = false
    this.timeline.at(until, () => (isOver = true))
    while (!isOver) this.step()
  }

  /** Until something holds; false when it did not within the time. */
  advanceUntil(holds: () => boolean, time: Micros): boolean {
    const until = this.now + time
    let isOver = false
    this.timeline.at(until, () => (isOver = true))
    while (!holds() && !isOver) this.step()
    return holds()
  }

  /** A datagram of an honest sender is on its way. */
  carry(bytes: Uint8Array, from: Address): void {
    this.timeline.at(this.now + delay, () => {
      this.receiver.handleDatagram(this.now, bytes, 0, bytes.length, from)
      this.turn()
    })
  }

  /** What the receiver has to do is done. */
  turn(): void {
    this.store()
    for (const { bytes, to } of this.transmit()) this.strayBytes += to.host === "" ? 0 : bytes.length
    this.store()
    this.events()
    this.setAlarm()
  }

  /** What is for honest senders leaves; the rest is returned. */
  override transmit(): ReturnType<World["transmit"]> {
    return super.transmit().filter(({ bytes, to }) => {
      const output = this.outputs.find(({ address }) => sameAddress(address, to))
      if (output !== undefined) this.timeline.at(this.now + delay, () => output.hear(bytes))
      return output === undefined
    })
  }

  /** An attacker's packets arrive together, in batches as a driver reads them. */
  hit(packets: Iterable<Uint8Array>, from: Address): void {
    let inBatch = 0
    for (const packet of packets) {
      const bytes = packet.slice()
      this.receiver.handleDatagram(this.now, bytes, 0, bytes.length, from)
      if (++inBatch % datagramsInBatch === 0) this.turn()
    }
    this.turn()
  }

  private step(): void {
    assert(this.timeline.step())
    this.now = this.timeline.now
  }

  private setAlarm(): void {
    const at = this.receiver.deadline()
    if (at >= this.wakesAt || at === Number.POSITIVE_INFINITY) return
    this.wakesAt = at
    this.timeline.at(at, () => {
      if (this.wakesAt !== at) return
      this.wakesAt = Number.POSITIVE_INFINITY
      this.receiver.handleTimeout(this.now)
      this.turn()
    })
  }
}

export interface OutputOptions {
  readonly address: Address
  readonly identity: ReturnType<typeof keyPair>
}

let addresses = 0

/** A real sender with its outbox in memory. */
export class HonestOutput {
  readonly stage: Stage
  readonly source: string
  readonly records: ReadonlyArray<Uint8Array>
  readonly identity: ReturnType<typeof keyPair>
  readonly address: Address
  readonly link: SenderLink
  readonly events: Array<SenderEvent> = []
  /** When the last record was stored, as the sender heard it. */
  doneAt: Micros = Number.POSITIVE_INFINITY
  private wakesAt = Number.POSITIVE_INFINITY
  private readonly out = new Uint8Array(1_500)
  private hasEnded = false

  constructor(stage: Stage, source: string, records: ReadonlyArray<Uint8Array>, options: Partial<OutputOptions>) {
    this.stage = stage
    this.source = source
    this.records = records
    this.identity = options.identity ?? keyPair(nodeSuite, stage.entropy)
    this.address = options.address ?? { host: "198.51.100.1", port: 1_000 + addresses++ }
    this.link = new SenderLink({
      suite: nodeSuite,
      entropy: stage.entropy,
      identity: this.identity,
      peerPublicKey: stage.identity.publicKey,
      stream: { source, input: "orders", shape: shapeOfTest },
      outbox: { generation: 0x600dn, lowestHeld: 1, last: records.length, lives: [{ life: 0x11fen, first: 1 }] }
    })
  }

  hear(bytes: Uint8Array): void {
    if (this.hasEnded) return
    this.link.handleDatagram(this.stage.now, bytes, 0, bytes.length)
    this.turn()
  }

  turn(): void {
    const { link, stage } = this
    if (this.hasEnded) return
    this.feed()
    link.handleTimeout(stage.now)
    for (let length; (length = link.pollTransmit(stage.now, this.out, 0)) > 0;) {
      stage.carry(this.out.slice(0, length), this.address)
    }
    for (let event; (event = link.pollEvent()) !== undefined;) this.events.push(event)
    if (link.stored === this.records.length) this.doneAt = Math.min(this.doneAt, stage.now)
    this.setAlarm()
  }

  /** The process is gone. */
  end(): void {
    this.hasEnded = true
    this.stage.outputs.splice(this.stage.outputs.indexOf(this), 1)
  }

  get isDone(): boolean {
    return this.doneAt < Number.POSITIVE_INFINITY
  }

  /** The inbox holds exactly its records. */
  check(): void {
    const name = `${this.source}>orders`
    const stored = this.stage.inbox.records.filter((record) => record.name === name).map(({ bytes }) => bytes)
    assert(this.isDone, `${this.source} is not served: ${this.link.stored} of ${this.records.length} are stored`)
    deepStrictEqual(stored.length, this.records.length)
    stored.forEach((bytes, i) => assert(Buffer.compare(bytes, this.records[i]!) === 0, `record ${i + 1} differs`))
  }

  private feed(): void {
    for (let wanted; (wanted = this.link.wanted()) !== undefined;) {
      const some: Array<Uint8Array> = []
      for (let bytes = 0, i = wanted.from - 1; i < this.records.length && some.length < wanted.records; i++) {
        bytes += this.records[i]!.length
        if (some.length > 0 && bytes > wanted.bytes) break
        some.push(this.records[i]!)
      }
      const batch = {
        first: wanted.from,
        bytes: new Uint8Array(Buffer.concat(some)),
        sizes: Uint32Array.from(some, (r) => r.length)
      }
      this.link.supply(this.stage.now, batch)
    }
  }

  private setAlarm(): void {
    const at = Math.max(this.link.deadline(), this.stage.now)
    if (at >= this.wakesAt || at === Number.POSITIVE_INFINITY) return
    this.wakesAt = at
    this.stage.timeline.at(at, () => {
      if (this.wakesAt !== at) return
      this.wakesAt = Number.POSITIVE_INFINITY
      this.turn()
    })
  }
}

/** Records to send: `count` of `size` bytes. */
export const recordsOf = (count: number, size: number): ReadonlyArray<Uint8Array> =>
  Array.from({ length: count }, (_, i) => content(i + 1, size))

/** Follows what was answered to an attacker, so that its run goes on like an honest one. */
export const follow = (stage: Stage, peer: ScriptedPeer): void => {
  for (const { bytes, to } of stage.transmit()) {
    if (bytes[0]! >>> 6 === 3) continue
    for (const frame of peer.open(bytes, to)?.frames ?? []) {
      if (frame._tag === "Accept") peer.epochs.handleAccept(stage.now, frame.epoch, frame.echo, frame.publicKey)
    }
  }
}
