import { type Epoch, epochBitsOf } from "@pure-link/wire"
import { assert, describe, it } from "@effect/vitest"
import { Dialogue, type Packet } from "../test/dialogue.ts"
import { keyPair, seededEntropy } from "./entropy.ts"
import { echoOf, formerEpochLife } from "./epochKeys.ts"
import { nodeSuite } from "./node.ts"
import type { Accept } from "./receiverEpochs.ts"
import { dataKey, epochSecret } from "./schedule.ts"

/** The epochs of both ends (spec §7), in dialogues of really sealed packets. */

const acceptOf = (dialogue: Dialogue): Accept => {
  const accept = dialogue.receiver.accept
  assert.isDefined(accept)
  return accept
}

describe("the start of a run", () => {
  it("goes from epoch 0 to 1 by OFFER, ACCEPT and the first packet under it (spec §7.1 to §7.5)", () => {
    const dialogue = new Dialogue()
    const { receiver, sender } = dialogue
    assert.strictEqual(sender.epoch, 0)
    assert.isFalse(sender.hasOffer)
    const first = dialogue.packet({ offer: true })
    assert.isTrue(sender.hasOffer)
    assert.strictEqual(first.offer?.epoch, 1)
    assert.isUndefined(receiver.accept)

    assert.strictEqual(dialogue.receive(first), 0)
    assert.isFalse(receiver.live)
    assert.strictEqual(receiver.answerEpoch, 0)
    assert.strictEqual(acceptOf(dialogue).epoch, 1)
    assert.strictEqual(acceptOf(dialogue).echo, echoOf(first.offer!.publicKey))

    assert.isTrue(dialogue.hear(dialogue.answer()))
    assert.strictEqual(sender.epoch, 1)
    assert.isFalse(sender.hasOffer)

    assert.strictEqual(dialogue.receive(dialogue.packet()), 1)
    assert.isTrue(receiver.live)
    assert.isUndefined(receiver.accept)
    assert.strictEqual(dialogue.answer().epoch, 1)
    assert.isFalse(dialogue.hear(dialogue.answer()))
  })

  it("tells when a candidate was confirmed", () => {
    const dialogue = new Dialogue()
    const { receiver } = dialogue
    const { offer } = dialogue.packet({ offer: true })
    assert.strictEqual(receiver.handleOpened(0, 0, 0), "same")
    assert.strictEqual(receiver.handleOffer(0, 0, 0, 1, offer!.publicKey), "accepted")
    assert.strictEqual(receiver.handleOpened(0, 1, 1), "confirmed")
    assert.strictEqual(receiver.handleOpened(0, 2, 1), "same")
  })

  it("has silence for epochs that it does not know (spec §7.9)", () => {
    const { receiver, sender } = new Dialogue()
    for (let bits = 1; bits < 16; bits++) {
      assert.deepStrictEqual(receiver.openingKeys(0, bits), [])
      assert.deepStrictEqual(sender.answerKeys(0, bits, 1n), [])
    }
  })

  it("does not open packets of another run or pair", () => {
    const dialogue = new Dialogue()
    assert.isUndefined(dialogue.open(new Dialogue(100).packet()))
  })
})

describe("the receiver's candidate", () => {
  it("answers the same OFFER with the same ACCEPT until it is confirmed, drawing no further key", () => {
    const dialogue = new Dialogue()
    dialogue.receive(dialogue.packet({ offer: true }))
    const accept = acceptOf(dialogue)
    for (let i = 0; i < 5; i++) {
      dialogue.receive(dialogue.packet({ offer: true }))
      assert.strictEqual(acceptOf(dialogue), accept)
    }
    assert.strictEqual(dialogue.receiverDrew.length, 1)
  })

  it("gives way to a higher OFFER, and ignores lower ones and lower packet numbers (spec §7.2)", () => {
    const dialogue = new Dialogue()
    const { receiver } = dialogue
    const keys = [1, 2, 3, 4].map((seed) => keyPair(nodeSuite, seededEntropy(seed)).publicKey)
    assert.strictEqual(receiver.handleOffer(0, 10, 0, 3, keys[0]!), "accepted")
    assert.strictEqual(receiver.handleOffer(0, 11, 0, 3, keys[0]!), "same")
    assert.strictEqual(receiver.handleOffer(0, 9, 0, 3, keys[0]!), "same")
    assert.strictEqual(receiver.handleOffer(0, 11, 0, 3, keys[1]!), "ignored", "same epoch, other key")
    assert.strictEqual(receiver.handleOffer(0, 11, 0, 2, keys[1]!), "ignored", "lower epoch")
    assert.strictEqual(receiver.handleOffer(0, 10, 0, 4, keys[1]!), "ignored", "same packet number")
    assert.strictEqual(receiver.handleOffer(0, 9, 0, 4, keys[1]!), "ignored", "lower packet number")
    assert.strictEqual(receiver.accept?.epoch, 3)
    assert.strictEqual(receiver.handleOffer(0, 12, 0, 4, keys[1]!), "accepted")
    assert.strictEqual(receiver.accept?.epoch, 4)
    receiver.handleOpened(0, 13, 4)
    assert.strictEqual(receiver.handleOffer(0, 14, 0, 4, keys[1]!), "ignored", "its OFFER again, once confirmed")
    assert.strictEqual(receiver.handleOffer(0, 12, 4, 5, keys[2]!), "ignored", "the bound outlives the candidate")
    assert.strictEqual(receiver.handleOffer(0, 15, 3, 5, keys[2]!), "ignored", "a carrier that it does not hold")
    assert.strictEqual(receiver.handleOffer(0, 15, 4, 5, keys[2]!), "accepted")
  })

  it("does not come of a refused key, which does not count (spec §6.1)", () => {
    const dialogue = new Dialogue()
    const { receiver } = dialogue
    const one = Uint8Array.from({ length: 32 }, (_, i) => (i === 0 ? 1 : 0))
    for (const key of [new Uint8Array(32), new Uint8Array(32).fill(255), one]) {
      assert.strictEqual(receiver.handleOffer(0, 10, 0, 9, key), "refused")
    }
    assert.isUndefined(receiver.accept)
    dialogue.receive(dialogue.packet({ offer: true }))
    assert.strictEqual(acceptOf(dialogue).epoch, 1)
  })

  it("leaves the current epoch opening and answering until a packet opens under it (spec §7.3)", () => {
    const dialogue = new Dialogue()
    dialogue.advance()
    dialogue.receive(dialogue.packet({ offer: true }))
    const late = dialogue.packet()
    assert.strictEqual(dialogue.answer().epoch, 1)
    assert.isTrue(dialogue.hear(dialogue.answer()))
    const next = dialogue.packet()
    assert.strictEqual(dialogue.receive(late), 1)
    assert.strictEqual(dialogue.receiver.answerEpoch, 1)
    assert.isDefined(dialogue.receiver.accept)
    assert.strictEqual(dialogue.receive(next), 2)
    assert.strictEqual(dialogue.receiver.answerEpoch, 2)
  })
})

describe("the former epoch", () => {
  it("opens late packets for 10 s, which do not change the epoch of answers (spec §7.3)", () => {
    const dialogue = new Dialogue()
    dialogue.advance()
    dialogue.receive(dialogue.packet({ offer: true }))
    const late = dialogue.packet()
    dialogue.hear(dialogue.answer())
    dialogue.receive(dialogue.packet())
    const confirmedAt = dialogue.now
    assert.strictEqual(dialogue.receiver.expiresAt, confirmedAt + formerEpochLife)
    dialogue.now = confirmedAt + formerEpochLife - 1
    assert.strictEqual(dialogue.receive(late), 1)
    assert.strictEqual(dialogue.receiver.answerEpoch, 2)
    dialogue.now = confirmedAt + formerEpochLife
    assert.isUndefined(dialogue.open(late))
    assert.strictEqual(dialogue.open(dialogue.packet()), 2)
    assert.strictEqual(dialogue.receiver.expiresAt, Infinity)
  })

  it("stops opening once the next candidate is confirmed, within the 10 s too", () => {
    const dialogue = new Dialogue()
    dialogue.advance()
    const late = dialogue.packet()
    dialogue.advance()
    assert.strictEqual(dialogue.open(late), 1)
    dialogue.receive(dialogue.packet({ offer: true }))
    dialogue.hear(dialogue.answer())
    assert.strictEqual(dialogue.open(late), 1)
    dialogue.receive(dialogue.packet())
    assert.isUndefined(dialogue.open(late))
  })

  it("opens late answers at the sender for 10 s (spec §7.4)", () => {
    const dialogue = new Dialogue()
    dialogue.advance()
    const late = dialogue.answer()
    dialogue.advance()
    const at = dialogue.sender.expiresAt
    dialogue.now = at - 1
    assert.strictEqual(dialogue.openAnswer(late), 1)
    const [key] = dialogue.sender.answerKeys(dialogue.now, epochBitsOf(1), dialogue.replyRun)
    dialogue.now = dialogue.sender.expiresAt
    assert.isUndefined(dialogue.openAnswer(late))
    assert.throws(() => dialogue.sender.epochOfAnswerKey(key!), "not an answer key of this run")
    assert.strictEqual(dialogue.openAnswer(dialogue.answer()), 2)
  })

  it("yields to the current one when an answer epoch expires", () => {
    const dialogue = new Dialogue()
    dialogue.advance()
    const astray = dialogue.packet()
    dialogue.advance()
    dialogue.receiver.handleOpened(dialogue.now, 1_000, astray.epoch)
    assert.strictEqual(dialogue.receiver.answerEpoch, 1)
    dialogue.receiver.expire(dialogue.now + formerEpochLife)
    assert.strictEqual(dialogue.receiver.answerEpoch, 2)
    assert.strictEqual(dialogue.openAnswer(dialogue.answer()), 2)
  })

  it("is told from the current one when both have the same epoch bits", () => {
    const dialogue = new Dialogue()
    dialogue.advance()
    const late = dialogue.packet()
    const lateAnswer = dialogue.answer()
    for (let epoch = 2; epoch < 16; epoch++) dialogue.sender.offer((epoch + 1) % 2)
    dialogue.advance()
    assert.strictEqual(dialogue.sender.epoch, 16)
    assert.strictEqual(epochBitsOf(16), epochBitsOf(1))
    assert.strictEqual(dialogue.receiver.openingKeys(dialogue.now, epochBitsOf(16)).length, 2)
    assert.strictEqual(dialogue.open(late), 1)
    assert.strictEqual(dialogue.open(dialogue.packet()), 16)
    assert.strictEqual(dialogue.openAnswer(lateAnswer), 1)
    assert.strictEqual(dialogue.openAnswer(dialogue.answer()), 16)
  })
})

describe("the sender's OFFER", () => {
  it("is the same for every packet of its carrier, and never of two epochs (spec §6.3)", () => {
    const { sender } = new Dialogue()
    const first = sender.offer(0)
    assert.strictEqual(sender.offer(0), first)

    const dialogue = new Dialogue()
    dialogue.advance()
    const offers = [1, 0, 1, 0].map((carrier) => dialogue.sender.offer(carrier))
    assert.deepStrictEqual(
      offers.map((offer) => offer.epoch),
      [2, 3, 4, 5]
    )
    assert.strictEqual(new Set(offers.map((offer) => Buffer.from(offer.publicKey).toString("hex"))).size, 4)
  })

  it("takes only the ACCEPT of its own epoch and key, once (spec §7.4)", () => {
    const dialogue = new Dialogue()
    const { sender } = dialogue
    dialogue.receive(dialogue.packet({ offer: true }))
    const { echo, epoch, publicKey } = acceptOf(dialogue)
    assert.isFalse(sender.handleAccept(0, epoch + 1, echo, publicKey))
    assert.isFalse(sender.handleAccept(0, epoch, (echo ^ 1) >>> 0, publicKey))
    assert.isFalse(sender.handleAccept(0, epoch, echo, new Uint8Array(32)))
    assert.isTrue(sender.hasOffer)
    assert.strictEqual(sender.epoch, 0)
    assert.isTrue(sender.handleAccept(0, epoch, echo, publicKey))
    assert.isFalse(sender.handleAccept(0, epoch, echo, publicKey))
    assert.strictEqual(sender.epoch, 1)
  })

  it("is not met by the ACCEPT of one that it superseded", () => {
    const dialogue = new Dialogue()
    dialogue.advance()
    dialogue.receive(dialogue.packet({ offer: true }))
    const stale = dialogue.answer()
    const recovery = dialogue.packet({ carrier: 0, offer: true })
    assert.isFalse(dialogue.hear(stale))
    dialogue.receive(recovery)
    assert.isTrue(dialogue.hear(dialogue.answer()))
    assert.strictEqual(dialogue.sender.epoch, 3)
  })

  it("is not made for an epoch that the sender does not seal under", () => {
    const { sender } = new Dialogue()
    assert.throws(() => sender.offer(1))
    assert.throws(() => sender.sealingKey(1))
  })
})

/** The data key of an epoch, computed by hand from what the two ends drew. */
const dataKeyByHand = (
  dialogue: Dialogue,
  carrierSecret: Uint8Array,
  privates: { readonly offer: Uint8Array; readonly accept: Uint8Array },
  epoch: Epoch
) => {
  const offerKey = nodeSuite.agreement.publicKey(privates.offer)
  const acceptKey = nodeSuite.agreement.publicKey(privates.accept)
  const { pair, run } = dialogue
  const secret = epochSecret(nodeSuite, {
    ownPrivate: privates.offer,
    peerPublic: acceptKey,
    carrierSecret,
    pair,
    run,
    epoch,
    offerKey,
    acceptKey
  })!
  return { secret, key: dataKey(nodeSuite, secret, pair, run, epoch) }
}

/** Runs one exchange and returns copies of the private keys of both ends, taken before they are erased. */
const advanceWatched = (seed: number, dialogue: Dialogue, carrier: Epoch) => {
  const draws = (offset: number, index: number): Uint8Array => {
    const entropy = seededEntropy(seed + offset)
    const bytes = new Uint8Array(32)
    for (let i = 0; i <= index; i++) entropy.fill(bytes)
    return bytes
  }
  const privates = { offer: draws(2, dialogue.senderDrew.length), accept: draws(3, dialogue.receiverDrew.length) }
  dialogue.advance(carrier)
  return privates
}

const opens = (key: ReturnType<typeof dataKey>, packet: Packet): boolean =>
  key.open(packet.sealed.slice(), 0, 1, packet.sealed.length, packet.number)

describe("the chain", () => {
  it("puts the secret of the carrier's epoch into the next one; E0 in silent recovery (spec §6.3)", () => {
    const dialogue = new Dialogue(1)
    const one = dataKeyByHand(dialogue, dialogue.secret0, advanceWatched(1, dialogue, 0), 1)
    assert.isTrue(opens(one.key, dialogue.packet()))
    const privates = advanceWatched(1, dialogue, 1)
    const two = dataKeyByHand(dialogue, one.secret, privates, 2)
    assert.isTrue(opens(two.key, dialogue.packet()))
    assert.isFalse(opens(dataKeyByHand(dialogue, dialogue.secret0, privates, 2).key, dialogue.packet()))
    const three = dataKeyByHand(dialogue, dialogue.secret0, advanceWatched(1, dialogue, 0), 3)
    assert.isTrue(opens(three.key, dialogue.packet()))
  })
})

describe("silent recovery", () => {
  it("leads through epoch 0 to a new epoch although the receiver lost the last one (spec §9.8)", () => {
    const dialogue = new Dialogue()
    dialogue.advance()
    dialogue.now += 60_000_000
    dialogue.restartReceiver()
    assert.isUndefined(dialogue.open(dialogue.packet()))
    assert.deepStrictEqual(dialogue.sender.answerKeys(dialogue.now, 0, dialogue.replyRun), [])
    assert.strictEqual(dialogue.receive(dialogue.packet({ carrier: 0, offer: true })), 0)
    const answer = dialogue.answer()
    assert.strictEqual(answer.epoch, 0)
    assert.isTrue(dialogue.hear(answer))
    assert.strictEqual(dialogue.receive(dialogue.packet()), 2)
    assert.strictEqual(dialogue.openAnswer(dialogue.answer()), 2)
    assert.strictEqual(dialogue.openAnswer(answer), 0)
    dialogue.now += formerEpochLife
    assert.isUndefined(dialogue.openAnswer(answer))
  })

  it("that ends without its ACCEPT leaves nothing that opens in epoch 0 (spec §7.4)", () => {
    const dialogue = new Dialogue()
    dialogue.advance()
    dialogue.now += 60_000_000
    dialogue.packet({ carrier: 0, offer: true })
    assert.lengthOf(dialogue.sender.answerKeys(dialogue.now, 0, dialogue.replyRun), 1)
    dialogue.sender.dropOffer()
    assert.isFalse(dialogue.sender.hasOffer)
    assert.deepStrictEqual(dialogue.sender.answerKeys(dialogue.now, 0, dialogue.replyRun), [])
  })

  it("may end under the former epoch, after which the next OFFER is a new one", () => {
    const dialogue = new Dialogue()
    dialogue.advance()
    const recovery = dialogue.packet({ carrier: 0, offer: true })
    const packet = dialogue.packet({ carrier: 1, offer: true })
    assert.strictEqual(packet.offer!.epoch, recovery.offer!.epoch + 1)
    assert.strictEqual(dialogue.receive(packet), 1)
    assert.strictEqual(dialogue.receive(recovery), 0)
    assert.strictEqual(dialogue.receiver.answerEpoch, 1)
    assert.isTrue(dialogue.hear(dialogue.answer()))
    assert.strictEqual(dialogue.receive(dialogue.packet()), packet.offer!.epoch)
  })
})
