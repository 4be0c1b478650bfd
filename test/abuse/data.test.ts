import { reserveBytes } from "../../packages/receiver/src/memory.ts"
import { assert, describe, it } from "@effect/vitest"
import { type DataAttack, dataAttacks, Hostile } from "./dataAttacks.ts"
import { recordsOf, second, Stage } from "./stage.ts"

/**
 * A hostile peer with valid keys at a receiver that serves honest ones beside it (spec §15): whatever it writes, memory stays
 * inside its bound, nothing is thrown, and the others get their records stored, each exactly once.
 */

const streamBytes = 1_048_576
const totalBytes = 4 * 1_048_576
const packetsOfAttack = 400

const siege = (attack: DataAttack): Stage => {
  const stage = new Stage({ streamBytes, totalBytes })
  const before = stage.join("before", recordsOf(40, 3_000))
  stage.advance(second / 10)
  const hostile = new Hostile(stage)
  const packets = attack.packets(hostile)
  const first = packets.next().value as Uint8Array
  const violations = stage.receiver.counters.violations
  const during = stage.join("during", recordsOf(60, 3_000))
  const some = function* () {
    yield first
    for (let i = 1; i < packetsOfAttack / 20; i++) yield packets.next().value as Uint8Array
  }
  for (let turn = 0; turn < 20; turn++) {
    stage.hit(some(), hostile.from)
    const { heldBytes, bufferBytes } = stage.receiver
    assert.isAtMost(heldBytes, totalBytes + reserveBytes)
    assert.isAtMost(bufferBytes, 1.25 * heldBytes + totalBytes / 2)
    stage.advance(5_000)
  }
  if (attack.isViolation === true)
    assert.isAtLeast(stage.receiver.counters.violations - violations, packetsOfAttack - 21)
  // The reserve is taken from a holder without progress after 10 s (spec §10.7).
  stage.advanceUntil(() => before.isDone && during.isDone, 60 * second)
  before.check()
  during.check()
  return stage
}

describe("a hostile peer with valid keys, at a receiver", () => {
  for (const attack of dataAttacks) it(attack.name, () => void siege(attack))
})
