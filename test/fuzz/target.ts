/**
 * What is fuzzed: a function of bytes that throws when a property does not hold. Every input is valid; what it means is
 * the target's matter.
 */
export interface Target {
  readonly name: string
  /** What is known to be interesting before any search: honest inputs. */
  seeds(): ReadonlyArray<Uint8Array>
  /** Throws for a finding. Must depend on nothing but the input. */
  run(input: Uint8Array): void
  /** Whether mutators may treat the input as a script of steps (script.ts). */
  readonly isScript: boolean
}
