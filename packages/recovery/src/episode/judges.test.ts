import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import type { CongestionState } from "../congestion/CongestionController.ts"
import type { EpisodeJudge } from "./EpisodeJudge.ts"
import { EpisodeJudgement } from "./EpisodeJudgement.ts"

const judges = [EpisodeJudgement.layerAllOrNothing, EpisodeJudgement.layerNever].map((layer) => {
  const { make } = Effect.runSync(Effect.provide(EpisodeJudgement, layer))
  return [make().name, make] as const
})
const allOrNothing = (): EpisodeJudge => judges[0]![1]()
const never = (): EpisodeJudge => judges[1]![1]()

/** A congestion state that a test can tell from others. */
const state = (name: string): CongestionState => ({ name })

const Happening = Schema.Literals(["lost", "lost with reduction", "late", "late", "given up", "proof"])

/** One episode as a list of all that happened in it, judged only when it is over. */
class Episode {
  lost = 0
  late = 0
  givenUp = 0
  proven = false
  readonly reductions: Array<CongestionState> = []

  get isOver(): boolean {
    return this.late + this.givenUp === this.lost
  }

  get undoTo(): CongestionState | undefined {
    return this.late === this.lost && !this.proven ? this.reductions[0] : undefined
  }
}

describe("All or nothing (spec §14.3)", () => {
  it.prop(
    "undoes an episode if and only if every flight of it proved late and nothing proved congestion",
    [Schema.Array(Happening)],
    ([happenings]) => {
      const judge = allOrNothing()
      let episode: Episode | undefined
      let reductions = 0
      for (const happening of happenings) {
        if (happening === "proof") {
          judge.handleProof()
          if (episode !== undefined) episode.proven = true
        } else if (happening === "late" || happening === "given up") {
          if (episode === undefined) continue
          const undoTo = happening === "late" ? judge.handleLate() : judge.handleGivenUp()
          if (happening === "late") episode.late++
          else episode.givenUp++
          assert.strictEqual(undoTo as unknown, happening === "late" && episode.isOver ? episode.undoTo : undefined)
          if (episode.isOver) episode = undefined
        } else {
          episode ??= new Episode()
          episode.lost++
          judge.handleLost()
          if (happening === "lost with reduction") {
            const before = state(`${reductions++}`)
            // What proof was there before stands against a later reduction too, but not against another episode.
            episode.reductions.push(before)
            judge.handleReduction(before)
          }
        }
        const unsettled = episode === undefined ? 0 : episode.lost - episode.late - episode.givenUp
        assert.strictEqual(judge.unsettled, unsettled)
      }
    },
    { arbitrary: { runs: 1_500, seed: 1411, size: 40 } }
  )

  it("goes back to before the first reduction when events overlap", () => {
    const judge = allOrNothing()
    judge.handleLost()
    judge.handleReduction(state("before the first"))
    judge.handleLost()
    judge.handleReduction(state("before the second"))
    assert.isUndefined(judge.handleLate())
    assert.deepStrictEqual(judge.handleLate(), state("before the first"))
  })

  it("does not go back beyond an episode that is over", () => {
    const judge = allOrNothing()
    judge.handleLost()
    judge.handleReduction(state("before a true loss"))
    judge.handleGivenUp()
    judge.handleLost()
    judge.handleReduction(state("before a false one"))
    assert.deepStrictEqual(judge.handleLate(), state("before a false one"))
  })

  it("undoes nothing when one flight of many was lost indeed, whichever it was", () => {
    for (let guilty = 0; guilty < 10; guilty++) {
      const judge = allOrNothing()
      for (let i = 0; i < 10; i++) judge.handleLost()
      judge.handleReduction(state("before"))
      for (let i = 0; i < 10; i++) {
        if (i === guilty) judge.handleGivenUp()
        else assert.isUndefined(judge.handleLate(), `guilty ${guilty}, flight ${i}`)
      }
    }
  })

  it("has nothing to go back to when no reduction was made for the losses", () => {
    const judge = allOrNothing()
    judge.handleLost()
    judge.handleReduction(state("before"))
    judge.handleLate()
    judge.handleLost()
    assert.isUndefined(judge.handleLate())
  })
})

describe("Never", () => {
  it("undoes nothing, and knows as well what is unsettled", () => {
    const judge = never()
    judge.handleLost()
    judge.handleReduction(state("before"))
    judge.handleLost()
    assert.isUndefined(judge.handleLate())
    assert.strictEqual(judge.unsettled, 1)
    assert.isUndefined(judge.handleLate())
    assert.strictEqual(judge.unsettled, 0)
    judge.handleLost()
    judge.handleGivenUp()
    assert.strictEqual(judge.unsettled, 0)
  })
})
