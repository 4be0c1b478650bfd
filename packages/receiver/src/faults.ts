/**
 * Deliberate faults: each breaks one rule at the line that keeps it, so that a test of the whole can prove that it
 * would notice. Nothing but tests sets them.
 */
export interface ReceiverFaults {
  /** STORED reports records before the inbox confirmed them (breaks spec §2.2). */
  readonly storedBeforeCommit?: boolean
  /** A missing record is stored as an empty one as soon as a later record is complete (breaks spec §2.3). */
  readonly acceptGap?: boolean
  /**
   * A packet's number is marked before its tag verified (breaks spec §10.1); an unknown run has no window to mark it in
   * before that.
   */
  readonly markBeforeVerify?: boolean
}
