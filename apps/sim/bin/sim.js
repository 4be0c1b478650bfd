#!/usr/bin/env node
// `npm run --silent sim -- …`: one run of two real endpoints over a virtual path, in virtual time.
// docs/measurements/README.md describes the result. What is compiled is kept for the next run, as a run is often shorter
// than its start.
import { enableCompileCache } from "node:module"
import { join } from "node:path"

enableCompileCache(join(import.meta.dirname, "../../../node_modules/.cache/sim"))
const { main } = await import("../src/commandLine.ts")
process.exitCode = main(process.argv.slice(2))
