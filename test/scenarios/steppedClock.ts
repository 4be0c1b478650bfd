/**
 * Loaded before a program with `node --import`: its wall clock is off by the milliseconds that the file named in
 * PURE_LINK_CLOCK_FILE holds, in every thread and from one call to the next.
 */
import { readFileSync } from "node:fs"

const file = process.env["PURE_LINK_CLOCK_FILE"]!
const Real = Date

const stepped = (): number => Real.now() + Number(readFileSync(file, "utf8"))

globalThis.Date = class extends Real {
  constructor(...args: ReadonlyArray<unknown>) {
    super(...((args.length === 0 ? [stepped()] : args) as [number]))
  }
  static override now(): number {
    return stepped()
  }
} as DateConstructor
