import type { ReceiverFaults } from "@pure-link/receiver"
import type { SenderFaults } from "@pure-link/sender"

/**
 * Deliberate faults: each breaks one rule, and must be caught by the check that guards this rule. What another check
 * says of the same world does not count.
 */
export const caughtBy = {
  storedBeforeCommit: /^STORED \d+ .* was never on disk/,
  acceptGap: /^record \d+ to be stored is in no history/,
  markBeforeVerify: /^a packet that never came before was taken for a replay/,
  numberReuse: /^a nonce was used twice/,
  ignoreCredit: /^records came beyond the credit/,
  acceptAnyLost: /^a fresh run began on a LOST that echoes no packet/,
  recordsInEpochZero: /^records went under epoch 0 after an answer|^\d+ B of records went under epoch 0/,
  windowKeptOnMove: /^the window of the former path stays/,
  ignoreMemoBound: /^a packet below the memo's bound changed/,
  acceptBeforeMemo: /^ACCEPT left before the memo/,
  staleMemo: /^the memo holds .* of a run that/,
  lostForKnownRun: /^LOST for a run that opened a packet before/,
  answerWithoutLimit: /^\d+ B went to an address that is not proved/,
  responseFromAnywhere: /was validated, which answered no CHALLENGE/,
  undoTrueLoss: /^an episode was undone although packet \d+ of it was truly lost/
} as const

export type Fault = keyof typeof caughtBy
export const faults = Object.keys(caughtBy) as ReadonlyArray<Fault>

/** The faults of `numberReuse` and `undoTrueLoss` are in what the machines are given, the others in the machines. */
const ofSender: ReadonlyArray<string> = ["ignoreCredit", "acceptAnyLost", "recordsInEpochZero", "windowKeptOnMove"]
const ofNone: ReadonlyArray<string> = ["numberReuse", "undoTrueLoss"]

export const senderFaults = (fault: Fault | undefined): SenderFaults =>
  fault !== undefined && ofSender.includes(fault) ? { [fault]: true } : {}

export const receiverFaults = (fault: Fault | undefined): ReceiverFaults =>
  fault === undefined || ofSender.includes(fault) || ofNone.includes(fault) ? {} : { [fault]: true }
