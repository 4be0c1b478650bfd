/**
 * A scripted sender and a small inbox in memory, for the tests of the receiver machine: the peer seals exactly the
 * packets that a test asks for and opens the answers; it keeps no rule of a real sender.
 */
import {
  type CryptoSuite,
  type Entropy,
  id64,
  keyIdOf,
  type KeyPair,
  keyPair,
  nodeSuite,
  seededEntropy,
  SenderEpochs,
  staticSecret
} from "@pure-link/keys"
import {
  type Address,
  type CommitOutcome,
  decodeFrame,
  encodeFrame,
  type Epoch,
  epochBitsOf,
  type Frame,
  type Id64,
  Kind,
  type Life,
  lifeOf,
  type MemoPeer,
  type MemoRun,
  type Micros,
  PacketHeader,
  type ReceiverMemo,
  type RecordNumber,
  runPrefixOf,
  type StoreIntent,
  type StreamCursor,
  type StreamName,
  writeLongHeader,
  writeShortHeader
} from "@pure-link/wire"
import { ok as assert } from "node:assert/strict"
import { Receiver, type ReceiverEvent, type ReceiverOptions } from "../src/index.ts"

export const shapeOfTest: Id64 = 0x5a5an
export const lifeA: Id64 = 0xaaaan
export const lifeB: Id64 = 0xbbbbn
export const generationA: Id64 = 0xa1n
export const generationB: Id64 = 0xb1n

/** One opened answer. */
export interface Answer {
  readonly number: number
  readonly replyRun: Id64
  readonly epochBits: number
  readonly frames: ReadonlyArray<Frame>
  readonly to: Address
  readonly length: number
}

/** The frame of a tag in an answer. */
export const frameOf = <T extends Frame["_tag"]>(answer: Answer, tag: T): Extract<Frame, { _tag: T }> | undefined =>
  answer.frames.find((frame): frame is Extract<Frame, { _tag: T }> => frame._tag === tag)

/** The numbers that an answer lists, whatever the form. */
export const numbersOf = (answer: Answer, list: "Ack" | "Seen"): ReadonlyArray<number> => {
  const numbers: Array<number> = []
  for (const frame of answer.frames) {
    if (frame._tag === list) {
      for (const { low, high } of frame.ranges) for (let number = high; number >= low; number--) numbers.push(number)
    } else if (frame._tag === `${list}Map`) {
      const { largest, bits } = frame as Extract<Frame, { _tag: "AckMap" }>
      for (let i = 0; i < 8 * bits.length; i++) if (((bits[i >>> 3]! >>> (i & 7)) & 1) !== 0) numbers.push(largest - i)
    }
  }
  return numbers
}

/** The inbox of spec §8, in memory; `fails` makes commits fail. */
export class MemoryInbox {
  readonly cursorsByName = new Map<string, StreamCursor>()
  readonly retired = new Map<string, Set<Id64>>()
  readonly records: Array<{ readonly name: string; readonly number: RecordNumber; readonly bytes: Uint8Array }> = []

  cursor(name: StreamName): StreamCursor | undefined {
    return this.cursorsByName.get(nameOf(name))
  }

  isRetired(name: StreamName, generation: Id64): boolean {
    return this.retired.get(nameOf(name))?.has(generation) ?? false
  }

  retiredCount(name: StreamName): number {
    return this.retired.get(nameOf(name))?.size ?? 0
  }

  commit(intent: StoreIntent): CommitOutcome {
    const name = nameOf(intent)
    const known = this.cursorsByName.get(name)
    if (this.isRetired(intent, intent.generation)) return { _tag: "Conflict", cursor: known }
    let { n, life } = known?.generation === intent.generation ? known : { n: 0, life: 0n }
    if (intent.batch.first !== n + 1) return { _tag: "Conflict", cursor: known }
    const pending: Array<{ name: string; number: number; bytes: Uint8Array }> = []
    let start = 0
    for (const size of intent.batch.sizes) {
      const entry = lifeOf(intent.lives, n + 1)
      if (entry === undefined || (entry.first <= n && entry.life !== life)) return { _tag: "Conflict", cursor: known }
      n += 1
      life = entry.life
      pending.push({ name, number: n, bytes: intent.batch.bytes.slice(start, (start += size)) })
    }
    assert(start === intent.batch.bytes.length)
    this.records.push(...pending)
    if (known !== undefined && known.generation !== intent.generation) this.retire(name, known.generation)
    const cursor = { generation: intent.generation, n, life }
    this.cursorsByName.set(name, cursor)
    return { _tag: "Stored", cursor }
  }

  retire(name: string, generation: Id64): void {
    this.retired.set(name, (this.retired.get(name) ?? new Set()).add(generation))
  }
}

/** A memo of any capacity, in memory; `fails` makes it take nothing. */
export class MapMemo implements ReceiverMemo {
  readonly peers = new Map<string, { staticSecret: Uint8Array; runs: Map<Id64, MemoRun> }>()
  fails = false

  recall(publicKey: Uint8Array): MemoPeer | undefined {
    const peer = this.peers.get(String(publicKey))
    return peer && { staticSecret: peer.staticSecret, runs: [...peer.runs.values()] }
  }

  keepPeer(publicKey: Uint8Array, staticSecret: Uint8Array): boolean {
    if (this.fails) return false
    this.peers.set(String(publicKey), { staticSecret: staticSecret.slice(), runs: new Map() })
    return true
  }

  keepRun(publicKey: Uint8Array, run: MemoRun): boolean {
    if (this.fails) return false
    this.peers.get(String(publicKey))!.runs.set(run.run, structuredClone(run))
    return true
  }

  forgetRun(publicKey: Uint8Array, run: Id64): void {
    this.peers.get(String(publicKey))?.runs.delete(run)
  }

  forgetPeer(publicKey: Uint8Array): void {
    this.peers.delete(String(publicKey))
  }

  copy(): MapMemo {
    const copy = new MapMemo()
    for (const [key, { staticSecret, runs }] of this.peers) copy.peers.set(key, { staticSecret, runs: new Map(runs) })
    return copy
  }
}

export const nameOf = (name: StreamName): string => `${name.source}>${name.input}`

/** A receiver with its inbox, and the time. */
export class World {
  readonly suite: CryptoSuite
  readonly entropy: Entropy
  readonly identity: KeyPair
  readonly inbox = new MemoryInbox()
  receiver: Receiver
  now: Micros = 1_000_000
  private readonly out = new Uint8Array(2_000)

  constructor(options: Partial<ReceiverOptions> = {}, seed = 1) {
    this.suite = options.suite ?? nodeSuite
    this.entropy = seededEntropy(seed)
    this.identity = keyPair(this.suite, this.entropy)
    this.receiver = this.restart(options)
  }

  /** A receiver process begins, with the same key and inbox; peers must be allowed again. */
  restart(options: Partial<ReceiverOptions> = {}): Receiver {
    const { suite, entropy, identity, inbox: cursors } = this
    this.receiver = new Receiver({ suite, entropy, identity, cursors, ...options })
    this.receiver.addInput("orders", shapeOfTest)
    return this.receiver
  }

  /** Commits everything that waits, again and again until nothing does. */
  store(): void {
    for (let intent = this.receiver.pollStore(); intent !== undefined; intent = this.receiver.pollStore()) {
      this.receiver.handleStored(this.now, intent, this.inbox.commit(intent))
    }
  }

  /** Ends the batch and takes all datagrams that are due. */
  transmit(): ReadonlyArray<{ readonly bytes: Uint8Array; readonly to: Address }> {
    this.receiver.endBatch(this.now)
    const sent: Array<{ bytes: Uint8Array; to: Address }> = []
    for (;;) {
      const length = this.receiver.pollTransmit(this.now, this.out, 100)
      if (length === 0) return sent
      sent.push({ bytes: this.out.slice(100, 100 + length), to: this.receiver.target })
    }
  }

  events(): ReadonlyArray<ReceiverEvent> {
    const events: Array<ReceiverEvent> = []
    for (;;) {
      const event = this.receiver.pollEvent()
      if (event === undefined) return events
      events.push(event)
    }
  }
}

export interface PeerOptions {
  readonly source?: string
  readonly input?: string
  readonly shape?: Id64
  readonly generation?: Id64
  readonly base?: RecordNumber
  readonly lowestHeld?: RecordNumber
  readonly lives?: ReadonlyArray<Life>
  readonly identity?: KeyPair
  readonly from?: Address
  readonly run?: Id64
}

export interface PacketOptions {
  readonly epoch?: Epoch
  readonly long?: boolean
  readonly number?: number
  readonly from?: Address
}

export class ScriptedPeer {
  readonly world: World
  readonly identity: KeyPair
  readonly run: Id64
  readonly epochs: SenderEpochs
  readonly stream: Extract<Frame, { _tag: "Stream" }>
  readonly from: Address
  number = 0
  private readonly keyId: number

  constructor(world: World, options: PeerOptions = {}) {
    const { suite, entropy } = world
    this.world = world
    this.identity = options.identity ?? keyPair(suite, entropy)
    this.run = options.run ?? id64(entropy)
    this.from = options.from ?? { host: "192.0.2.1", port: 4_000 }
    this.keyId = keyIdOf(suite, this.identity.publicKey)
    const pair = { sender: this.identity.publicKey, receiver: world.identity.publicKey }
    const secret = staticSecret(suite, this.identity.privateKey, world.identity.publicKey, pair)!
    this.epochs = new SenderEpochs({ suite, entropy, pair, run: this.run, staticSecret: secret })
    const base = options.base ?? 1
    this.stream = {
      _tag: "Stream",
      source: options.source ?? "till",
      input: options.input ?? "orders",
      shape: options.shape ?? shapeOfTest,
      generation: options.generation ?? generationA,
      base,
      lowestHeld: options.lowestHeld ?? base,
      lives: options.lives ?? [{ life: lifeA, first: 1 }]
    }
  }

  /** Lets the receiver allow this peer. */
  allowed(sources: ReadonlyArray<string> | "any" = "any"): this {
    this.world.receiver.allow({ publicKey: this.identity.publicKey, sources })
    return this
  }

  /** Seals a packet of these frames; epoch and header as asked, else the current epoch and the short header. */
  seal(frames: ReadonlyArray<Frame>, options: PacketOptions = {}): Uint8Array {
    const body = scratch
    let length = 0
    for (const frame of frames) length = encodeFrame(frame, body, length)
    return this.sealBody(body.subarray(0, length), options)
  }

  /** Seals a body of any bytes. */
  sealBody(body: Uint8Array, options: PacketOptions = {}): Uint8Array {
    const epoch = options.epoch ?? this.epochs.epoch
    const number = options.number ?? this.number
    this.number = Math.max(this.number, number + 1)
    const out = new Uint8Array(body.length + 40)
    const bits = epochBitsOf(epoch)
    const bodyStart =
      options.long === true
        ? writeLongHeader(out, 0, bits, this.keyId, this.run, number)
        : writeShortHeader(out, 0, bits, this.keyId, runPrefixOf(this.run), number)
    const bodyEnd = bodyStart + body.length
    out.set(body, bodyStart)
    this.epochs.sealingKey(epoch).seal(out, 0, bodyStart, bodyEnd, number)
    return out.slice(0, bodyEnd + 16)
  }

  /** Seals and hands over one packet; true when it opened. */
  send(frames: ReadonlyArray<Frame>, options: PacketOptions = {}): boolean {
    return this.deliver(this.seal(frames, options), options.from)
  }

  deliver(packet: Uint8Array, from: Address = this.from): boolean {
    const bytes = packet.slice()
    return this.world.receiver.handleDatagram(this.world.now, bytes, 0, bytes.length, from)
  }

  /** Everything that is due, as far as it is for this run. */
  answers(): ReadonlyArray<Answer> {
    return this.world
      .transmit()
      .map(({ bytes, to }) => this.open(bytes, to))
      .filter((answer) => answer !== undefined)
  }

  /** The one answer that is due. */
  answer(): Answer {
    const answers = this.answers()
    assert(answers.length === 1, `${answers.length} answers are due`)
    return answers[0]!
  }

  open(bytes: Uint8Array, to: Address): Answer | undefined {
    const header = new PacketHeader()
    assert(header.read(bytes, 0, bytes.length) && header.kind === Kind.answer)
    if (header.keyId !== this.keyId || header.runPrefix !== runPrefixOf(this.run)) return undefined
    const { replyRun, epochBits, number } = header
    for (const key of this.epochs.answerKeys(this.world.now, epochBits, replyRun)) {
      if (!key.open(bytes, 0, header.length, bytes.length, number)) continue
      const frames: Array<Frame> = []
      for (let at = header.length; at < bytes.length - 16;) {
        const decoded = decodeFrame(bytes, at, bytes.length - 16)!
        frames.push(decoded.frame)
        at = decoded.next
      }
      return { number, replyRun, epochBits, frames, to, length: bytes.length }
    }
    return undefined
  }

  /** Starts the run in epoch 0 and follows its ACCEPT into epoch 1; returns the answer to the first packet. */
  start(frames: ReadonlyArray<Frame> = []): Answer {
    assert(this.send([this.stream, this.offer(), ...frames], { long: true }))
    const answer = this.answer()
    const accept = frameOf(answer, "Accept")!
    assert(this.epochs.handleAccept(this.world.now, accept.epoch, accept.echo, accept.publicKey))
    assert(this.send([this.stream, ping]))
    this.answers()
    // What follows is not part of a train of packets (spec §10.6).
    this.world.now += 10_000
    return answer
  }

  offer(): Extract<Frame, { _tag: "Offer" }> {
    const { epoch, publicKey } = this.epochs.offer(this.epochs.epoch)
    return { _tag: "Offer", epoch, publicKey }
  }

  /** Whole records from `first` on. */
  records(first: RecordNumber, ...parts: ReadonlyArray<Uint8Array>): Frame {
    return { _tag: "Records", firstDelta: first - this.stream.base, partOffset: 0, endsRecord: true, parts }
  }

  /** One part of a record. */
  part(number: RecordNumber, offset: number, bytes: Uint8Array, endsRecord: boolean): Frame {
    const delta = number - this.stream.base
    return offset < 2 ** 16
      ? { _tag: "Records", firstDelta: delta, partOffset: offset, endsRecord, parts: [bytes] }
      : { _tag: "Part", delta, partOffset: offset, endsRecord, bytes }
  }
}

export const ping: Frame = { _tag: "Ping" }

/** Where bodies are written before they are sealed. */
const scratch = new Uint8Array(80_000)

/** Recognisable content of a record. */
export const content = (number: RecordNumber, size: number): Uint8Array => {
  const bytes = new Uint8Array(size)
  for (let i = 0; i < size; i++) bytes[i] = (number * 31 + i * 7 + (i >>> 8)) & 0xff
  return bytes
}

/** One second, and an address that nobody started from. */
export const second = 1_000_000
export const elsewhere = { host: "198.51.100.7", port: 9 }

/** A world with one allowed peer. */
export const begun = (options: ConstructorParameters<typeof World>[0] = {}): { world: World; peer: ScriptedPeer } => {
  const world = new World(options)
  return { world, peer: new ScriptedPeer(world).allowed() }
}

/** A peer whose run is live and whose answers so far are taken. */
export const live = (options: ConstructorParameters<typeof World>[0] = {}): { world: World; peer: ScriptedPeer } => {
  const both = begun(options)
  both.peer.start()
  both.world.events()
  return both
}

export const storedContents = (world: World): ReadonlyArray<Uint8Array> =>
  world.inbox.records.map((record) => record.bytes)
