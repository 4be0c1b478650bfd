/**
 * Finds the addon: the binary built at install, else the one of an optional platform package, else none, and then why.
 * PURE_LINK_NATIVE=off asks for none; any other value is the path of a binary (sanitizer and test builds).
 */
import { resolve } from "node:path"
import { existsSync, readFileSync } from "node:fs"
import { createRequire } from "node:module"
import { fileURLToPath } from "node:url"

const require = createRequire(import.meta.url)
const at = (path) => fileURLToPath(new URL(path, import.meta.url))
const interfaceVersion = 2

let found

export const load = () => (found ??= find())

const find = () => {
  const asked = process.env.PURE_LINK_NATIVE
  if (asked === "off") return { reason: "turned off by PURE_LINK_NATIVE=off" }
  if (asked) return attempt(resolve(asked))
  const own = at("build/pure_link.node")
  const built = existsSync(own) ? attempt(own) : { reason: whyNotBuilt() }
  if (built.addon) return built
  const packaged = prebuilt()
  return packaged ?? built
}

const attempt = (path) => {
  try {
    const addon = require(path)
    if (addon.interfaceVersion === interfaceVersion) return { addon, path }
    return { reason: `${path} is of another version; run \`npm run rebuild -w native\`` }
  } catch (error) {
    return { reason: `${path} does not load: ${String(error.message).split("\n")[0]}` }
  }
}

const whyNotBuilt = () => {
  try {
    return `not built: ${readFileSync(at("build/reason.txt"), "utf8").trim()}`
  } catch {
    return "not built: its install script did not run (--ignore-scripts?); `npm run rebuild -w native` builds it"
  }
}

/** The binary of the platform package, where npm installed one that is for this machine. */
const prebuilt = () => {
  try {
    return attempt(require.resolve(`@pure-link/native-${process.platform}-${process.arch}/pure_link.node`))
  } catch {
    return undefined
  }
}
