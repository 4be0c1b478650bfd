import { type ReadBounds, readEnough } from "@pure-link/ports"
import type { Bytes } from "@pure-link/wire"
import { type Columns, joined } from "./columns.ts"

/**
 * Records in memory, numbered without a gap, as the columns they came in: a list of pieces, each one buffer with the
 * sizes of its records. Nothing is done per record but adding up sizes, and who reads or removes in order finds its
 * place again without a search.
 */

/** Consecutive records. Both arrays may be longer than what is used of them. */
export class Piece {
  readonly first: number
  readonly bytes: Uint8Array
  readonly sizes: Uint32Array
  count: number
  /** Where the bytes of the last record end. */
  end: Bytes
  /** A record's index that was looked for last, and where its bytes begin. */
  #index = 0
  #offset: Bytes = 0

  constructor(first: number, { bytes, sizes }: Columns, count = sizes.length, end = bytes.length) {
    this.first = first
    this.bytes = bytes
    this.sizes = sizes
    this.count = count
    this.end = end
  }

  get last(): number {
    return this.first + this.count - 1
  }

  /** Where the bytes of record `index` begin. */
  offsetOf(index: number): Bytes {
    if (index < this.#index) this.#index = this.#offset = 0
    while (this.#index < index) this.#offset += this.sizes[this.#index++]!
    return this.#offset
  }

  /** A view of as many records from `index` on as fit both bounds; `mayBeLong`: of one at least. */
  cut(index: number, most: ReadBounds, mayBeLong: boolean): Columns {
    const start = this.offsetOf(index)
    const rest = this.count - index
    if (rest <= most.records && this.end - start <= most.bytes) {
      this.#index = this.count
      this.#offset = this.end
    } else {
      const end = index + Math.min(rest, most.records)
      const extent = mayBeLong ? Math.max(most.bytes, this.sizes[index]!) : most.bytes
      let at = start
      let next = index
      while (next < end && at + this.sizes[next]! - start <= extent) at += this.sizes[next++]!
      this.#index = next
      this.#offset = at
    }
    return { bytes: this.bytes.subarray(start, this.#offset), sizes: this.sizes.subarray(index, this.#index) }
  }
}

/** Stands where a piece was dropped. */
const dropped = new Piece(0, { bytes: new Uint8Array(0), sizes: new Uint32Array(0) })
const nothing: Columns = { bytes: new Uint8Array(0), sizes: new Uint32Array(0) }

export class RecordList {
  /** In order, from `#head` on. */
  pieces: Array<Piece> = []
  #head = 0
  /** Where a piece was found last. */
  #found = 0

  /** The oldest piece. */
  get oldest(): Piece | undefined {
    return this.pieces[this.#head]
  }

  get newest(): Piece | undefined {
    return this.pieces.length > this.#head ? this.pieces[this.pieces.length - 1] : undefined
  }

  /** How many records are held. */
  get size(): number {
    let size = 0
    for (let i = this.#head; i < this.pieces.length; i++) size += this.pieces[i]!.count
    return size
  }

  /** All pieces. */
  held(): ReadonlyArray<Piece> {
    return this.pieces.slice(this.#head)
  }

  push(piece: Piece): void {
    this.pieces.push(piece)
  }

  /** Takes the oldest piece out. */
  shift(): Piece | undefined {
    const piece = this.oldest
    if (piece === undefined) return undefined
    this.pieces[this.#head++] = dropped
    if (this.#head >= 64 && 2 * this.#head >= this.pieces.length) {
      this.pieces = this.pieces.slice(this.#head)
      this.#head = this.#found = 0
    }
    return piece
  }

  /** Records from `from` on: views, as long as they stand in one piece; of small pieces as many as are worth a copy. */
  read(from: number, most: ReadBounds): Columns {
    let piece = this.#find(from)
    if (piece === undefined) return nothing
    const first = piece.cut(from - piece.first, most, true)
    const views = [first]
    let next = from + first.sizes.length
    let bytes = first.bytes.length
    while (bytes < readEnough && next > piece.last && next - from < most.records) {
      const following: Piece | undefined = this.pieces[this.#found + 1]
      if (following === undefined || following.first !== next) break
      const view = following.cut(0, { records: most.records - (next - from), bytes: most.bytes - bytes }, false)
      if (view.sizes.length === 0) break
      this.#found += 1
      piece = following
      views.push(view)
      next += view.sizes.length
      bytes += view.bytes.length
    }
    return views.length === 1 ? first : joined(views)
  }

  /** The piece that holds a record. */
  #find(number: number): Piece | undefined {
    const { pieces } = this
    const holds = (i: number) => i >= this.#head && i < pieces.length && isIn(pieces[i]!, number)
    if (holds(this.#found)) return pieces[this.#found]
    if (holds(this.#found + 1)) return pieces[++this.#found]
    let low = this.#head
    let high = pieces.length - 1
    while (low < high) {
      const middle = (low + high + 1) >>> 1
      if (pieces[middle]!.first <= number) low = middle
      else high = middle - 1
    }
    if (!holds(low)) return undefined
    return pieces[(this.#found = low)]
  }
}

const isIn = (piece: Piece, number: number): boolean => number >= piece.first && number <= piece.last
