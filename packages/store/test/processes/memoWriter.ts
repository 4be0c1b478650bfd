import { flushCompileCache } from "node:module"
import { openMemoFile } from "../../src/memo/memoFile.ts"
import { openRawFile } from "../../src/memo/rawFile.ts"
import { memoStep, writtenMemoKey } from "./written.ts"

/**
 * A process that owns a memo and changes it as fast as it can until it is killed, from a step on. It says `open`, then the
 * number of a step after every hundredth.
 */
const [file = "", first = ""] = process.argv.slice(2)

const { table } = openMemoFile(openRawFile(file), { publicKey: writtenMemoKey, peers: 16, sideRuns: 1_024 })
flushCompileCache() // a killed process leaves none
console.log("open")
const write = (from: number): void => {
  for (let step = from; step < from + 100; step++) memoStep(table, step)
  console.log(from + 99)
  setImmediate(write, from + 100)
}
write(Number(first))
