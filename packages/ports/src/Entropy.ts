import { type Entropy as EntropyCalls, seededEntropy, systemEntropy } from "@pure-link/keys"
import * as Context from "effect/Context"
import * as Layer from "effect/Layer"

/**
 * Where run ids, generations, lives, tokens and key material come from: the system's generator, or a seeded one in
 * tests.
 */
export class Entropy extends Context.Service<Entropy, EntropyCalls>()("@pure-link/ports/Entropy") {
  /** The operating system's generator. */
  static readonly layerSystem = Layer.succeed(this, systemEntropy)
  /**
   * A repeatable generator for tests: each build of the Layer starts at the seed again. Never for keys that protect
   * anything.
   */
  static readonly layerSeeded = (seed: number) => Layer.sync(this, () => seededEntropy(seed))
}
