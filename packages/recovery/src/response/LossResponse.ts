import * as Context from "effect/Context"
import * as Layer from "effect/Layer"
import type { LossJudge } from "./LossJudge.ts"

/** Every loss counts whole: the maker of the default. */
export const everyLossCounts = {
  make: (): LossJudge => ({ name: "full", handleAcknowledged: () => {}, partOf: () => 1 })
}

/** The choice of how losses are weighed: a maker, one per run, whose calls are plain. */
export class LossResponse extends Context.Service<LossResponse, { readonly make: () => LossJudge }>()(
  "@pure-link/recovery/LossResponse"
) {
  /** Every loss is congestion (RFC 9002 §7). The default. */
  static readonly layerFull = Layer.succeed(this, everyLossCounts)
}
