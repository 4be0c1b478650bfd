import * as Context from "effect/Context"
import * as Layer from "effect/Layer"
import type { CongestionController, ControllerOptions } from "./CongestionController.ts"
import { Cubic } from "./cubic.ts"
import { NewReno } from "./newReno.ts"

/** The choice of congestion control: a maker of controllers, one per run, whose calls are plain. */
export class CongestionControl extends Context.Service<
  CongestionControl,
  {
    readonly make: (options: ControllerOptions) => CongestionController
  }
>()("@pure-link/recovery/CongestionControl") {
  static readonly layerCubic = Layer.succeed(this, { make: (options) => new Cubic(options) })
  static readonly layerNewReno = Layer.succeed(this, { make: (options) => new NewReno(options) })
}
