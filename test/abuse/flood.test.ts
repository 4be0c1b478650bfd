import { assert, describe, it } from "@effect/vitest"
import { keyIdOf, keyPair, nodeSuite } from "@pure-link/keys"
import { largestDatagram, smallestEpochPacket, writeLongHeader } from "@pure-link/wire"
import { Chance } from "../world/chance.ts"
import { recordsOf, second, Stage } from "./stage.ts"

/**
 * A flood of forged first packets of runs (spec §12.2, §12.5, §15.2): half claim epoch 1, half epoch 0; some carry key ids of allowed
 * peers, that of the honest sender among them, some those of nobody. 10,000 come within a fifth of a second.
 */

const forged = 10_000
const duration = second / 5
/** Packets of unknown runs whose authenticity is looked at, and starts that are computed for (spec §12.5). */
const triedPerSecond = 8_192
const startsPerSecond = 256
/** Forged packets that arrive together. */
const atOnce = 10

interface Flood {
  /** Bytes that came, and bytes that the receiver answered to them. */
  readonly received: number
  readonly sent: number
  /** Packets that were tried: a derivation each, those of LOST apart, which has rates of its own. */
  readonly tried: number
  /** X25519 computations. */
  readonly agreements: number
  readonly lost: number
}

/** Each peer may draw one LOST at once, then ten a second (spec §12.2). */
const lostPerSecond = 10

class FloodedStage extends Stage {
  readonly keyIds: Array<number> = []
  received = 0
  private readonly chance = new Chance(9)
  private left = 0

  constructor(peers: number) {
    super()
    for (let i = 0; i < peers; i++) {
      const { publicKey } = keyPair(nodeSuite, this.entropy)
      this.receiver.allow({ publicKey, sources: "any" })
      this.keyIds.push(keyIdOf(nodeSuite, publicKey))
    }
  }

  /** The flood begins now. */
  flood(packets: number): void {
    this.left = packets
    this.wave()
  }

  /** Packets of unknown runs that the receiver tried to open up to now. */
  get tried(): number {
    const { keyDerivations, lostSent } = this.receiver.counters
    return keyDerivations - lostSent
  }

  get agreements(): number {
    return this.receiver.counters.keyAgreements
  }

  private wave(): void {
    this.hit(
      Array.from({ length: Math.min(atOnce, this.left) }, () => this.forge()),
      { host: "233.252.0.1", port: this.left }
    )
    this.left -= atOnce
    if (this.left > 0) this.timeline.at(this.now + (duration * atOnce) / forged, () => this.wave())
  }

  private forge(): Uint8Array {
    const { chance } = this
    const packet = new Uint8Array(chance.between(smallestEpochPacket, largestDatagram))
    chance.fill(packet)
    const keyId = chance.happens(0.5) ? chance.pick(this.keyIds) : chance.bits()
    const run = (BigInt(chance.bits()) << 32n) | BigInt(chance.bits())
    writeLongHeader(packet, 0, chance.happens(0.5) ? 1 : 0, keyId, run, chance.between(0, 9))
    this.received += packet.length
    return packet
  }
}

const records = recordsOf(1_500, 2_000)

/** How long a live sender takes for its records, with or without the flood beside it; and what the flood drew. */
const transfer = (peers: number, packets: number): Flood & { readonly took: number } => {
  const stage = new FloodedStage(peers)
  const output = stage.join("honest", records)
  stage.keyIds.push(output.link.keyId)
  stage.advanceUntil(() => output.link.status.epoch > 0, second)
  const began = stage.now
  const { agreements, tried } = stage
  if (packets > 0) stage.flood(packets)
  assert.isTrue(stage.advanceUntil(() => output.isDone, 60 * second))
  const took = output.doneAt - began
  stage.advance(2 * duration)
  output.check()
  return {
    took,
    received: stage.received,
    sent: stage.strayBytes,
    tried: stage.tried - tried,
    agreements: stage.agreements - agreements,
    lost: stage.receiver.counters.lostSent
  }
}

describe("10,000 forged packets of new runs", () => {
  for (const peers of [1, 30]) {
    it(`draw next to nothing and cost next to nothing, with the key ids of ${peers} peers`, () => {
      const quiet = transfer(peers, 0)
      const flooded = transfer(peers, forged)
      assert.isBelow(flooded.sent, flooded.received / 100)
      // A bucket that was full, and what came into it.
      assert.isAtMost(flooded.tried, (triedPerSecond * (second + duration)) / second)
      // For each peer its static secret, once; nothing forged begins a run.
      assert.isAtMost(flooded.agreements, peers + 1)
      assert.isAtMost(flooded.agreements, (startsPerSecond * (second + duration)) / second)
      assert.isAtMost(flooded.lost, (peers + 1) * (2 + (lostPerSecond * duration) / second))
      assert.isAtMost(flooded.took, 2 * quiet.took)
    })
  }

  it("do not keep an honest sender from starting for the first time", () => {
    const stage = new FloodedStage(30)
    stage.flood(forged)
    stage.advance(duration / 2)
    const output = stage.join("honest", recordsOf(100, 2_000))
    assert.isTrue(stage.advanceUntil(() => output.isDone, 5 * second))
    assert.isAtMost(output.doneAt - duration / 2, 2 * second)
    output.check()
  })

  it("do not keep an honest sender from starting again, although they carry its key id", () => {
    const stage = new FloodedStage(3)
    const former = stage.join("honest", recordsOf(100, 2_000))
    assert.isTrue(stage.advanceUntil(() => former.isDone, 5 * second))
    former.end()
    stage.keyIds.push(former.link.keyId)
    stage.flood(forged)
    stage.advance(duration / 2)
    const began = stage.now
    const { identity, address } = former
    const again = stage.join("honest", recordsOf(200, 2_000), { identity, address: { ...address, port: 9 } })
    assert.isTrue(stage.advanceUntil(() => again.isDone, 5 * second))
    assert.isAtMost(again.doneAt - began, second)
    again.check()
  })
})
