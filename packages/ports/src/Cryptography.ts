import type { CryptoSuite } from "@pure-link/keys"
import * as Context from "effect/Context"

/** Key agreement, key derivation and the AEAD, chosen by Layer: noble (readable, portable) or node:crypto (fast). */
export class Cryptography extends Context.Service<Cryptography, CryptoSuite>()("@pure-link/ports/Cryptography") {}
