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
  /** Packets up to the memo's bound act like new ones (breaks spec §12.1). */
  readonly ignoreMemoBound?: boolean
  /** ACCEPT leaves although the memo does not hold the candidate (breaks spec §12.1). */
  readonly acceptBeforeMemo?: boolean
  /** The memo keeps what it first held of a run (breaks spec §12.1). */
  readonly staleMemo?: boolean
  /** A run that opened packets draws LOST for what it cannot open (breaks spec §12.2). */
  readonly lostForKnownRun?: boolean
  /** Answers go to any address without limit (breaks spec §10.9). */
  readonly answerWithoutLimit?: boolean
  /** RESPONSE validates the address that it comes from (breaks spec §13.2). */
  readonly responseFromAnywhere?: boolean
}
