/**
 * HKDF-SHA256 (RFC 5869) as derivation.cc exports it. A result is written at the start of `out`, which may be longer;
 * arguments out of bounds throw a RangeError, of another type a TypeError, and change nothing.
 */
export interface Derivation {
  /** 32 B. */
  readonly sha256: (bytes: Uint8Array, out: Uint8Array) => void
  /** HMAC-SHA256, 32 B; with the salt as key it is HKDF-Extract. */
  readonly hmac: (key: Uint8Array, bytes: Uint8Array, out: Uint8Array) => void
  /** HKDF-Expand to `length` bytes, at most 8,160. */
  readonly expand: (key: Uint8Array, info: Uint8Array, out: Uint8Array, length: number) => void
}

/** Missing where this Node exports no SHA-256 under OpenSSL's names. */
export interface DerivationAddon {
  readonly derivation?: Derivation
}
