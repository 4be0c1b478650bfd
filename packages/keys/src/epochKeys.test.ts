import { epochBitsOf, type Id64 } from "@pure-link/wire"
import { assert, describe, it } from "@effect/vitest"
import * as Schema from "effect/Schema"
import { type Answer, Dialogue, type Packet } from "../test/dialogue.ts"
import { seededEntropy } from "./entropy.ts"
import { formerEpochLife } from "./epochKeys.ts"
import { isAllZero } from "./publicKey.ts"
import { ReplayWindow } from "./replayWindow.ts"

/** What epochs keep and forget (spec §7.7), and that both ends agree whatever happens. */

describe("erasure", () => {
  const zeroed = (arrays: ReadonlyArray<Uint8Array>): boolean => arrays.every(isAllZero)
  const kept = (arrays: ReadonlyArray<Uint8Array>): number => arrays.filter((bytes) => !isAllZero(bytes)).length

  it("takes ephemeral private keys when their epoch is derived or their OFFER superseded (spec §7.7)", () => {
    const dialogue = new Dialogue()
    dialogue.receive(dialogue.packet({ offer: true }))
    assert.isFalse(zeroed(dialogue.senderDrew))
    assert.isTrue(zeroed(dialogue.receiverDrew))
    dialogue.hear(dialogue.answer())
    assert.isTrue(zeroed(dialogue.senderDrew))
    dialogue.sender.offer(1)
    dialogue.sender.offer(0)
    assert.strictEqual(kept(dialogue.senderDrew), 1)
  })

  it("leaves of all derived bytes only the secrets that still open something", () => {
    const dialogue = new Dialogue()
    assert.strictEqual(kept(dialogue.derived), 0, "packet key material is not kept")
    dialogue.receive(dialogue.packet({ offer: true }))
    assert.strictEqual(kept(dialogue.derived), 1, "the candidate at the receiver")
    dialogue.hear(dialogue.answer())
    dialogue.receive(dialogue.packet())
    assert.strictEqual(kept(dialogue.derived), 2, "epoch 1 at both ends")
    dialogue.advance()
    assert.strictEqual(kept(dialogue.derived), 4, "and the former")
    dialogue.advance()
    assert.strictEqual(kept(dialogue.derived), 4, "but not the one before")
    dialogue.receiver.expire(dialogue.receiver.expiresAt)
    dialogue.sender.expire(dialogue.now + formerEpochLife)
    assert.strictEqual(kept(dialogue.derived), 2, "after 10 s the current one only")
    assert.isFalse(isAllZero(dialogue.secret0), "E0 is the pair's")
  })

  it("takes packet keys with their epoch, and the answer keys of a reply run with that", () => {
    const dialogue = new Dialogue()
    const { sender, receiver, unreleased } = dialogue
    for (let epoch = 1; epoch <= 5; epoch++) {
      dialogue.advance()
      assert.strictEqual(dialogue.openAnswer(dialogue.answer()), epoch)
    }
    dialogue.now = sender.expiresAt
    sender.expire(dialogue.now)
    receiver.expire(dialogue.now)
    // Each end: data keys of epochs 0 and 5. The sender: answers of epochs 0 and 5; the receiver: the last answer's.
    assert.strictEqual(unreleased.size, 7)

    dialogue.replyRun += 1n
    const answer = dialogue.answer()
    assert.strictEqual(unreleased.size, 7, "a fresh reply run takes the place of the last at the receiver")
    dialogue.openAnswer(answer)
    assert.strictEqual(unreleased.size, 8)
    for (let forged = 1n; forged <= 9n; forged++) {
      assert.isUndefined(dialogue.openAnswer({ ...answer, replyRun: forged }))
      sender.forgetReplyRun(forged)
    }
    assert.strictEqual(unreleased.size, 8, "what a stranger made up is over with it")

    const late = dialogue.packet()
    dialogue.advance()
    receiver.handleOpened(dialogue.now, 1_000, late.epoch)
    dialogue.answer()
    sender.close()
    receiver.close()
    assert.strictEqual(unreleased.size, 0)
  })

  it("takes the secret of a candidate that was replaced", () => {
    const dialogue = new Dialogue()
    dialogue.advance()
    dialogue.receive(dialogue.packet({ offer: true }))
    const before = kept(dialogue.derived)
    dialogue.receive(dialogue.packet({ carrier: 0, offer: true }))
    assert.strictEqual(kept(dialogue.derived), before)
  })

  it("never takes E0, which is the pair's, though a run ends in epoch 0", () => {
    const dialogue = new Dialogue()
    dialogue.sender.close()
    assert.isFalse(isAllZero(dialogue.secret0))
  })

  it("takes everything but E0 when the run is over", () => {
    const dialogue = new Dialogue()
    dialogue.advance()
    dialogue.advance()
    dialogue.receive(dialogue.packet({ offer: true }))
    dialogue.answer()
    dialogue.sender.close()
    dialogue.receiver.close()
    assert.strictEqual(dialogue.unreleased.size, 0)
    assert.strictEqual(kept(dialogue.derived), 0)
    assert.strictEqual(kept(dialogue.senderDrew), 0)
    assert.isFalse(isAllZero(dialogue.secret0))
  })
})

describe("key lists", () => {
  it("are cached in steady state", () => {
    const { now, receiver, replyRun, sender } = new Dialogue()
    assert.strictEqual(receiver.openingKeys(now, 0), receiver.openingKeys(now, 0))
    assert.strictEqual(receiver.answerKey(replyRun), receiver.answerKey(replyRun))
    assert.strictEqual(sender.answerKeys(now, 0, replyRun), sender.answerKeys(now, 0, replyRun))
  })

  it("serve several reply runs, and forged ones push nothing out for good", () => {
    const dialogue = new Dialogue()
    dialogue.advance()
    const answer = dialogue.answer()
    assert.strictEqual(dialogue.openAnswer(answer), 1)
    for (let forged = 1n; forged <= 100n; forged++) {
      assert.isUndefined(dialogue.openAnswer({ ...answer, replyRun: forged }))
      if (forged % 10n === 0n) assert.strictEqual(dialogue.openAnswer(answer), 1)
    }
    const keyOf = (replyRun: Id64) => dialogue.sender.answerKeys(dialogue.now, epochBitsOf(1), replyRun)[0]!
    const forgedKey = keyOf(1n)
    for (let forged = 2n; forged <= 9n; forged++) keyOf(forged)
    assert.throws(() => dialogue.sender.epochOfAnswerKey(forgedKey), "not an answer key of this run")
    const key = keyOf(dialogue.replyRun)
    assert.strictEqual(dialogue.sender.epochOfAnswerKey(key), 1)
    dialogue.sender.forgetReplyRun(dialogue.replyRun)
    assert.throws(() => dialogue.sender.epochOfAnswerKey(key))
    assert.strictEqual(dialogue.openAnswer(answer), 1)
  })

  it("change the answer key with the reply run", () => {
    const { receiver } = new Dialogue()
    assert.notStrictEqual(receiver.answerKey(1n), receiver.answerKey(2n))
  })
})

describe("both ends", () => {
  it.prop(
    "agree whatever is lost, late, repeated, and whenever the sender offers",
    [Schema.Natural],
    ([seed]) => {
      const dialogue = new Dialogue(seed)
      const window = new ReplayWindow(1_024)
      const answersSeen = new ReplayWindow(1_024)
      const entropy = seededEntropy(seed + 9)
      const draw = (below: number): number => {
        const bytes = new Uint8Array(1)
        entropy.fill(bytes)
        return bytes[0]! % below
      }
      const packets: Array<Packet> = []
      const answers: Array<Answer> = []
      let recovering = false
      const receive = (packet: Packet): void => {
        if (!window.accepts(packet.number)) return
        const epoch = dialogue.receive(packet)
        if (epoch === undefined) return
        window.mark(packet.number)
        assert.strictEqual(epoch, packet.epoch)
      }
      const hear = (answer: Answer): void => {
        if (!answersSeen.accepts(answer.number)) return
        const epoch = dialogue.openAnswer(answer)
        if (epoch === undefined) return
        answersSeen.mark(answer.number)
        assert.strictEqual(epoch, answer.epoch)
        const before = dialogue.sender.epoch
        if (dialogue.hear(answer) || epoch === before) recovering = false
        assert.isAtLeast(dialogue.sender.epoch, before)
      }
      for (let step = 0; step < 150; step++) {
        dialogue.now += draw(100) * 10_000
        const carrier = recovering ? 0 : dialogue.sender.epoch
        const wantsOffer = dialogue.sender.epoch === 0 || recovering || dialogue.sender.hasOffer || draw(10) === 0
        switch (draw(8)) {
          case 0:
          case 1:
          case 2:
            packets.push(dialogue.packet({ carrier, offer: wantsOffer }))
            break
          case 3:
          case 4:
            if (packets.length > 0) receive(packets[Math.max(0, packets.length - 1 - draw(6))]!)
            break
          case 5:
            answers.push(dialogue.answer())
            break
          case 6:
            if (answers.length > 0) hear(answers[Math.max(0, answers.length - 1 - draw(4))]!)
            break
          default:
            if (draw(4) === 0) recovering = dialogue.sender.epoch > 0
        }
      }
      receive(dialogue.packet({ carrier: 0, offer: true }))
      hear(dialogue.answer())
      receive(dialogue.packet())
      assert.isAtLeast(dialogue.sender.epoch, 1)
      assert.strictEqual(dialogue.receiver.answerEpoch, dialogue.sender.epoch)
      assert.strictEqual(dialogue.openAnswer(dialogue.answer()), dialogue.sender.epoch)
    },
    { arbitrary: { runs: 60, seed: 5 } }
  )
})
