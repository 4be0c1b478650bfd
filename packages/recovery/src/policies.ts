import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { CongestionControl } from "./congestion/CongestionControl.ts"
import { EpisodeJudgement } from "./episode/EpisodeJudgement.ts"
import { LossDetection } from "./loss/LossDetection.ts"
import { Pacing } from "./pacing/Pacing.ts"
import { PathMtu } from "./pathMtu/PathMtu.ts"
import { LossResponse } from "./response/LossResponse.ts"
import { TailRedundancy } from "./tail/TailRedundancy.ts"

/**
 * All that a sender may do one way or another about a path, each a service chosen by Layer. The services are makers;
 * what they make are plain objects, for no Effect runs where packets do.
 */
export type Policies =
  | CongestionControl
  | LossDetection
  | LossResponse
  | EpisodeJudgement
  | Pacing
  | PathMtu
  | TailRedundancy

/** The makers of one choice, for machines. */
export interface PolicyMakers {
  readonly congestionControl: CongestionControl["Service"]
  readonly lossDetection: LossDetection["Service"]
  readonly lossResponse: LossResponse["Service"]
  readonly episodeJudgement: EpisodeJudgement["Service"]
  readonly pacing: Pacing["Service"]
  readonly pathMtu: PathMtu["Service"]
  readonly tailRedundancy: TailRedundancy["Service"]
}

/** The choice that stands in the context. */
const chosen: Effect.Effect<PolicyMakers, never, Policies> = Effect.all({
  congestionControl: CongestionControl,
  lossDetection: LossDetection,
  lossResponse: LossResponse,
  episodeJudgement: EpisodeJudgement,
  pacing: Pacing,
  pathMtu: PathMtu,
  tailRedundancy: TailRedundancy
})

/**
 * What spec §14 describes: CUBIC, adaptive loss detection, all-or-nothing undo, pacing, path MTU discovery. Provide
 * another layer of one service on top to exchange that one alone.
 */
const layerDefault: Layer.Layer<Policies> = Layer.mergeAll(
  CongestionControl.layerCubic,
  LossDetection.layerAdaptive,
  LossResponse.layerFull,
  EpisodeJudgement.layerAllOrNothing,
  Pacing.layerPaced,
  PathMtu.layerDiscovery,
  TailRedundancy.layerNone
)

export const Policies = {
  chosen,
  layerDefault,
  /** The makers of `layerDefault`, where no Effect is at hand. */
  defaults: Effect.runSync(Effect.provide(chosen, layerDefault)) satisfies PolicyMakers
}
