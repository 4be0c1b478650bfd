import * as Context from "effect/Context"
import * as Layer from "effect/Layer"
import { AllOrNothing } from "./allOrNothing.ts"
import type { EpisodeJudge } from "./EpisodeJudge.ts"
import { NeverUndo } from "./neverUndo.ts"

/** The choice of how congestion episodes are judged: a maker of judges, one per run, whose calls are plain. */
export class EpisodeJudgement extends Context.Service<EpisodeJudgement, { readonly make: () => EpisodeJudge }>()(
  "@pure-link/recovery/EpisodeJudgement"
) {
  /** An episode is undone if all of its losses proved late (spec §14.3). The default. */
  static readonly layerAllOrNothing = Layer.succeed(this, { make: () => new AllOrNothing() })
  /** Nothing is ever undone, to compare with. */
  static readonly layerNever = Layer.succeed(this, { make: () => new NeverUndo() })
}
