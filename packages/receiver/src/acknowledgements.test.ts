import { assert, describe, it } from "@effect/vitest"
import { acknowledgementReach, AcknowledgedReader, decodeFrame, varintLength } from "@pure-link/wire"
import * as Arbitrary from "effect/Arbitrary"
import * as Schema from "effect/Schema"
import { Acknowledgements } from "./acknowledgements.ts"
import { NumberBits } from "./numberBits.ts"

/** The slow twin: sets of numbers; what an answer must be true to. */
class Twin {
  readonly acked = new Set<number>()
  readonly seen = new Set<number>()
  readonly reported = new Set<number>()

  record(number: number, kept: boolean): void {
    ;(kept ? this.acked : this.seen).add(number)
  }

  /** Reads an answer: every number in it must be in that list; returns how many bytes it took. */
  read(bytes: Uint8Array, end: number): void {
    const reader = new AcknowledgedReader()
    for (let at = 0; at < end;) {
      reader.read(bytes, at)
      while (reader.next()) {
        for (let number = reader.low; number <= reader.high; number++) {
          assert.isTrue((reader.seen ? this.seen : this.acked).has(number), `${number} is in the wrong list`)
          this.reported.add(number)
        }
      }
      const decoded = decodeFrame(bytes, at, end)
      assert.isDefined(decoded)
      at = decoded!.next
    }
  }

  get all(): number {
    return this.acked.size + this.seen.size
  }
}

const answerAll = (acknowledgements: Acknowledgements, twin: Twin, room: number): number => {
  const out = new Uint8Array(1_452)
  let answers = 0
  do {
    twin.read(out, acknowledgements.write(0, out, 0, room))
    answers += 1
    assert.isBelow(answers, 20, "answers do not come to an end")
  } while (acknowledgements.hasUnreported)
  return answers
}

const steps = Arbitrary.schema(
  Schema.Array(
    Schema.Struct({
      gap: Schema.Literals([1, 1, 1, 1, 2, 3, 40, 700, 20_000]),
      count: Schema.Literals([1, 2, 31, 32, 33, 300]),
      stride: Schema.Literals([1, 1, 2, 3, 7]),
      kept: Schema.Literals(["all", "none", "alternating"]),
      answers: Schema.Boolean
    })
  )
)

describe("acknowledgements", () => {
  it.prop(
    "report every number, in its list, whatever was opened in whatever order",
    [steps],
    ([script]) => {
      const acknowledgements = new Acknowledgements()
      const twin = new Twin()
      let number = -1
      for (const { gap, count, stride, kept, answers } of script) {
        number += gap
        for (let i = 0; i < count; i++, number += stride) {
          if (!acknowledgements.canRecord(number)) answerAll(acknowledgements, twin, 1_080)
          const isKept = kept === "all" || (kept === "alternating" && i % 2 === 0)
          acknowledgements.record(0, number, isKept)
          twin.record(number, isKept)
        }
        if (answers) {
          answerAll(acknowledgements, twin, 1_080)
          assert.strictEqual(twin.reported.size, twin.all)
        }
      }
      if (twin.all > 0) answerAll(acknowledgements, twin, 64)
      assert.strictEqual(twin.reported.size, twin.all)
    },
    { arbitrary: { runs: 60, seed: 11 } }
  )

  it("report late numbers below the largest", () => {
    const acknowledgements = new Acknowledgements()
    const twin = new Twin()
    for (const number of [10, 3, 7, 0, 11, 9]) {
      acknowledgements.record(0, number, number % 2 === 0)
      twin.record(number, number % 2 === 0)
      answerAll(acknowledgements, twin, 1_080)
    }
    assert.deepStrictEqual(
      [...twin.reported].sort((a, b) => a - b),
      [0, 3, 7, 9, 10, 11]
    )
  })

  it("take a handful of bytes for a run without gaps, and reach back over all of it", () => {
    const acknowledgements = new Acknowledgements()
    for (let number = 0; number < 50_000; number++) {
      if (!acknowledgements.canRecord(number)) acknowledgements.write(0, new Uint8Array(100), 0, 100)
      acknowledgements.record(0, number, true)
    }
    const out = new Uint8Array(100)
    const end = acknowledgements.write(0, out, 0, 100)
    assert.isAtMost(end, 14)
    const reader = new AcknowledgedReader()
    reader.read(out, 0)
    assert.isTrue(reader.next())
    assert.strictEqual(reader.high, 49_999)
    assert.strictEqual(reader.low, 50_000 - acknowledgementReach)
  })

  it("repeat what was reported before, because answers get lost", () => {
    const acknowledgements = new Acknowledgements()
    const out = new Uint8Array(1_200)
    acknowledgements.record(0, 0, true)
    acknowledgements.write(0, out, 0, 1_000)
    acknowledgements.record(0, 1, false)
    acknowledgements.write(0, out, 0, 1_000)
    const twin = new Twin()
    twin.record(0, true)
    twin.record(1, false)
    twin.read(out, acknowledgements.write(0, out, 0, 1_000))
    assert.deepStrictEqual([...twin.reported].sort(), [0, 1])
  })

  it("need at most five datagrams for the worst pattern of a whole reach, and each fits", () => {
    const acknowledgements = new Acknowledgements()
    const twin = new Twin()
    for (let number = 0; number < acknowledgementReach; number++) {
      const kept = number % 2 === 0
      acknowledgements.record(0, number, kept)
      twin.record(number, kept)
    }
    const out = new Uint8Array(1_080)
    let answers = 0
    while (acknowledgements.hasUnreported) {
      const end = acknowledgements.write(0, out, 0, 1_080)
      assert.isAtMost(end, 1_080)
      twin.read(out, end)
      answers += 1
    }
    assert.isAtMost(answers, 5)
    assert.strictEqual(twin.reported.size, acknowledgementReach)
  })

  it("do not let an unreported number be pushed out of the reach", () => {
    const acknowledgements = new Acknowledgements()
    acknowledgements.record(0, 5, true)
    assert.isTrue(acknowledgements.canRecord(5 + acknowledgementReach - 1))
    assert.isFalse(acknowledgements.canRecord(5 + acknowledgementReach))
    acknowledgements.write(0, new Uint8Array(100), 0, 100)
    assert.isTrue(acknowledgements.canRecord(2 ** 50))
  })

  it("follow a jump to any number below 2^53", () => {
    const acknowledgements = new Acknowledgements()
    const twin = new Twin()
    for (const number of [0, 2 ** 33 + 5, 2 ** 53 - 3, 2 ** 53 - 1]) {
      if (!acknowledgements.canRecord(number)) answerAll(acknowledgements, twin, 100)
      acknowledgements.record(0, number, true)
      twin.record(number, true)
      answerAll(acknowledgements, twin, 100)
    }
    assert.strictEqual(twin.reported.size, 4)
  })

  it("say how long ago the largest number came", () => {
    const acknowledgements = new Acknowledgements()
    const out = new Uint8Array(100)
    acknowledgements.record(5_000, 1, true)
    acknowledgements.record(9_000, 0, true)
    acknowledgements.write(12_000, out, 0, 100)
    const reader = new AcknowledgedReader()
    reader.read(out, 0)
    assert.strictEqual(reader.delay, 7_000)
  })

  it("use a map where ranges are longer", () => {
    const acknowledgements = new Acknowledgements()
    for (let number = 0; number < 400; number += 2) acknowledgements.record(0, number, true)
    const out = new Uint8Array(1_080)
    const end = acknowledgements.write(0, out, 0, 1_080)
    assert.isAtMost(end, 1 + 2 + 1 + varintLength(50) + 50)
  })

  it("cost a bounded number of steps however the numbers look", () => {
    const { nextDown } = NumberBits.prototype
    let questions = 0
    NumberBits.prototype.nextDown = function (...question) {
      questions += 1
      return nextDown.apply(this, question)
    }
    try {
      for (const stride of [1, 2, 3, 5, 64]) {
        const acknowledgements = new Acknowledgements()
        for (let number = 0; number < acknowledgementReach; number += stride) {
          acknowledgements.record(0, number, number % 3 !== 0)
        }
        const out = new Uint8Array(1_080)
        while (acknowledgements.hasUnreported) acknowledgements.write(0, out, 0, 1_080)
        questions = 0
        acknowledgements.write(0, out, 0, 1_080)
        assert.isAtMost(questions, 2 * 2 * 640 + 8, `stride ${stride}`)
      }
    } finally {
      NumberBits.prototype.nextDown = nextDown
    }
  })
})
