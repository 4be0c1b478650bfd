import { writeSync } from "node:fs"

/** A result or a trace could not be written: exit code 3, so that a script never takes a lost result for a good one. */
export class OutputError extends Error {
  override readonly name = "OutputError"
}

/** Writes all of a text to an open file. `what` is what the error is about. A reader that went away wanted no more. */
export const writeWhole = (file: number, text: string, what: string): void => {
  const bytes = new TextEncoder().encode(text)
  for (let written = 0; written < bytes.length;) {
    try {
      written += writeSync(file, bytes, written)
    } catch (error) {
      const { code, message } = error as NodeJS.ErrnoException
      if (code === "EPIPE") return
      if (code !== "EAGAIN") throw new OutputError(`${what} cannot be written: ${message}`)
    }
  }
}

const standardOutput = 1

/** Prints a text and a line's end. */
export const printed = (text: string): void => writeWhole(standardOutput, `${text}\n`, "the result")
