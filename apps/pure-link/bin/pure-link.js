#!/usr/bin/env node
// Starts the command line on a Node that can run it, with compiled code kept from one start to the next.
import module from "node:module"

const needed = 24
if (Number(process.versions.node.split(".")[0]) < needed) {
  process.stderr.write(
    `pure-link: needs Node ${needed} or newer, and this is ${process.version}; ` +
      "in a checkout `npx pure-link` finds the one that `npm ci` installed\n"
  )
  process.exit(2)
}
module.enableCompileCache()
await import("../src/main.ts")
