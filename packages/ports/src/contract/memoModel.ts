import { assert } from "@effect/vitest"
import type { Id64, MemoCandidate, MemoEpoch, MemoRun, ReceiverMemo, StreamFrame } from "@pure-link/wire"
import * as Schema from "effect/Schema"

/** Random histories of a memo, and the slow readable twin that says what each must leave behind. */

const small = (maximum: number) => Schema.Int.check(Schema.isBetween({ minimum: 0, maximum }))
const Step = Schema.Union([
  Schema.TaggedStruct("KeepPeer", { peer: small(4), secret: small(255) }),
  Schema.TaggedStruct("KeepRun", { peer: small(4), run: small(5), live: Schema.Boolean, seed: small(250) }),
  Schema.TaggedStruct("KeepRun", { peer: small(4), run: small(5), live: Schema.Boolean, seed: small(250) }),
  Schema.TaggedStruct("KeepRun", { peer: small(1), run: small(5), live: Schema.Boolean, seed: small(250) }),
  Schema.TaggedStruct("ForgetRun", { peer: small(4), run: small(5) }),
  Schema.TaggedStruct("ForgetPeer", { peer: small(4) })
])
/** Openings of a memo, with what is done in each. */
export const MemoSteps = Schema.Array(Schema.Array(Step).check(Schema.isMinLength(20), Schema.isMaxLength(60))).check(
  Schema.isMinLength(1),
  Schema.isMaxLength(3)
)

export const peerKey = (peer: number): Uint8Array => new Uint8Array(32).fill(peer + 1, 0, 31)
export const secretOf = (seed: number): Uint8Array => Uint8Array.from({ length: 32 }, (_, i) => seed * 3 + i)
const epochOf = (seed: number): MemoEpoch => ({ epoch: seed * 16_777_216 + 5, secret: secretOf(seed) })
const candidateOf = (seed: number): MemoCandidate => ({
  ...epochOf(seed + 1),
  offerKey: secretOf(seed + 2),
  acceptKey: secretOf(seed + 3)
})
export const streamOf = (seed: number, lives = seed % 3): typeof StreamFrame.Type => ({
  _tag: "Stream",
  lowestHeld: seed + 1,
  base: Number.MAX_SAFE_INTEGER - seed,
  generation: 0xffff_ffff_ffff_ff00n + BigInt(seed % 250),
  shape: BigInt(seed),
  source: "é".repeat(1 + (seed % 32)),
  input: "i".repeat(1 + (seed % 64)),
  lives: Array.from({ length: lives }, (_, i) => ({ life: BigInt(seed + i), first: 1 + i * 1_000 }))
})

/** A run that differs in everything by its seed. */
export const runOf = (run: number, isLive: boolean, seed: number): MemoRun => ({
  run: 0x8000_0000_0000_0000n + BigInt(run),
  isLive,
  bound: seed === 0 ? -1 : seed * 2 ** 40,
  lastOffer: seed - 1,
  current: seed % 5 === 0 ? undefined : epochOf(seed),
  candidate: seed % 4 === 0 ? undefined : candidateOf(seed),
  stream: seed % 7 === 0 ? undefined : streamOf(seed)
})

interface ModelRun {
  run: MemoRun
  order: number
}
interface ModelPeer {
  readonly peer: number
  secret: Uint8Array
  first: ModelRun | undefined
  sides: Array<ModelRun>
}

/** Plain lists, in the order of keeping. */
export class MemoModel {
  peers: Array<ModelPeer> = []
  evicted = 0
  #order = 0
  readonly #mostPeers: number
  readonly #mostSides: number

  constructor(mostPeers: number, mostSides: number) {
    this.#mostPeers = mostPeers
    this.#mostSides = mostSides
  }

  keepPeer(peer: number, secret: Uint8Array): boolean {
    const known = this.#of(peer)
    if (known === undefined && this.peers.length === this.#mostPeers) {
      const oldest = this.peers.find(({ first, sides }) => ![first, ...sides].some((kept) => kept?.run.isLive))
      if (oldest === undefined) return false
      this.forgetPeer(oldest.peer)
      this.evicted++
    }
    this.forgetPeer(peer)
    this.peers.push({ peer, first: known?.first, sides: known?.sides ?? [], secret })
    return true
  }

  keepRun(peer: number, run: MemoRun): boolean {
    const known = this.#of(peer)
    if (known === undefined) return false
    const kept = [known.first, ...known.sides].find((other) => other?.run.run === run.run)
    if (kept !== undefined) kept.run = run
    else if (known.first === undefined) known.first = { run, order: ++this.#order }
    else if (this.#makeRoom()) known.sides.push({ run, order: ++this.#order })
    else if (run.isLive && !known.first.run.isLive) {
      known.first = { run, order: ++this.#order }
      this.evicted++
    } else return false
    return true
  }

  forgetRun(peer: number, run: Id64): void {
    const known = this.#of(peer)
    if (known === undefined) return
    if (known.first?.run.run === run) {
      const heir = known.sides.find((side) => side.run.isLive) ?? known.sides[0]
      known.first = heir
      known.sides = known.sides.filter((side) => side !== heir)
    }
    known.sides = known.sides.filter((side) => side.run.run !== run)
  }

  forgetPeer(peer: number): void {
    this.peers = this.peers.filter((other) => other.peer !== peer)
  }

  /** Room for a side run: the oldest provisional one gives way. */
  #makeRoom(): boolean {
    const sides = this.peers.flatMap((peer) => peer.sides)
    if (sides.length < this.#mostSides) return true
    const oldest = sides.filter((side) => !side.run.isLive).toSorted((a, b) => a.order - b.order)[0]
    if (oldest === undefined) return false
    for (const peer of this.peers) peer.sides = peer.sides.filter((side) => side !== oldest)
    this.evicted++
    return true
  }

  #of(peer: number): ModelPeer | undefined {
    return this.peers.find((other) => other.peer === peer)
  }

  assertState(memo: ReceiverMemo): void {
    for (let peer = 0; peer <= 4; peer++) {
      const known = this.#of(peer)
      const expected = known && {
        staticSecret: known.secret,
        runs: [known.first, ...known.sides].flatMap((kept) => (kept === undefined ? [] : [kept.run]))
      }
      assert.deepStrictEqual(memo.recall(peerKey(peer)), expected, `peer ${peer}`)
    }
  }
}

/** Does the same to both, which must say the same. */
export const followMemoSteps = (memo: ReceiverMemo, model: MemoModel, steps: ReadonlyArray<typeof Step.Type>): void => {
  for (const step of steps) {
    const key = peerKey(step.peer)
    switch (step._tag) {
      case "KeepPeer": {
        const secret = secretOf(step.secret)
        assert.strictEqual(memo.keepPeer(key, secret), model.keepPeer(step.peer, secret))
        break
      }
      case "KeepRun": {
        const run = runOf(step.run, step.live, step.seed)
        assert.strictEqual(memo.keepRun(key, run), model.keepRun(step.peer, run))
        break
      }
      case "ForgetRun": {
        const { run } = runOf(step.run, false, 1)
        memo.forgetRun(key, run)
        model.forgetRun(step.peer, run)
        break
      }
      case "ForgetPeer":
        memo.forgetPeer(key)
        model.forgetPeer(step.peer)
    }
    model.assertState(memo)
  }
}
