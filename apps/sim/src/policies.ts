import {
  CongestionControl,
  EpisodeJudgement,
  LossDetection,
  PathMtu,
  Pacing,
  Policies,
  TailRedundancy
} from "@pure-link/recovery"
import * as Layer from "effect/Layer"
import type { SimOptions } from "./options.ts"

/** The policies of the nodes: the defaults of the room, with those that flags choose in their places. */
export const policiesOf = ({
  controller,
  lossDetection,
  pacing,
  pathMtu,
  tail,
  undo
}: SimOptions): Layer.Layer<Policies> =>
  Layer.mergeAll(
    Policies.layerDefault,
    controller === "cubic" ? CongestionControl.layerCubic : CongestionControl.layerNewReno,
    lossDetection === "adaptive" ? LossDetection.layerAdaptive : LossDetection.layerFixed,
    undo ? EpisodeJudgement.layerAllOrNothing : EpisodeJudgement.layerNever,
    pacing === "paced" ? Pacing.layerPaced : Pacing.layerUnpaced,
    pathMtuLayers[pathMtu],
    tail === "none" ? TailRedundancy.layerNone : TailRedundancy.layerOnce
  )

const pathMtuLayers: Readonly<Record<SimOptions["pathMtu"], Layer.Layer<PathMtu>>> = {
  discovery: PathMtu.layerDiscovery,
  "without-black-holes": PathMtu.layerWithoutBlackHoles,
  fixed: PathMtu.layerFixed
}
