import { type CryptoSuite, nobleSuite, nodeSuite } from "@pure-link/keys"
import * as Context from "effect/Context"
import * as Layer from "effect/Layer"

/** Key agreement, key derivation and the AEAD, chosen by Layer: noble (readable, portable) or node:crypto (fast). */
export class Cryptography extends Context.Service<Cryptography, CryptoSuite>()("@pure-link/ports/Cryptography") {
  /** OpenSSL through node:crypto: the default on Node. */
  static readonly layerNode = Layer.succeed(this, nodeSuite)
  /** The readable reference, in JavaScript. */
  static readonly layerNoble = Layer.succeed(this, nobleSuite)
}
