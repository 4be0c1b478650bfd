import type { InboxBatch, ReadBounds } from "@pure-link/ports"
import type { Bytes, RecordBatch } from "@pure-link/wire"
import { Piece, RecordList } from "./RecordList.ts"
import { RunList } from "./RunList.ts"

/**
 * An input's log in memory: records copied one after the other into slabs, and runs that say whose they are. Slabs that
 * are pruned are used again, so that a log in a steady flow touches the same memory all the time.
 */

/** Slabs grow from the first to the last of these as their log does. */
const smallestSlab: Bytes = 1 << 14
const largestSlab: Bytes = 1 << 20
/** A slab has room for one record for each so many bytes. */
const bytesPerRecord = 64
/** Slabs of one size that are kept for later. */
const sparesKept = 32

/** Slabs that wait to be used again, by their size. */
export class SlabPool {
  readonly #spares = new Map<Bytes, Array<Piece>>()

  /** An empty piece with room for a record of this size. */
  take(firstPosition: number, slabBytes: Bytes, recordBytes: Bytes): Piece {
    if (recordBytes > slabBytes) return emptyPiece(firstPosition, recordBytes, 1)
    const spare = this.#spares.get(slabBytes)?.pop()
    if (spare !== undefined) return new Piece(firstPosition, spare, 0, 0)
    return emptyPiece(firstPosition, slabBytes, slabBytes / bytesPerRecord)
  }

  give({ bytes, sizes }: Piece): void {
    if (sizes.length * bytesPerRecord !== bytes.length) return
    const spares = this.#spares.get(bytes.length) ?? []
    this.#spares.set(bytes.length, spares)
    if (spares.length < sparesKept) spares.push(new Piece(0, { bytes, sizes }, 0, 0))
  }
}

const emptyPiece = (firstPosition: number, bytes: Bytes, records: number): Piece =>
  new Piece(firstPosition, { bytes: new Uint8Array(bytes), sizes: new Uint32Array(records) }, 0, 0)

export class InboxLog {
  lastPosition = 0
  /** Records up to this position are pruned. */
  pruned = 0
  /** Bytes of the records held. */
  bytes: Bytes = 0
  readonly consumers = new Map<string, number>()
  readonly #pool: SlabPool
  readonly #records = new RecordList()
  #runs = new RunList()
  #slabBytes = smallestSlab
  /** Bytes of pruned records in the oldest slab. */
  #prunedBytes: Bytes = 0

  constructor(pool: SlabPool) {
    this.#pool = pool
  }

  get records(): number {
    return this.lastPosition - this.pruned
  }

  /** Appends records of a source. */
  append(source: string, { bytes, first, sizes }: RecordBatch): void {
    this.#runs.append(this.lastPosition + 1, source, first, sizes.length)
    this.#copy(new Piece(1, { bytes, sizes }))
    this.bytes += bytes.length
    this.lastPosition += sizes.length
  }

  /** Copies records into slabs. */
  #copy(batch: Piece): void {
    let position = this.lastPosition + 1
    for (let index = 0; index < batch.count;) {
      const piece = this.#room(position, batch.sizes[index]!)
      const most = { records: piece.sizes.length - piece.count, bytes: piece.bytes.length - piece.end }
      const { bytes, sizes } = batch.cut(index, most, true)
      piece.bytes.set(bytes, piece.end)
      piece.sizes.set(sizes, piece.count)
      piece.count += sizes.length
      piece.end += bytes.length
      index += sizes.length
      position += sizes.length
    }
  }

  /** The newest slab if it has room for one more record of this size, or a new one. */
  #room(position: number, recordBytes: Bytes): Piece {
    const { newest } = this.#records
    if (newest !== undefined) {
      if (newest.count < newest.sizes.length && recordBytes <= newest.bytes.length - newest.end) return newest
      this.#slabBytes = Math.min(2 * this.#slabBytes, largestSlab)
    }
    const piece = this.#pool.take(position, this.#slabBytes, recordBytes)
    this.#records.push(piece)
    return piece
  }

  /** Records after a position, as views where they stand in one slab. */
  read(after: number, most: ReadBounds): InboxBatch {
    const firstPosition = Math.max(after, this.pruned) + 1
    const { bytes, sizes } = this.#records.read(firstPosition, most)
    return { firstPosition, bytes, sizes, runs: this.#runs.slice(firstPosition, sizes.length) }
  }

  /** Deletes the records up to a position, and says how many. */
  prune(through: number): number {
    const end = Math.min(through, this.lastPosition)
    if (end <= this.pruned) return 0
    const pruned = end - this.pruned
    this.pruned = end
    for (
      let oldest = this.#records.oldest;
      oldest !== undefined && oldest.first <= end;
      oldest = this.#records.oldest
    ) {
      const isWhole = oldest.last <= end
      const offset = isWhole ? oldest.end : oldest.offsetOf(end - oldest.first + 1)
      this.bytes -= offset - this.#prunedBytes
      this.#prunedBytes = isWhole ? 0 : offset
      if (!isWhole) break
      this.#records.shift()
      this.#pool.give(oldest)
    }
    this.#runs.dropBefore(end + 1)
    return pruned
  }

  /** A copy that shares nothing. */
  copy(pool: SlabPool): InboxLog {
    const copy = new InboxLog(pool)
    copy.lastPosition = this.lastPosition
    copy.pruned = this.pruned
    copy.bytes = this.bytes
    copy.#prunedBytes = this.#prunedBytes
    copy.#runs = this.#runs.copy()
    for (const [consumer, position] of this.consumers) copy.consumers.set(consumer, position)
    for (const { bytes, count, end, first, sizes } of this.#records.held()) {
      copy.#records.push(new Piece(first, { bytes: bytes.slice(), sizes: sizes.slice() }, count, end))
    }
    return copy
  }
}
