import { nodeSuite } from "@pure-link/keys"
import { Cryptography } from "@pure-link/ports"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { tellFallback } from "./fallbackNotice.ts"
import { loadNativeSuite } from "./nativeSuite.ts"

/**
 * The cryptography of a production node: native packet keys where the addon has them, else node:crypto, after one line
 * that says why. `PURE_LINK_NATIVE=off` asks for node:crypto.
 */
export const CryptographySystem: { readonly layer: Layer.Layer<Cryptography> } = {
  layer: Layer.effect(
    Cryptography,
    Effect.suspend(() => {
      const { reason, suite } = loadNativeSuite()
      return suite === undefined ? Effect.as(tellFallback(reason), nodeSuite) : Effect.succeed(suite)
    })
  )
}
