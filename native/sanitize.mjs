/**
 * Builds the addon with ASan and UBSan, and runs the tests that reach it (rooms native and udp) on that binary. Leaks are
 * not looked for, as V8 keeps memory to its end; the tests count keys and sockets instead. Other arguments go to vitest.
 */
import { spawnSync } from "node:child_process"
import { existsSync } from "node:fs"
import { dirname, join } from "node:path"
import { fileURLToPath } from "node:url"

const here = dirname(fileURLToPath(import.meta.url))
const run = (command, args, env = {}) =>
  spawnSync(command, args, { cwd: join(here, ".."), stdio: "inherit", env: { ...process.env, ...env } }).status ?? 1

const runtime = spawnSync(process.env.CXX ?? "c++", ["-print-file-name=libasan.so"], { encoding: "utf8" })
const library = runtime.stdout?.trim() ?? ""
if (!existsSync(library)) {
  console.error("the compiler has no libasan.so; install it (it comes with g++, or as libasan)")
  process.exit(1)
}
if (run(process.execPath, [join(here, "build.mjs"), "--sanitize"]) !== 0) process.exit(1)
const vitest = join(here, "..", "node_modules", "vitest", "vitest.mjs")
process.exit(
  run(
    process.execPath,
    [vitest, "run", "--project", "native", "--project", "udp", "--testTimeout", "120000", ...process.argv.slice(2)],
    {
      LD_PRELOAD: library,
      ASAN_OPTIONS: "detect_leaks=0:abort_on_error=1:detect_stack_use_after_return=0",
      UBSAN_OPTIONS: "halt_on_error=1:print_stacktrace=1",
      PURE_LINK_NATIVE: join(here, "build", "sanitize", "pure_link.node")
    }
  )
)
