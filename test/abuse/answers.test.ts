import { assert, describe, it } from "@effect/vitest"
import { HonestReceiver } from "../fuzz/honestReceiver.ts"
import { type AnswerAttack, answerAttacks, Besieged } from "./answerAttacks.ts"

/**
 * A hostile receiver that the sender trusts (spec §9.4, §15.3): whatever it answers, the sender throws nothing, and holds what it
 * held; afterwards an honest receiver gets every record that the hostile one did not claim to have stored.
 */

const answersOfAttack = 400
const second = 1_000_000

const siege = (attack: AnswerAttack): void => {
  const besieged = new Besieged()
  const { bench } = besieged
  const answers = attack.answers(besieged)
  const { violations } = bench.link.counters
  const { stored } = bench.link
  for (let turn = 0; turn < answersOfAttack / 8; turn++) {
    for (let i = 0; i < 8; i++) besieged.hit([answers.next().value as Uint8Array])
    besieged.advance(2_000)
  }
  if (attack.isViolation === true) {
    assert.strictEqual(bench.link.counters.violations - violations, answersOfAttack)
    assert.strictEqual(bench.link.stored, stored)
  }
  assert.strictEqual(bench.link.state === "forked", attack.forks === true)
  if (attack.forks === true) return
  bench.peer.accepts = true
  new HonestReceiver(bench).serve(bench.now + 200 * second)
  assert.strictEqual(bench.link.stored, bench.last)
}

describe("a hostile receiver with valid keys", () => {
  for (const attack of answerAttacks) it(attack.name, () => siege(attack))
})
