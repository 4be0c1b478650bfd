import * as Context from "effect/Context"
import * as Layer from "effect/Layer"
import type { Pacer, PacerOptions } from "./Pacer.ts"
import { PacedBucket } from "./pacedBucket.ts"
import { Unpaced } from "./unpaced.ts"

/** The choice of pacing: a maker of pacers, one per run, whose calls are plain. */
export class Pacing extends Context.Service<Pacing, { readonly make: (options: PacerOptions) => Pacer }>()(
  "@pure-link/recovery/Pacing"
) {
  /** A window spread over a round trip, in bursts of at most 2 ms' worth (spec §14.7). The default. */
  static readonly layerPaced = Layer.succeed(this, { make: (options) => new PacedBucket(options) })
  /** No pacing, to compare with. */
  static readonly layerUnpaced = Layer.succeed(this, { make: () => new Unpaced() })
}
