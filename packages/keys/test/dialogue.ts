import { type Epoch, epochBitsOf, type Id64, type Micros, type PacketNumber } from "@pure-link/wire"
import { assert } from "@effect/vitest"
import type { CryptoSuite, PacketKey } from "../src/cryptoSuite.ts"
import { type Entropy, keyPair, seededEntropy } from "../src/entropy.ts"
import { nodeSuite } from "../src/node.ts"
import { type Accept, ReceiverEpochs } from "../src/receiverEpochs.ts"
import { staticSecret } from "../src/schedule.ts"
import { type EpochsOptions, type Offer, SenderEpochs } from "../src/senderEpochs.ts"

/** Both ends of one run in a test, speaking in really sealed packets, with an eye on every key they draw or derive. */

export interface Packet {
  readonly number: PacketNumber
  readonly epoch: Epoch
  readonly offer: Offer | undefined
  readonly sealed: Uint8Array
}
export interface Answer {
  readonly number: PacketNumber
  readonly epoch: Epoch
  readonly replyRun: Id64
  readonly accept: Accept | undefined
  readonly sealed: Uint8Array
}

/** Notes all key material that a suite derives and its packet keys, so that tests can look whether they are over. */
const recordingSuite = (derived: Array<Uint8Array>, unreleased: Set<PacketKey>): CryptoSuite => {
  const note = <A extends Uint8Array | undefined>(bytes: A): A => {
    if (bytes !== undefined) derived.push(bytes)
    return bytes
  }
  const { agreement, derivation } = nodeSuite
  return {
    ...nodeSuite,
    agreement: { ...agreement, shared: (privateKey, publicKey) => note(agreement.shared(privateKey, publicKey)) },
    derivation: {
      ...derivation,
      extract: (salt, ikm) => note(derivation.extract(salt, ikm)),
      expand: (prk, info, length) => note(derivation.expand(prk, info, length))
    },
    packetKey: (material) => {
      const key = nodeSuite.packetKey(material)
      const release = key.release.bind(key)
      key.release = () => {
        unreleased.delete(key)
        release()
      }
      unreleased.add(key)
      return key
    }
  }
}

const recordingEntropy = (seed: number, drawn: Array<Uint8Array>): Entropy => {
  const entropy = seededEntropy(seed)
  return {
    fill: (bytes) => {
      entropy.fill(bytes)
      drawn.push(bytes)
    }
  }
}

const bodyLength = 8

/** Both ends of one run and the packets between them. */
export class Dialogue {
  readonly derived: Array<Uint8Array> = []
  /** Packet keys of both ends that are not over. */
  readonly unreleased = new Set<PacketKey>()
  readonly senderDrew: Array<Uint8Array> = []
  readonly receiverDrew: Array<Uint8Array> = []
  readonly run: Id64 = 0x0102030405060708n
  replyRun: Id64 = 0xa1a2a3a4a5a6a7a8n
  readonly pair
  readonly secret0: Uint8Array
  readonly sender: SenderEpochs
  receiver: ReceiverEpochs
  now: Micros = 1_000_000
  private nextNumber = 0
  private readonly receiverOptions: EpochsOptions
  private nextAnswer = 0

  constructor(seed = 1) {
    const own = keyPair(nodeSuite, seededEntropy(seed))
    const peer = keyPair(nodeSuite, seededEntropy(seed + 1))
    this.pair = { sender: own.publicKey, receiver: peer.publicKey }
    this.secret0 = staticSecret(nodeSuite, own.privateKey, peer.publicKey, this.pair)!
    const suite = recordingSuite(this.derived, this.unreleased)
    const common = { suite, pair: this.pair, run: this.run }
    this.sender = new SenderEpochs({
      ...common,
      entropy: recordingEntropy(seed + 2, this.senderDrew),
      staticSecret: this.secret0
    })
    this.receiverOptions = {
      ...common,
      entropy: recordingEntropy(seed + 3, this.receiverDrew),
      staticSecret: staticSecret(nodeSuite, peer.privateKey, own.publicKey, this.pair)!
    }
    this.receiver = new ReceiverEpochs(this.receiverOptions)
  }

  /** The receiver is killed and starts again, knowing the pair but nothing of the run, in a fresh reply run. */
  restartReceiver(): void {
    this.receiver = new ReceiverEpochs(this.receiverOptions)
    this.replyRun += 1n
    this.nextAnswer = 0
  }

  /** A packet sealed under an epoch, with the OFFER of that epoch if asked for. */
  packet(options: { readonly carrier?: Epoch; readonly offer?: boolean } = {}): Packet {
    const epoch = options.carrier ?? this.sender.epoch
    const offer = options.offer ? this.sender.offer(epoch) : undefined
    const sealed = new Uint8Array(1 + bodyLength + 16).fill(0x55)
    sealed[0] = epochBitsOf(epoch)
    const number = this.nextNumber++
    this.sender.sealingKey(epoch).seal(sealed, 0, 1, 1 + bodyLength, number)
    return { number, epoch, offer, sealed }
  }

  /** The epoch under which the receiver opens a packet; `undefined` when it does not. */
  open(packet: Packet): Epoch | undefined {
    for (const key of this.receiver.openingKeys(this.now, packet.sealed[0]!)) {
      if (key.open(packet.sealed.slice(), 0, 1, packet.sealed.length, packet.number)) return this.receiver.epochOf(key)
    }
    return undefined
  }

  receive(packet: Packet): Epoch | undefined {
    const epoch = this.open(packet)
    if (epoch === undefined) return undefined
    this.receiver.handleOpened(this.now, packet.number, epoch)
    const offer = packet.offer
    if (offer) this.receiver.handleOffer(this.now, packet.number, epoch, offer.epoch, offer.publicKey)
    return epoch
  }

  answer(): Answer {
    const { accept, answerEpoch: epoch } = this.receiver
    const sealed = new Uint8Array(1 + bodyLength + 16).fill(0x66)
    sealed[0] = epochBitsOf(epoch)
    const number = this.nextAnswer++
    this.receiver.answerKey(this.replyRun).seal(sealed, 0, 1, 1 + bodyLength, number)
    return { number, epoch, replyRun: this.replyRun, accept, sealed }
  }

  /** The epoch under which the sender opens an answer; `undefined` when it does not. */
  openAnswer(answer: Answer): Epoch | undefined {
    for (const key of this.sender.answerKeys(this.now, answer.sealed[0]!, answer.replyRun)) {
      if (key.open(answer.sealed.slice(), 0, 1, answer.sealed.length, answer.number)) {
        return this.sender.epochOfAnswerKey(key)
      }
    }
    return undefined
  }

  hear(answer: Answer): boolean {
    assert.strictEqual(this.openAnswer(answer), answer.epoch)
    const accept = answer.accept
    if (accept === undefined) return false
    return this.sender.handleAccept(this.now, accept.epoch, accept.echo, accept.publicKey)
  }

  /** A whole exchange: OFFER, ACCEPT, and the packet that confirms. */
  advance(carrier = this.sender.epoch): void {
    assert.strictEqual(this.receive(this.packet({ carrier, offer: true })), carrier)
    assert.isTrue(this.hear(this.answer()))
    assert.strictEqual(this.receive(this.packet()), this.sender.epoch)
    assert.strictEqual(this.receiver.answerEpoch, this.sender.epoch)
  }
}
