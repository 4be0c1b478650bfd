/**
 * Deliberate faults, for tests of the tests: a system test that stays green with one of them switched on does not test
 * what it says. Nothing else may ever set them.
 */
export interface DeliberateFaults {
  /** The receiver confirms records as STORED before the inbox committed them (breaks spec §2.2). */
  readonly storedBeforeCommit?: boolean
  /** The receiver stores record n + 2 after n when n + 1 is missing (breaks spec §2.3). */
  readonly acceptGap?: boolean
  /** The receiver marks a packet number as seen before its tag verified (breaks spec §10.1). */
  readonly markBeforeVerify?: boolean
  /** The sender uses packet numbers twice (breaks spec §3.5). */
  readonly numberReuse?: boolean
  /** The sender sends past the receiver's credit (breaks spec §9.3). */
  readonly ignoreCredit?: boolean
}
