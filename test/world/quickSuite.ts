import { type CryptoSuite, SinglePacketKey } from "@pure-link/keys"

/**
 * A suite for worlds that rotate epochs all the time or have ten thousand peers, in which cryptography would take most of the
 * time: products modulo a prime stand in for X25519 and a mixing function for SHA-256 and AES-GCM. Sizes, counts and who
 * can open what are as they would be among those who do not cheat; bodies travel in the clear. The real ones are tested in
 * `packages/keys`.
 */
const prime = 2n ** 255n - 19n

const valueOf = (bytes: Uint8Array): bigint => BigInt(`0x${Buffer.from(bytes).toString("hex")}`) % prime

const bytesOf = (value: bigint): Uint8Array =>
  new Uint8Array(Buffer.from(value.toString(16).padStart(64, "0"), "hex").reverse())

const times = (privateKey: Uint8Array, value: bigint): Uint8Array => bytesOf((valueOf(privateKey) * value) % prime)

const lanes = new Uint32Array(8)

/** Starts a mixture that depends on nothing. */
const start = (): void => {
  for (let i = 0; i < lanes.length; i++) lanes[i] = Math.imul(i + 1, 0x9e3779b1)
}

/** Mixes bytes, and how many they are, into all lanes. */
const mix = (bytes: Uint8Array, from = 0, to = bytes.length): void => {
  let carry = to - from
  for (let i = from; i < to; i++) {
    const lane = i & 7
    carry = Math.imul(carry ^ lanes[lane]! ^ bytes[i]!, 0x85ebca6b)
    lanes[lane] = carry ^ (carry >>> 15)
  }
  for (let round = 0; round < 16; round++) {
    carry = Math.imul(carry ^ lanes[round & 7]! ^ round, 0xc2b2ae35)
    lanes[round & 7] = carry ^ (carry >>> 13)
  }
}

const mixed = (...parts: ReadonlyArray<Uint8Array>): Uint8Array => {
  start()
  for (const part of parts) mix(part)
  const out = new Uint8Array(32)
  new Uint32Array(out.buffer).set(lanes)
  return out
}

class QuickKey extends SinglePacketKey {
  readonly #material: Uint8Array
  readonly #number = new Uint8Array(8)

  constructor(material: Uint8Array) {
    super()
    this.#material = material.slice()
  }

  seal(bytes: Uint8Array, from: number, _bodyStart: number, bodyEnd: number, number: number): void {
    this.#mixAll(bytes, from, bodyEnd, number)
    for (let i = 0; i < 16; i++) bytes[bodyEnd + i] = lanes[i >> 2]! >>> (8 * (i & 3))
  }

  open(bytes: Uint8Array, from: number, bodyStart: number, end: number, number: number): boolean {
    if (end - 16 < bodyStart) return false
    this.#mixAll(bytes, from, end - 16, number)
    for (let i = 0; i < 16; i++) if (bytes[end - 16 + i] !== ((lanes[i >> 2]! >>> (8 * (i & 3))) & 0xff)) return false
    return true
  }

  release(): void {}

  #mixAll(bytes: Uint8Array, from: number, to: number, number: number): void {
    for (let i = 0, rest = number; i < 8; i++, rest = Math.floor(rest / 256)) this.#number[i] = rest % 256
    start()
    mix(this.#material)
    mix(this.#number)
    mix(bytes, from, to)
  }
}

export const quickSuite: CryptoSuite = {
  name: "quick",
  derivation: {
    extract: (salt, material) => mixed(salt, material),
    expand: (key, info, length) => mixed(key, info).subarray(0, length),
    sha256: (bytes) => mixed(bytes)
  },
  packetKey: (material) => new QuickKey(material),
  agreement: {
    publicKey: (privateKey) => times(privateKey, 9n),
    shared: (privateKey, publicKey) => times(privateKey, valueOf(publicKey.slice().reverse()))
  }
}
