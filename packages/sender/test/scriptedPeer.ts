import {
  type CryptoSuite,
  type EpochLimits,
  epochLimits,
  keyIdOf,
  type KeyPair,
  keyPair,
  lostKey,
  nodeSuite,
  type Pair,
  ReceiverEpochs,
  seededEntropy,
  staticSecret
} from "@pure-link/keys"
import { FixedSize, Policies } from "@pure-link/recovery"
import {
  decodeFrame,
  encodeFrame,
  type Epoch,
  epochBitsOf,
  expandPacketNumber,
  type Frame,
  frameLength,
  type Id64,
  Kind,
  type Life,
  lostLength,
  type Micros,
  PacketEcho,
  PacketHeader,
  type PacketNumber,
  type RecordNumber,
  runPrefixOf,
  tagLength,
  validateBody,
  writeAnswerHeader,
  writeLostHeader
} from "@pure-link/wire"
import { ok as assert } from "node:assert/strict"
import { type SenderEvent, SenderLink, type SenderOptions } from "../src/index.ts"

/**
 * A peer that does what a test tells it: opens data packets with real keys and seals whatever answers the test makes
 * up. It knows frames, not the receiver's rules.
 */

export interface OpenedPacket {
  readonly number: PacketNumber
  readonly epoch: Epoch
  readonly long: boolean
  readonly length: number
  readonly run: Id64
  readonly frames: ReadonlyArray<Frame>
}

export type FrameOf<Tag extends Frame["_tag"]> = Extract<Frame, { readonly _tag: Tag }>

/** The first frame of a kind in a packet. */
export const frameOf = <Tag extends Frame["_tag"]>(packet: OpenedPacket, tag: Tag): FrameOf<Tag> | undefined =>
  packet.frames.find((frame): frame is FrameOf<Tag> => frame._tag === tag)

export const tagsOf = (packet: OpenedPacket): ReadonlyArray<string> =>
  packet.frames.map((frame) => frame._tag).filter((tag) => tag !== "Padding")

/** One part: record number, offset, length and whether it ends its record. */
export interface Part {
  readonly number: RecordNumber
  readonly offset: number
  readonly bytes: Uint8Array
  readonly ends: boolean
}

export const partsOf = (packet: OpenedPacket, base: RecordNumber): ReadonlyArray<Part> =>
  packet.frames.flatMap((frame): ReadonlyArray<Part> => {
    if (frame._tag === "Part") {
      return [{ number: base + frame.delta, offset: frame.partOffset, bytes: frame.bytes, ends: frame.endsRecord }]
    }
    if (frame._tag !== "Records") return []
    return frame.parts.map((bytes, i) => ({
      number: base + frame.firstDelta + i,
      offset: i === 0 ? frame.partOffset : 0,
      bytes,
      ends: i < frame.parts.length - 1 || frame.endsRecord
    }))
  })

/** The numbers of the records that a packet carries parts of. */
export const recordsOf = (packet: OpenedPacket, base: RecordNumber = 1): ReadonlyArray<RecordNumber> =>
  partsOf(packet, base).map((part) => part.number)

export const recordBytesOf = (packet: OpenedPacket): number =>
  partsOf(packet, 1).reduce((sum, part) => sum + part.bytes.length, 0)

export const ownLife: Life = { life: 0x11n, first: 1 }
export const unlimited = { creditRecords: 65_536, creditBytes: 2 ** 32 - 1 }

/** ACK or SEEN of single numbers. */
export const list = (tag: "Ack" | "Seen", ...numbers: ReadonlyArray<PacketNumber>): Frame => {
  const ranges: Array<{ low: number; high: number }> = []
  for (const number of [...numbers].sort((a, b) => b - a)) {
    const last = ranges.at(-1)
    if (last !== undefined && last.low - 1 === number) last.low = number
    else ranges.push({ low: number, high: number })
  }
  const [first, ...others] = ranges
  return { _tag: tag, delay: 0, ranges: [first!, ...others] }
}

/** STORED, with credit for everything unless told otherwise. */
export const stored = (
  n: RecordNumber,
  credit: { readonly creditRecords?: number; readonly creditBytes?: number } = {},
  life = ownLife.life
): Frame => ({
  _tag: "Stored",
  n,
  life: n === 0 ? 0n : life,
  ...unlimited,
  ...credit
})

export class ScriptedPeer {
  readonly identity: KeyPair
  readonly pair: Pair
  readonly packets: Array<OpenedPacket> = []
  epochs: ReceiverEpochs | undefined
  replyRun: Id64 = 0xa1n
  run: Id64 = 0n
  /** Whether OFFERs are answered. */
  accepts = true
  limits: EpochLimits = epochLimits()
  /** Data packets of the present run that no secret opened. */
  unopened = 0

  readonly #secret: Uint8Array
  readonly #suite: CryptoSuite = nodeSuite
  readonly #entropy = seededEntropy(77)
  readonly #keyId: number
  readonly #header = new PacketHeader()
  #largest = -1
  #lostRuns: Id64 = 0xf000n
  #answers = 0

  constructor(senderPublicKey: Uint8Array) {
    this.identity = keyPair(this.#suite, this.#entropy)
    this.pair = { sender: senderPublicKey, receiver: this.identity.publicKey }
    this.#secret = staticSecret(this.#suite, this.identity.privateKey, senderPublicKey, this.pair)!
    this.#keyId = keyIdOf(this.#suite, senderPublicKey)
  }

  /** Forgets every secret and starts a fresh reply run, as a receiver without a memo that was killed. */
  restart(): void {
    this.epochs = undefined
    this.#largest = -1
    this.freshReplyRun()
  }

  freshReplyRun(): void {
    this.replyRun++
    this.#answers = 0
  }

  /** Opens a data packet; `undefined` when no secret opens it. */
  open(now: Micros, datagram: Uint8Array): OpenedPacket | undefined {
    const bytes = datagram.slice()
    const header = this.#header
    assert(header.read(bytes, 0, bytes.length) && header.keyId === this.#keyId)
    const long = header.kind === Kind.longData
    if (long && header.epochBits === 0 && (this.epochs === undefined || header.run !== this.run)) this.#meet(header.run)
    if (this.epochs === undefined || header.runPrefix !== runPrefixOf(this.run)) return undefined
    const number = long ? header.number : expandPacketNumber(header.number, this.#largest)
    for (const key of this.epochs.openingKeys(now, header.epochBits)) {
      if (!key.open(bytes, 0, header.length, bytes.length, number)) continue
      return this.#record(now, bytes, header.length, number, this.epochs.epochOf(key), long)
    }
    this.unopened++
    return undefined
  }

  /**
   * LOST for a data packet; the test may change what is sealed, by the echo, or the header's flags and run prefix after
   * that.
   */
  lost(datagram: Uint8Array, change: (echo: PacketEcho) => void = () => {}): Uint8Array {
    const header = new PacketHeader()
    assert(header.read(datagram, 0, datagram.length))
    const echo = new PacketEcho()
    echo.take(datagram, 0, datagram.length, header.number)
    change(echo)
    const out = new Uint8Array(lostLength)
    const replyRun = ++this.#lostRuns
    const bodyStart = writeLostHeader(out, 0, this.#keyId, header.runPrefix, replyRun)
    const end = echo.write(out, bodyStart)
    lostKey(this.#suite, this.#secret, this.pair, replyRun).seal(out, 0, bodyStart, end, 0)
    return out
  }

  /** Seals an answer with these frames; ACCEPT goes along while one is due. */
  answer(
    frames: ReadonlyArray<Frame>,
    how: { readonly replyRun?: Id64; readonly number?: number; readonly body?: Uint8Array } = {}
  ): Uint8Array {
    const epochs = this.epochs!
    const accept = this.accepts ? epochs.accept : undefined
    const all: ReadonlyArray<Frame> = accept === undefined ? frames : [...frames, { _tag: "Accept", ...accept }]
    const replyRun = how.replyRun ?? this.replyRun
    const number = how.number ?? this.#answers++
    const out = new Uint8Array(1500)
    const bits = epochBitsOf(epochs.answerEpoch)
    const bodyStart = writeAnswerHeader(out, 0, bits, this.#keyId, runPrefixOf(this.run), replyRun, number)
    let at = bodyStart
    if (how.body !== undefined) {
      out.set(how.body, at)
      at += how.body.length
    } else {
      for (const frame of all) {
        assert(at + frameLength(frame) + tagLength <= out.length)
        at = encodeFrame(frame, out, at)
      }
    }
    epochs.answerKey(replyRun).seal(out, 0, bodyStart, at, number)
    return out.slice(0, at + tagLength)
  }

  #meet(run: Id64): void {
    this.run = run
    this.#largest = -1
    this.#answers = 0
    this.epochs = new ReceiverEpochs({
      suite: this.#suite,
      entropy: this.#entropy,
      pair: this.pair,
      run,
      staticSecret: this.#secret,
      limits: this.limits
    })
  }

  #record(
    now: Micros,
    bytes: Uint8Array,
    start: number,
    number: PacketNumber,
    epoch: Epoch,
    long: boolean
  ): OpenedPacket {
    const end = bytes.length - tagLength
    assert(validateBody(bytes, start, end, "data"), "the sender made a malformed packet")
    const frames: Array<Frame> = []
    for (let at = start; at < end;) {
      const { frame, next } = decodeFrame(bytes, at, end)!
      frames.push(frame)
      at = next
    }
    this.#largest = Math.max(this.#largest, number)
    this.epochs!.handleOpened(now, number, epoch)
    for (const frame of frames) {
      if (frame._tag !== "Offer" || !this.accepts) continue
      this.epochs!.handleOffer(now, number, epoch, frame.epoch, frame.publicKey)
    }
    const packet = { number, epoch, long, length: bytes.length, run: this.run, frames }
    this.packets.push(packet)
    return packet
  }
}

/** Records of given sizes with repeatable bytes. */
export const makeRecords = (sizes: ReadonlyArray<number>): Array<Uint8Array> =>
  sizes.map((size, i) => {
    const record = new Uint8Array(size)
    seededEntropy(i + 1).fill(record)
    return record
  })

export interface BenchOptions extends Partial<Omit<SenderOptions, "outbox">> {
  readonly records?: ReadonlyArray<Uint8Array>
  readonly lives?: ReadonlyArray<Life>
  /** The number of the first record held; those before were stored and removed. */
  readonly lowestHeld?: RecordNumber
  /** Both ends keep them. */
  readonly epochLimits?: Partial<EpochLimits>
}

/** A sender link with an outbox in memory, a virtual clock and a scripted peer. */
export class Bench {
  now: Micros = 1_000_000
  readonly link: SenderLink
  readonly peer: ScriptedPeer
  readonly records: Array<Uint8Array>
  lives: ReadonlyArray<Life>
  readonly events: Array<SenderEvent> = []
  /** Every datagram sent, as sealed. */
  readonly datagrams: Array<Uint8Array> = []
  readonly #lowestHeld: RecordNumber

  constructor(options: BenchOptions = {}) {
    const { records = [], lives = [ownLife], lowestHeld = 1, ...rest } = options
    const entropy = seededEntropy(5)
    const identity = keyPair(nodeSuite, entropy)
    this.#lowestHeld = lowestHeld
    this.records = [...records]
    this.lives = lives
    this.peer = new ScriptedPeer(identity.publicKey)
    this.peer.limits = epochLimits(options.epochLimits)
    this.link = new SenderLink({
      suite: nodeSuite,
      entropy,
      identity,
      peerPublicKey: this.peer.identity.publicKey,
      stream: { source: "till-4", input: "orders", shape: 9n },
      outbox: { generation: 3n, lowestHeld, last: this.last, lives },
      // One datagram size, unless a test is about the path's MTU.
      policies: { ...Policies.defaults, pathMtu: { make: ({ datagramSize }) => new FixedSize(datagramSize) } },
      ...rest
    })
    this.feed()
  }

  get last(): RecordNumber {
    return this.#lowestHeld + this.records.length - 1
  }

  append(records: ReadonlyArray<Uint8Array>, lives: ReadonlyArray<Life> = this.lives): void {
    this.records.push(...records)
    this.lives = lives
    this.link.handleAppended(this.now, this.last, lives)
    this.feed()
  }

  /** Reads what the link wants, as a driver does. */
  feed(): void {
    for (let wanted; (wanted = this.link.wanted()) !== undefined;) {
      const sizes: Array<number> = []
      let bytes = 0
      for (let number = wanted.from; number <= this.last && sizes.length < wanted.records; number++) {
        const { length } = this.records[number - this.#lowestHeld]!
        if (sizes.length > 0 && bytes + length > wanted.bytes) break
        sizes.push(length)
        bytes += length
      }
      const from = wanted.from - this.#lowestHeld
      const batch = new Uint8Array(bytes)
      let at = 0
      for (const record of this.records.slice(from, from + sizes.length)) {
        batch.set(record, at)
        at += record.length
      }
      this.link.supply(this.now, { first: wanted.from, bytes: batch, sizes: Uint32Array.from(sizes) })
    }
  }

  /** Sends all that may go now and returns what the peer opened. */
  transmit(): Array<OpenedPacket> {
    return this.send().flatMap((datagram) => this.peer.open(this.now, datagram) ?? [])
  }

  /** Sends all that may go now and returns the datagrams; the peer does not see them. */
  send(): Array<Uint8Array> {
    const sent: Array<Uint8Array> = []
    const out = new Uint8Array(1500)
    for (let length; (length = this.link.pollTransmit(this.now, out, 0)) > 0;) {
      sent.push(out.slice(0, length))
      assert(sent.length < 20_000, "the sender spins")
    }
    this.datagrams.push(...sent)
    return sent
  }

  /** Hands an answer to the link. */
  hear(datagram: Uint8Array): boolean {
    const heard = this.link.handleDatagram(this.now, datagram, 0, datagram.length)
    this.#collect()
    this.feed()
    return heard
  }

  answer(...frames: ReadonlyArray<Frame>): boolean {
    return this.hear(this.peer.answer(frames))
  }

  /** Lets time pass up to `until`, doing what is due at each deadline; returns what was sent, with the times. */
  runUntil(until: Micros): Array<{ readonly at: Micros; readonly datagram: Uint8Array }> {
    const sent: Array<{ at: Micros; datagram: Uint8Array }> = []
    for (let turns = 0; ; turns++) {
      assert(turns < 100_000, "deadlines do not move")
      this.link.handleTimeout(this.now)
      this.#collect()
      for (const datagram of this.send()) sent.push({ at: this.now, datagram })
      const next = this.link.deadline()
      if (next > until) break
      this.now = Math.max(next, this.now)
    }
    this.now = until
    return sent
  }

  /** Lets time pass until something is sent, and returns what the peer opened of it. */
  next(): Array<OpenedPacket> {
    for (;;) {
      const at = this.link.deadline()
      assert(at < Infinity, "nothing will ever be sent")
      const sent = this.runUntil(at)
      if (sent.length > 0) return sent.flatMap(({ datagram }) => this.peer.open(this.now, datagram) ?? [])
    }
  }

  /** Lets time pass and returns what the peer opened of what was sent meanwhile. */
  pass(time: Micros): Array<OpenedPacket> {
    return this.runUntil(this.now + time).flatMap(({ datagram }) => this.peer.open(this.now, datagram) ?? [])
  }

  /** A round trip of 20 ms: the first packets, ACCEPT, everything held; epoch 1 from then on, with STREAM answered. */
  start(...frames: ReadonlyArray<Frame>): Array<OpenedPacket> {
    const packets = this.transmit()
    this.now += 20_000
    this.answer(list("Ack", ...packets.map((packet) => packet.number)), ...(frames.length > 0 ? frames : [stored(0)]))
    return packets
  }

  eventTags(): ReadonlyArray<string> {
    return this.events.map((event) => event._tag)
  }

  #collect(): void {
    for (let event; (event = this.link.pollEvent()) !== undefined;) this.events.push(event)
  }
}
