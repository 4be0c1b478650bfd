#!/usr/bin/env node
// `npm run --silent bench -- …`: measures two processes of the real link on real sockets; docs/bench.md says how.
import { enableCompileCache } from "node:module"
import { join } from "node:path"

enableCompileCache(join(import.meta.dirname, "../../../node_modules/.cache/bench"))
const { main } = await import("../src/main.ts")
process.exitCode = await main(process.argv.slice(2))
