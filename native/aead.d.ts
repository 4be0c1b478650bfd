/**
 * AES-128-GCM on packets in place, as aead.cc exports it. The nonce of a packet is the key's IV xor its number. Arguments
 * out of bounds throw a RangeError, of another type a TypeError, and change nothing.
 */
export interface Aead {
  readonly opensslVersion: string
  /**
   * A handle for a key of 28 B: an AES-128 key, then an IV; the bytes are copied. The key is freed and erased when `owner`
   * is collected, if `freeKey` was not called before.
   */
  readonly createKey: (owner: object, material: Uint8Array) => number
  /** Makes the handle stand for another key, whose bytes are copied; the former one is erased. */
  readonly renewKey: (handle: number, material: Uint8Array) => void
  /** Frees and erases the key; false when there is none (any more). */
  readonly freeKey: (handle: number) => boolean
  /** How many keys this thread holds. */
  readonly keyCount: () => number
  /** Seals `bytes[bodyStart, bodyEnd)`, its tag at `bodyEnd`; `bytes[start, bodyStart)` is additional data. */
  readonly seal: (
    handle: number,
    bytes: Uint8Array,
    start: number,
    bodyStart: number,
    bodyEnd: number,
    number: number
  ) => void
  /** Opens `bytes[bodyStart, end − 16)`; false, and the bytes as they were, when the tag does not verify. */
  readonly open: (
    handle: number,
    bytes: Uint8Array,
    start: number,
    bodyStart: number,
    end: number,
    number: number
  ) => boolean
  /**
   * Seals the packets `from` to `to − 1`: packet i stands at `slab[i * stride …]`, is `lengths[i]` B long with its tag, and
   * begins with a header; their numbers are `first`, `first + 1`, …
   */
  readonly sealTrain: (
    handle: number,
    slab: Uint8Array,
    stride: number,
    lengths: Uint32Array,
    from: number,
    to: number,
    headerLength: number,
    first: number
  ) => void
  /** Opens the packets `from` to `to − 1`, each `bytes[starts[i], ends[i])`; `opened[i]` becomes 1, or 0 as for `open`. */
  readonly openAll: (
    handle: number,
    bytes: Uint8Array,
    starts: Uint32Array,
    ends: Uint32Array,
    numbers: Float64Array,
    opened: Uint8Array,
    from: number,
    to: number,
    headerLength: number
  ) => void
}

/** Either the functions are there, or `aeadReason` says in a line why this process cannot have them. */
export interface AeadAddon {
  readonly aead?: Aead
  readonly aeadReason?: string
}
