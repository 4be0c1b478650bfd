/** Invariants: a false one is a bug on this side of the wire, never something that a peer sent. */
export function assert(condition: boolean, message: string): asserts condition {
  if (!condition) throw new Error(`wire: ${message}`)
}
