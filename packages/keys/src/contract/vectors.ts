import { seededEntropy } from "../entropy.ts"

/** The published vectors that every suite is held to, and how tests write bytes. */

export const bytesOf = (hex: string): Uint8Array => new Uint8Array(Buffer.from(hex, "hex"))
export const hexOf = (bytes: Uint8Array | undefined): string | undefined => bytes && Buffer.from(bytes).toString("hex")
export const counting = (first: number, length: number): Uint8Array => Uint8Array.from({ length }, (_, i) => first + i)
export const join = (...parts: ReadonlyArray<Uint8Array>): Uint8Array => new Uint8Array(Buffer.concat(parts))
export const random = (seed: number, length: number): Uint8Array => {
  const bytes = new Uint8Array(length)
  seededEntropy(seed).fill(bytes)
  return bytes
}

// RFC 7748 §5.2 (the second point with its bit 255 cleared, as X25519 itself reads it), then §6.1 from both sides.
export const agreements = [
  {
    scalar: "a546e36bf0527c9d3b16154b82465edd62144c0ac1fc5a18506a2244ba449ac4",
    point: "e6db6867583030db3594c1a424b15f7c726624ec26b3353b10a903a6d0ab1c4c",
    shared: "c3da55379de9c6908e94ea4df28d084f32eccf03491c71f754b4075577a28552"
  },
  {
    scalar: "4b66e9d4d1b4673c5ad22691957d6af5c11b6421e0ea01d42ca4169e7918ba0d",
    point: "e5210f12786811d3f4b7959d0538ae2c31dbe7106fc03c3efc4cd549c715a413",
    shared: "95cbde9476e8907d7aade45cb4b873f88b595a68799fa152e6f8f7647aac7957"
  },
  {
    scalar: "77076d0a7318a57d3c16c17251b26645df4c2f87ebc0992ab177fba51db92c2a",
    point: "de9edb7d7b7dc1b4d35b61c2ece435373f8343c85b78674dadfc7e146f882b4f",
    shared: "4a5d9d5ba4ce2de1728e3bf480350f25e07e21c947d19e3376f09b3c1e161742"
  },
  {
    scalar: "5dab087e624a8a4b79e17f8b83800ee66f3bb1292618b6fd1c2f8b27ff88e0eb",
    point: "8520f0098930a754748b7ddcb43ef75a0dbf3a0d26381af4eba4a98eaa9b4e6a",
    shared: "4a5d9d5ba4ce2de1728e3bf480350f25e07e21c947d19e3376f09b3c1e161742"
  }
]

// RFC 5869 appendix A.1 to A.3.
export const derivations = [
  {
    ikm: new Uint8Array(22).fill(0x0b),
    salt: counting(0x00, 13),
    info: counting(0xf0, 10),
    prk: "077709362c2e32df0ddc3f0dc47bba6390b6c73bb50f9c3122ec844ad7c2b3e5",
    okm: "3cb25f25faacd57a90434f64d0362f2a2d2d0a90cf1a5a4c5db02d56ecc4c5bf34007208d5b887185865"
  },
  {
    ikm: counting(0x00, 80),
    salt: counting(0x60, 80),
    info: counting(0xb0, 80),
    prk: "06a6b88c5853361a06104c9ceb35b45cef760014904671014a193f40c15fc244",
    okm:
      "b11e398dc80327a1c8e7f78c596a49344f012eda2d4efad8a050cc4c19afa97c59045a99cac7827271cb41c65e590e09" +
      "da3275600c2f09b8367793a9aca3db71cc30c58179ec3e87c14c01d5c1f3434f1d87"
  },
  {
    ikm: new Uint8Array(22).fill(0x0b),
    salt: new Uint8Array(0),
    info: new Uint8Array(0),
    prk: "19ef24a32c717b167f33a91d6f648bdf96596776afdb6377ac434c1c293ccb04",
    okm: "8da4e775a563c18f715f802a063c5a31b8a11f5c5ee1879ec3454e5f3c738d2d9d201395faa4b61a96c8"
  }
]

// The AES-128 cases 1 to 4 of the GCM submission to NIST (number 0: the nonce is the IV), then RFC 9001 A.3 (number 1).
export const packets = [
  {
    key: "00000000000000000000000000000000",
    iv: "000000000000000000000000",
    number: 0,
    header: "",
    body: "",
    sealed: "58e2fccefa7e3061367f1d57a4e7455a"
  },
  {
    key: "00000000000000000000000000000000",
    iv: "000000000000000000000000",
    number: 0,
    header: "",
    body: "00000000000000000000000000000000",
    sealed: "0388dace60b6a392f328c2b971b2fe78ab6e47d42cec13bdf53a67b21257bddf"
  },
  {
    key: "feffe9928665731c6d6a8f9467308308",
    iv: "cafebabefacedbaddecaf888",
    number: 0,
    header: "",
    body:
      "d9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a318a72" +
      "1c3c0c95956809532fcf0e2449a6b525b16aedf5aa0de657ba637b391aafd255",
    sealed:
      "42831ec2217774244b7221b784d0d49ce3aa212f2c02a4e035c17e2329aca12e" +
      "21d514b25466931c7d8f6a5aac84aa051ba30b396a0aac973d58e091473f5985" +
      "4d5c2af327cd64a62cf35abd2ba6fab4"
  },
  {
    key: "feffe9928665731c6d6a8f9467308308",
    iv: "cafebabefacedbaddecaf888",
    number: 0,
    header: "feedfacedeadbeeffeedfacedeadbeefabaddad2",
    body:
      "d9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a318a72" +
      "1c3c0c95956809532fcf0e2449a6b525b16aedf5aa0de657ba637b39",
    sealed:
      "42831ec2217774244b7221b784d0d49ce3aa212f2c02a4e035c17e2329aca12e" +
      "21d514b25466931c7d8f6a5aac84aa051ba30b396a0aac973d58e091" +
      "5bc94fbc3221a5db94fae95ae7121a47"
  },
  {
    key: "cf3a5331653c364c88f0f379b6067e37",
    iv: "0ac1493ca1905853b0bba03e",
    number: 1,
    header: "c1000000010008f067a5502a4262b50040750001",
    body:
      "02000000000600405a020000560303eefce7f7b37ba1d1632e96677825ddf73988cfc79825df566dc5430b9a045a1200" +
      "130100002e00330024001d00209d3c940d89690b84d08a60993c144eca684d1081287c834d5311bcf32bb9da1a002b00020304",
    sealed:
      "5a482cd0991cd25b0aac406a5816b6394100f37a1c69797554780bb38cc5a99f5ede4cf73c3ec2493a1839b3dbcba3f6" +
      "ea46c5b7684df3548e7ddeb9c3bf9c73cc3f3bded74b562bfb19fb84022f8ef4cdd93795d77d06edbb7aaf2f58891850" +
      "abbdca3d20398c276456cbc42158407dd074ee"
  }
]

// The points of low order whose encoding is canonical, but for 0 (all of https://cr.yp.to/ecdh.html#validate).
export const lowOrder = [
  "0100000000000000000000000000000000000000000000000000000000000000",
  "e0eb7a7c3b41b8ae1656e3faf19fc46ada098deb9c32b1fd866205165f49b800",
  "5f9c95bca3508c24b1d0b1559c83ef5b04445cc4581c8e86d8224eddd09f1157",
  "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f"
]
// 2^255 − 19 and above, and small numbers with bit 255 set.
export const notCanonical = [
  "edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
  "eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
  "ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
  "0900000000000000000000000000000000000000000000000000000000000080",
  "e5210f12786811d3f4b7959d0538ae2c31dbe7106fc03c3efc4cd549c715a493",
  "ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff"
]
export const zeroKey = "00".repeat(32)
