import * as Schema from "effect/Schema"

/** The Schemas of the fields that frames share. Each names the range that the binary codecs check. */

export const Uint16Field = Schema.Natural.check(Schema.isLessThan(2 ** 16))
export const Uint32Field = Schema.Natural.check(Schema.isUint32())
/** Any number that travels in 8 B or in a varint: below 2^53 (spec §3.5). */
export const NumberField = Schema.Natural
/** The number of a record: from 1 (spec §1). */
export const RecordNumberField = Schema.Int.check(Schema.isGreaterThanOrEqualTo(1))
/** Eight bytes: a generation, life, shape or token (spec §1). */
export const Id64Field = Schema.BigInt.check(Schema.isBetweenBigInt({ minimum: 0n, maximum: 2n ** 64n - 1n }))
/** A raw X25519 public key (spec §6.1). */
export const publicKeyLength = 32
export const PublicKeyField = Schema.Uint8Array.check(Schema.isBetweenLength(publicKeyLength, publicKeyLength))
