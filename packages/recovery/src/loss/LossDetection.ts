import * as Context from "effect/Context"
import * as Layer from "effect/Layer"
import { AdaptiveLossDetector } from "./adaptive.ts"
import { FixedLossDetector } from "./fixed.ts"
import type { LossDetector } from "./LossDetector.ts"

/** The choice of loss detection: a maker of detectors, one per run, whose calls are plain. */
export class LossDetection extends Context.Service<LossDetection, { readonly make: () => LossDetector }>()(
  "@pure-link/recovery/LossDetection"
) {
  /** Thresholds that follow the reordering that was seen (spec §14.2). The default. */
  static readonly layerAdaptive = Layer.succeed(this, { make: () => new AdaptiveLossDetector() })
  /** The constants of RFC 9002 §6.1, to compare with: it collapses under reordering. */
  static readonly layerFixed = Layer.succeed(this, { make: () => new FixedLossDetector() })
}
