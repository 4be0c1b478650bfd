import type { PacketKey } from "@pure-link/keys"
import {
  type Address,
  type Bytes,
  type Epoch,
  Kind,
  PacketHeader,
  type PacketNumber,
  shortHeaderLength,
  tagLength
} from "@pure-link/wire"

/** The data packet that a receiver is reading: one object, used again for each (spec §10.1). */
export class DataPacket {
  readonly header = new PacketHeader()
  bytes: Uint8Array = noBytes
  /** Where the datagram stands in `bytes`, and where it came from. */
  start = 0
  end = 0
  from: Address = { host: "", port: 0 }
  /** The full number, and the epoch of the key that opened it. */
  number: PacketNumber = 0
  epoch: Epoch = 0
  /** A key that did not open it under a number, when it was tried with others. */
  private refusedBy: PacketKey | undefined
  private refusedNumber: PacketNumber = 0
  /** Its run began with it. */
  startsRun = false

  /** Takes a datagram; false when it has no header of a data packet. */
  read(bytes: Uint8Array, start: number, end: number, from: Address): boolean {
    this.bytes = bytes
    this.start = start
    this.end = end
    this.from = from
    this.startsRun = false
    return this.header.read(bytes, start, end) && this.header.kind <= Kind.longData
  }

  /** Takes a packet with a short header that was opened together with others. */
  takeOpened(bytes: Uint8Array, start: number, end: number, from: Address, number: PacketNumber, epoch: Epoch): void {
    this.bytes = bytes
    this.start = start
    this.end = end
    this.from = from
    this.startsRun = false
    this.header.kind = Kind.shortData
    this.header.length = shortHeaderLength
    this.number = number
    this.epoch = epoch
  }

  /** The next packet of a row that was opened together, in the same bytes and from the same place. */
  moveTo(start: number, end: number, number: PacketNumber): void {
    this.start = start
    this.end = end
    this.number = number
  }

  /** The packet to be read next was tried with this key and number already; undefined when it was not. */
  noteRefused(key: PacketKey | undefined, number: PacketNumber): void {
    this.refusedBy = key
    this.refusedNumber = number
  }

  get length(): Bytes {
    return this.end - this.start
  }

  get isLong(): boolean {
    return this.header.kind === Kind.longData
  }

  get bodyStart(): number {
    return this.start + this.header.length
  }

  get bodyEnd(): number {
    return this.end - tagLength
  }

  /** Opens the body in place, if the tag verifies under this key and number. */
  open(key: PacketKey, epoch: Epoch, number: PacketNumber): boolean {
    if (key === this.refusedBy && number === this.refusedNumber) return false
    if (!key.open(this.bytes, this.start, this.bodyStart, this.end, number)) return false
    this.number = number
    this.epoch = epoch
    return true
  }
}

const noBytes = new Uint8Array(0)
