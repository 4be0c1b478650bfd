/** A command line that cannot be taken: one line for a person, exit code 2 for a script. */
export class UsageError extends Error {
  override readonly name = "UsageError"
}
