import { never } from "@pure-link/wire"
import * as Context from "effect/Context"
import * as Layer from "effect/Layer"
import type { TailPolicy } from "./TailPolicy.ts"

/** The part of a smoothed round trip that separates the copy from the original, so that one burst of loss spares one. */
const spacing = 1 / 4

/** The maker of the default. */
export const noCopies = { make: (): TailPolicy => ({ name: "none", copyAt: () => never }) }

/** The choice of tail redundancy: a maker, one per run, whose calls are plain. */
export class TailRedundancy extends Context.Service<TailRedundancy, { readonly make: () => TailPolicy }>()(
  "@pure-link/recovery/TailRedundancy"
) {
  /** Nothing goes twice without a reason. The default. */
  static readonly layerNone = Layer.succeed(this, noCopies)
  /**
   * Every packet that the application's pause leaves room for goes once more, a quarter of a round trip later: a lost
   * packet then costs that instead of a round trip and more, for up to twice the packets.
   */
  static readonly layerOnce = Layer.succeed(this, {
    make: () => ({ name: "once", copyAt: (sentAt, rtt) => sentAt + Math.ceil(spacing * rtt.smoothed) })
  })
}
