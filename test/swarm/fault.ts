/**
 * Deliberate faults: each breaks one rule, and must be caught by the check that guards this rule. What another check
 * says of the same world does not count.
 */
export const caughtBy = {
  storedBeforeCommit: /^STORED \d+ .* was never on disk/,
  acceptGap: /^record \d+ to be stored is in no history/,
  markBeforeVerify: /^a packet that never came before was taken for a replay/,
  numberReuse: /^a nonce was used twice/,
  ignoreCredit: /^records came beyond the credit/
} as const

export type Fault = keyof typeof caughtBy
export const faults = Object.keys(caughtBy) as ReadonlyArray<Fault>
