/**
 * What a store has written since it was opened. Pass an object to a layer to watch it; plain numbers, for metrics and
 * tests.
 */
export interface StoreCounters {
  /** Transactions committed, each with one fsync; those that open the file are among them. */
  transactions: number
  /** Records written. */
  records: number
  /** Their bytes. */
  bytes: number
}

export const storeCounters = (): StoreCounters => ({ transactions: 0, records: 0, bytes: 0 })
