import { type CryptoSuite, type PacketKey, SinglePacketKey } from "@pure-link/keys"
import {
  type Epoch,
  FrameCursor,
  FrameType,
  type Id64,
  Kind,
  type PacketNumber,
  readAccept,
  readChallenge,
  readResponse
} from "@pure-link/wire"
import { quickSuite as suite } from "../world/quickSuite.ts"

/**
 * What a machine puts into the packets that it seals, overheard at the moment of sealing, before any key hides it. So a
 * world knows of every packet what it says without holding its secrets.
 */
export interface Spoken {
  readonly number: PacketNumber
  /** It carries an OFFER. */
  readonly offers: boolean
  /** The epoch of its ACCEPT. */
  readonly accepts: Epoch | undefined
  readonly challenge: Id64 | undefined
  readonly response: Id64 | undefined
}

class OverheardKey extends SinglePacketKey {
  readonly #key: PacketKey
  readonly #listen: PacketKey["seal"]

  constructor(key: PacketKey, listen: PacketKey["seal"]) {
    super()
    this.#key = key
    this.#listen = listen
  }

  seal(bytes: Uint8Array, start: number, bodyStart: number, bodyEnd: number, number: PacketNumber): void {
    this.#listen(bytes, start, bodyStart, bodyEnd, number)
    this.#key.seal(bytes, start, bodyStart, bodyEnd, number)
  }

  open(bytes: Uint8Array, start: number, bodyStart: number, end: number, number: PacketNumber): boolean {
    return this.#key.open(bytes, start, bodyStart, end, number)
  }

  release(): void {
    this.#key.release()
  }
}

/** A suite whose packet keys are overheard. */
export class Overheard {
  /** What was sealed last. */
  last: Spoken = nothing
  readonly suite: CryptoSuite
  readonly #cursor = new FrameCursor()

  constructor() {
    this.suite = { ...suite, packetKey: (material) => this.#overhear(suite.packetKey(material)) }
  }

  #overhear(key: PacketKey): PacketKey {
    return new OverheardKey(key, (bytes, start, bodyStart, bodyEnd, number) => {
      this.last = bytes[start]! >> 6 === Kind.lost ? nothing : this.#listen(bytes, bodyStart, bodyEnd, number)
    })
  }

  #listen(bytes: Uint8Array, start: number, end: number, number: PacketNumber): Spoken {
    const cursor = this.#cursor
    const spoken = { ...nothing, number }
    cursor.reset(bytes, start, end)
    while (cursor.next()) {
      if (cursor.type === FrameType.offer) spoken.offers = true
      else if (cursor.type === FrameType.accept) spoken.accepts = readAccept(bytes, cursor.start, end).epoch
      else if (cursor.type === FrameType.challenge) spoken.challenge = readChallenge(bytes, cursor.start, end).token
      else if (cursor.type === FrameType.response) spoken.response = readResponse(bytes, cursor.start, end).token
    }
    return spoken
  }
}

const nothing: Spoken = { number: 0, offers: false, accepts: undefined, challenge: undefined, response: undefined }
