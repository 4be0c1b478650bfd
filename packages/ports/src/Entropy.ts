import * as Context from "effect/Context"
import type { Entropy as EntropyCalls } from "@pure-link/keys"

/** Where run ids, generations, lives, tokens and key material come from: the system's generator, or a seeded one in tests. */
export class Entropy extends Context.Service<Entropy, EntropyCalls>()("@pure-link/ports/Entropy") {}
