/**
 * Builds the addon with one call of the C++ compiler: no node-gyp, no Python, no network. As the room's install script it
 * always exits with 0: where it cannot build, the reason stands in one line in build/reason.txt, which the loader tells,
 * and the link runs on node:dgram and node:crypto. `--force` builds anew, `--prebuild` builds for platforms/, `--faults`
 * makes a binary whose system calls tests can fail, and `--sanitize` the same with ASan and UBSan; asked for like that, a
 * failure is a failure.
 */
import { spawn } from "node:child_process"
import { createHash } from "node:crypto"
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs"
import { createRequire } from "node:module"
import { availableParallelism, homedir } from "node:os"
import { basename, delimiter, dirname, join } from "node:path"
import { fileURLToPath } from "node:url"

const here = dirname(fileURLToPath(import.meta.url))
const buildDirectory = join(here, "build")
const binaryName = "pure_link.node"

const common = ["-std=c++17", "-fPIC", "-fvisibility=hidden", "-Wall", "-Wextra", "-Wno-cast-function-type"]
const defines = [
  "-DNAPI_VERSION=9",
  "-DNAPI_DISABLE_CPP_EXCEPTIONS",
  "-DNODE_ADDON_API_DISABLE_DEPRECATED",
  // A worker that is terminated inside a call cannot take an exception: without this the whole process would abort.
  "-DNODE_API_SWALLOW_UNTHROWABLE_EXCEPTIONS"
]
const faults = "-DPURE_LINK_FAULTS"
const release = ["-O2", "-fno-exceptions", "-fno-rtti", "-Wl,-s"]

/** npm runs this; else a developer does, who wants the compiler's words, and the last good binary to stay. */
const isInstall = process.env.npm_lifecycle_event === "install"

/** The ways to build: where the binary goes, and what the compiler is told besides. */
const variants = {
  install: { directory: buildDirectory, flags: release },
  prebuild: { directory: join(here, "platforms", `${process.platform}-${process.arch}`), flags: release },
  faults: { directory: join(buildDirectory, "faults"), flags: [...release, faults] },
  sanitize: {
    directory: join(buildDirectory, "sanitize"),
    flags: ["-O1", "-g", "-fno-omit-frame-pointer", "-fsanitize=address,undefined", "-fno-sanitize-recover=all", faults]
  }
}

/** Why there is no binary, in one line for a person. */
class Reason extends Error {}

/** Node's C headers: npm's nodedir, the node-linux-* package of this checkout, those beside this node, the system's. */
const nodeHeaders = () => {
  const candidates = [
    process.env.npm_config_nodedir && join(process.env.npm_config_nodedir, "include", "node"),
    packagedHeaders(),
    join(dirname(process.execPath), "..", "include", "node"),
    join(homedir(), ".cache", "node-gyp", process.versions.node, "include", "node"),
    "/usr/local/include/node",
    "/usr/include/node"
  ]
  const found = candidates.find((directory) => directory && existsSync(join(directory, "node_api.h")))
  if (!found) throw new Reason("no C headers of Node (node_api.h) found; set npm's nodedir")
  return found
}

const packagedHeaders = () => {
  try {
    const manifest = createRequire(import.meta.url).resolve(`node-${process.platform}-${process.arch}/package.json`)
    return join(dirname(manifest), "include", "node")
  } catch {
    return undefined
  }
}

const addonApi = () => {
  try {
    return dirname(createRequire(import.meta.url).resolve("node-addon-api/package.json"))
  } catch {
    throw new Reason("the package node-addon-api is not installed")
  }
}

const sources = () =>
  readdirSync(join(here, "src"))
    .filter((name) => /\.(cc|h)$/.test(name))
    .sort()
    .map((name) => join(here, "src", name))

/** A name for everything that goes into a binary, or into the object of one source. */
const fingerprint = (flags, files) => {
  const hash = createHash("sha256")
  for (const file of [...files, fileURLToPath(import.meta.url)]) hash.update(file).update(readFileSync(file))
  return hash.update(JSON.stringify([flags, process.platform, process.arch, process.env.CXX])).digest("hex")
}

const compiler = () => {
  if (process.platform !== "linux") throw new Reason(`the native path is for Linux; this is ${process.platform}`)
  if (process.env.CXX) return process.env.CXX.split(" ")
  const directories = (process.env.PATH ?? "").split(delimiter)
  const found = ["c++", "g++", "clang++"].find((name) => directories.some((path) => existsSync(join(path, name))))
  if (!found)
    throw new Reason("no C++ compiler found (c++, g++ or clang++); install one and run `npm run rebuild -w native`")
  return [found]
}

const firstError = (stderr) => {
  const lines = stderr.split("\n").filter((line) => line.trim() !== "")
  const line = lines.find((text) => /error/i.test(text)) ?? lines[0]
  return line === undefined ? "" : `: ${line}`
}

const run = async ([command, ...args]) => {
  const child = spawn(command, args, { stdio: ["ignore", "ignore", "pipe"] })
  setTimeout(() => child.kill(), 300_000).unref()
  let stderr = ""
  child.stderr.setEncoding("utf8").on("data", (text) => (stderr += text))
  const status = await new Promise((resolve) => {
    child.on("error", (error) => resolve(error.message))
    child.on("close", resolve)
  })
  if (typeof status === "string") throw new Reason(`the compiler ${command} did not run: ${status}`)
  if (!isInstall) process.stderr.write(stderr)
  if (status !== 0) throw new Reason(`the compiler ${command} failed (exit ${status})${firstError(stderr)}`)
}

/** Compiles what changed, as many sources at once as there are processors, and gives the objects. */
const compile = async (command, flags, directory) => {
  const inputs = sources().filter((file) => file.endsWith(".cc"))
  const headers = sources().filter((file) => file.endsWith(".h"))
  mkdirSync(directory, { recursive: true })
  const objects = inputs.map((file) =>
    join(directory, `${basename(file, ".cc")}.${fingerprint(flags, [file, ...headers]).slice(0, 16)}.o`)
  )
  const waiting = inputs.map((_, i) => i).filter((i) => !existsSync(objects[i]))
  const work = async () => {
    for (let i = waiting.pop(); i !== undefined; i = waiting.pop()) {
      const scratch = `${objects[i]}.${process.pid}`
      await run([...command, ...flags, "-c", inputs[i], "-o", scratch])
      renameSync(scratch, objects[i])
    }
  }
  await Promise.all(Array.from({ length: availableParallelism() }, work))
  for (const name of readdirSync(directory)) {
    if (name.endsWith(".o") && !objects.includes(join(directory, name))) rmSync(join(directory, name), { force: true })
  }
  return objects
}

const build = async (name, force) => {
  const { directory, flags } = variants[name]
  const binary = join(directory, binaryName)
  const stamp = join(buildDirectory, `${name}.sha256`)
  const objectsDirectory = join(buildDirectory, "objects", name)
  const wanted = fingerprint(flags, sources())
  if (force) rmSync(objectsDirectory, { recursive: true, force: true })
  else if (existsSync(binary) && existsSync(stamp) && readFileSync(stamp, "utf8") === wanted) return
  rmSync(stamp, { force: true })
  const command = compiler()
  const includes = [nodeHeaders(), addonApi()].flatMap((path) => ["-isystem", path])
  const objects = await compile(command, [...common, ...defines, ...flags, ...includes], objectsDirectory)
  mkdirSync(directory, { recursive: true })
  const scratch = `${binary}.${process.pid}`
  await run([...command, "-shared", ...flags, ...objects, "-o", scratch])
  renameSync(scratch, binary) // at once: a running process keeps the file that it has mapped
  writeFileSync(stamp, wanted)
  console.log(`@pure-link/native: built ${binary}`)
}

/** Where nothing can be written there is no reason to be read either, and an install goes on all the same. */
const noteReason = (reason) => {
  try {
    if (isInstall) rmSync(join(buildDirectory, binaryName), { force: true }) // of older sources
    mkdirSync(buildDirectory, { recursive: true })
    writeFileSync(reasonFile, `${reason}\n`)
  } catch (error) {
    console.warn(`@pure-link/native: ${buildDirectory} cannot be written: ${error.message}`)
  }
}

const asked = process.argv.slice(2)
const name = ["prebuild", "faults", "sanitize"].find((variant) => asked.includes(`--${variant}`)) ?? "install"
const reasonFile = join(buildDirectory, "reason.txt")
try {
  await build(name, asked.includes("--force"))
  if (name === "install") rmSync(reasonFile, { force: true })
} catch (error) {
  const reason = error instanceof Reason ? error.message : String(error)
  console.warn(`@pure-link/native: not built: ${reason}. The link runs on node:dgram and node:crypto.`)
  if (asked.length > 0) process.exitCode = 1
  if (name === "install") noteReason(reason)
}
