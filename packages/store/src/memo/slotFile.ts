import { slotLength } from "./slot.ts"
import type { RawFile } from "./rawFile.ts"
import type { SlotStorage } from "./storage.ts"

/** Slots in a file, one after the other, behind a header that stands before the first slot is written. */

/** Slots that are read at once when the memo is opened, and passed over at once when nothing stands in them. */
const slotsInChunk = 128
const emptyChunk = new Uint8Array(slotsInChunk * slotLength)

export class SlotFile implements SlotStorage {
  readonly #file: RawFile
  readonly #header: Uint8Array
  #hasHeader: boolean

  constructor(file: RawFile, header: Uint8Array, hasHeader: boolean) {
    this.#file = file
    this.#header = header
    this.#hasHeader = hasHeader
  }

  visit(each: (place: number, slot: Uint8Array) => void): void {
    const places = Math.ceil(this.#file.size() / slotLength)
    const chunk = new Uint8Array(slotsInChunk * slotLength)
    for (let first = 1; first < places; first += slotsInChunk) {
      this.#readChunk(chunk, first)
      if (Buffer.compare(chunk, emptyChunk) === 0) continue
      const count = Math.min(slotsInChunk, places - first)
      for (let i = 0; i < count; i++) each(first + i, chunk.subarray(i * slotLength, (i + 1) * slotLength))
    }
    chunk.fill(0)
  }

  read(place: number, slot: Uint8Array): boolean {
    slot.fill(0)
    try {
      this.#file.read(slot, place * slotLength)
      return true
    } catch {
      return false
    }
  }

  write(place: number, slot: Uint8Array): boolean {
    return this.#writeHeader() && this.#write(place, slot)
  }

  /** The file has this many places from now on; its header says so. */
  end(places: number): void {
    try {
      if (this.#file.size() > places * slotLength) this.#file.truncate(places * slotLength)
    } catch {
      // It stays longer than it has to be: what lies there was cleared.
    }
    this.#hasHeader = false
    this.#writeHeader()
  }

  /** On a full disk the header is tried again with every write. It is synced: a file without it looks foreign. */
  #writeHeader(): boolean {
    if (this.#hasHeader) return true
    this.#hasHeader = this.#write(0, this.#header)
    if (!this.#hasHeader) return false
    try {
      this.#file.sync()
    } catch {
      // A file system that cannot: then a power cut may cost the memo.
    }
    return true
  }

  #write(place: number, bytes: Uint8Array): boolean {
    try {
      return this.#file.write(bytes, place * slotLength) === slotLength
    } catch {
      return false
    }
  }

  /** What cannot be read stays zeros: such slots are empty. */
  #readChunk(chunk: Uint8Array, first: number): void {
    chunk.fill(0)
    try {
      this.#file.read(chunk, first * slotLength)
    } catch {
      for (let i = 0; i < slotsInChunk; i++) this.read(first + i, chunk.subarray(i * slotLength, (i + 1) * slotLength))
    }
  }
}
