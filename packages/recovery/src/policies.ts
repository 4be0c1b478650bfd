import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { CongestionControl } from "./congestion/CongestionControl.ts"
import { Cubic } from "./congestion/cubic.ts"
import { AllOrNothing } from "./episode/allOrNothing.ts"
import { EpisodeJudgement } from "./episode/EpisodeJudgement.ts"
import { AdaptiveLossDetector } from "./loss/adaptive.ts"
import { LossDetection } from "./loss/LossDetection.ts"
import { PacedBucket } from "./pacing/pacedBucket.ts"
import { Pacing } from "./pacing/Pacing.ts"
import { BlackHole } from "./pathMtu/blackHole.ts"
import { discoverPathMtu, PathMtu } from "./pathMtu/PathMtu.ts"
import { everyLossCounts, LossResponse } from "./response/LossResponse.ts"
import { noCopies, TailRedundancy } from "./tail/TailRedundancy.ts"

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

/** What spec §14 describes, where no Effect is at hand. */
const defaults: PolicyMakers = {
  congestionControl: { make: (options) => new Cubic(options) },
  lossDetection: { make: () => new AdaptiveLossDetector() },
  lossResponse: everyLossCounts,
  episodeJudgement: { make: () => new AllOrNothing() },
  pacing: { make: (options) => new PacedBucket(options) },
  pathMtu: { make: (options) => discoverPathMtu(options, new BlackHole()) },
  tailRedundancy: noCopies
}

/** The defaults as layers. Merge another layer of one service *after* them to exchange that one: the last one wins. */
const layerDefault: Layer.Layer<Policies> = Layer.mergeAll(
  CongestionControl.layerCubic,
  LossDetection.layerAdaptive,
  LossResponse.layerFull,
  EpisodeJudgement.layerAllOrNothing,
  Pacing.layerPaced,
  PathMtu.layerDiscovery,
  TailRedundancy.layerNone
)

export const Policies = { chosen, layerDefault, defaults }
