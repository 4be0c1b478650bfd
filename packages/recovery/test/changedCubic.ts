import { strict as assert } from "node:assert"
import { readFileSync } from "node:fs"
import { stripTypeScriptTypes } from "node:module"
import type { CongestionController, ControllerOptions } from "../src/congestion/CongestionController.ts"

/**
 * CUBIC with faults put back on purpose: its source with some text replaced, loaded as a module of its own. A fault
 * whose text is no longer there fails the test that wants it.
 */

type Cubic = new (options: ControllerOptions) => CongestionController
/** Some text that occurs once, and what stands there instead. */
type Change = readonly [text: string, instead: string]

export const unchanged: ReadonlyArray<Change> = []

const folder = new URL("../src/congestion/", import.meta.url)

export const loadCubic = async (changes: ReadonlyArray<Change>): Promise<Cubic> => {
  let source = readFileSync(new URL("cubic.ts", folder), "utf8")
  for (const [text, instead] of changes) {
    assert.equal(source.split(text).length, 2, `cubic.ts has "${text}" once`)
    source = source.replace(text, instead)
  }
  const neighbour = new URL("CongestionController.ts", folder).href
  source = source.replaceAll('"./CongestionController.ts"', JSON.stringify(neighbour))
  const script = `data:text/javascript,${encodeURIComponent(stripTypeScriptTypes(source))}`
  return ((await import(/* @vite-ignore */ script)) as { readonly Cubic: Cubic }).Cubic
}
