import type { SQLInputValue, SQLOutputValue, StatementSync } from "node:sqlite"

/**
 * Reading records: as many rows as fit the bounds, at least one, with all bytes in one buffer that can cross to another
 * thread.
 */

export interface ReadBounds {
  readonly records: number
  readonly bytes: number
}

export interface SomeRows {
  readonly rows: ReadonlyArray<ReadonlyArray<SQLOutputValue>>
  readonly bytes: Uint8Array<ArrayBuffer>
  readonly sizes: Uint32Array<ArrayBuffer>
}

/** Runs a statement whose rows are arrays, with the record's bytes in column `bytesColumn`. The statement ends here. */
export const readSome = (
  statement: StatementSync,
  parameters: ReadonlyArray<SQLInputValue>,
  bytesColumn: number,
  bounds: ReadBounds
): SomeRows => {
  const rows: Array<ReadonlyArray<SQLOutputValue>> = []
  let total = 0
  try {
    for (const row of statement.iterate(...parameters) as Iterable<unknown> as Iterable<
      ReadonlyArray<SQLOutputValue>
    >) {
      const size = (row[bytesColumn] as Uint8Array).length
      if (rows.length > 0 && total + size > bounds.bytes) break
      rows.push(row)
      total += size
      if (rows.length >= bounds.records) break
    }
  } catch (cause) {
    if (rows.length === 0) throw cause // what stands before a damaged page is given; the next read begins at it
  }
  const bytes = new Uint8Array(total)
  const sizes = new Uint32Array(rows.length)
  let offset = 0
  for (let i = 0; i < rows.length; i++) {
    const record = rows[i]![bytesColumn] as Uint8Array
    bytes.set(record, offset)
    sizes[i] = record.length
    offset += record.length
  }
  return { rows, bytes, sizes }
}
