import type { TraceEvent } from "@pure-link/trace"
import { closeSync, openSync } from "node:fs"
import { writeWhole } from "./output.ts"
import { UsageError } from "./usageError.ts"

/** Events as JSON lines in a file, each with its node; 64-bit ids are hexadecimal. */
export class TraceFile {
  readonly #file: number
  #lines: Array<string> = []

  constructor(path: string) {
    try {
      this.#file = openSync(path, "w")
    } catch (error) {
      throw new UsageError(`--trace ${path} cannot be written: ${(error as Error).message}`)
    }
  }

  write(node: string, event: TraceEvent): void {
    this.#lines.push(JSON.stringify({ node, ...event }, hexadecimal))
    if (this.#lines.length >= 4_096) this.#flush()
  }

  close(): void {
    this.#flush()
    closeSync(this.#file)
  }

  #flush(): void {
    if (this.#lines.length > 0) writeWhole(this.#file, `${this.#lines.join("\n")}\n`, "the trace")
    this.#lines = []
  }
}

const hexadecimal = (_key: string, value: unknown): unknown =>
  typeof value === "bigint" ? value.toString(16).padStart(16, "0") : value
