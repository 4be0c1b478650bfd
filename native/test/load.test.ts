import { assert, describe, it } from "@effect/vitest"
import { load } from "@pure-link/native"
import { execFileSync, spawnSync } from "node:child_process"
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync
} from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"

/** Whatever is missing, installing succeeds and loading gives an addon or one line that says why not. */

const room = join(import.meta.dirname, "..")

/** What `load` gives in a process of its own. */
const loadIn = (directory: string, environment: Record<string, string>): string =>
  execFileSync(
    process.execPath,
    [
      "--input-type=module",
      "-e",
      `const { load } = await import(process.argv[1]); const { addon, path, reason } = load()
      console.log(addon === undefined ? reason : "loaded " + path)`,
      join(directory, "index.js")
    ],
    { encoding: "utf8", env: { ...process.env, PURE_LINK_NATIVE: "", ...environment } }
  ).trim()

/** A copy of the room without its binary. */
const inCopy = (body: (directory: string) => void): void => {
  const root = mkdtempSync(join(tmpdir(), "pure-link-native-"))
  const directory = join(root, "native")
  try {
    const isSource = (path: string) => !/\/(build|test|node_modules)$/.test(path) && !path.endsWith(".node")
    cpSync(room, directory, { recursive: true, filter: isSource })
    symlinkSync(join(room, "..", "node_modules"), join(root, "node_modules"))
    body(directory)
  } finally {
    rmSync(root, { recursive: true })
  }
}

const install = (directory: string, environment: Record<string, string>) =>
  spawnSync(process.execPath, [join(directory, "build.mjs")], {
    encoding: "utf8",
    env: { ...process.env, npm_lifecycle_event: "install", ...environment }
  })

describe("loading", () => {
  it("gives the same answer every time: an addon, or one line that says why there is none", () => {
    const loaded = load()
    assert.strictEqual(load(), loaded)
    if (loaded.addon === undefined) assert.match(loaded.reason, /^.+$/)
    else assert.isTrue(existsSync(loaded.path))
  })

  it("can be turned off, or pointed at another binary", () => {
    assert.match(loadIn(room, { PURE_LINK_NATIVE: "off" }), /^turned off by PURE_LINK_NATIVE=off$/)
    assert.match(
      loadIn(room, { PURE_LINK_NATIVE: "/nowhere/pure_link.node" }),
      /^\/nowhere\/pure_link.node does not load/
    )
    const notOurs = join(room, "package.json")
    assert.match(loadIn(room, { PURE_LINK_NATIVE: notOurs }), /is of another version; run `npm run rebuild -w native`$/)
  })

  it("says that the install script did not run", () =>
    inCopy((directory) => assert.match(loadIn(directory, {}), /^not built: its install script did not run/)))

  it("takes a platform package when there is no build", () =>
    inCopy((directory) => {
      const platformPackage = join(
        directory,
        "node_modules",
        "@pure-link",
        `native-${process.platform}-${process.arch}`
      )
      mkdirSync(platformPackage, { recursive: true })
      writeFileSync(join(platformPackage, "package.json"), "{}")
      writeFileSync(join(platformPackage, "pure_link.node"), "not an ELF file")
      assert.match(loadIn(directory, {}), new RegExp(`^${platformPackage}/pure_link.node does not load: `))
    }))
})

describe("installing", () => {
  const broken = [
    { what: "a compiler that fails", environment: { CXX: "/bin/false" }, reason: /the compiler \/bin\/false failed/ },
    {
      what: "no such compiler",
      environment: { CXX: "/nowhere/c++" },
      reason: /the compiler \/nowhere\/c\+\+ did not run/
    },
    { what: "no compiler at all", environment: { CXX: "", PATH: "/nowhere" }, reason: /no C\+\+ compiler found/ }
  ]
  for (const { environment, reason, what } of broken) {
    it(`with ${what} succeeds, and leaves the reason in one line`, () =>
      inCopy((directory) => {
        const { status, stderr } = install(directory, environment)
        assert.strictEqual(status, 0)
        assert.match(stderr, reason)
        assert.strictEqual(stderr.trim().split("\n").length, 1)
        const loaded = loadIn(directory, {})
        assert.match(loaded, /^not built: .+$/)
        assert.match(loaded, reason)
        assert.match(readFileSync(join(directory, "build", "reason.txt"), "utf8"), reason)
      }))
  }

  it("leaves no binary of older sources when a build fails", () =>
    inCopy((directory) => {
      mkdirSync(join(directory, "build"))
      writeFileSync(join(directory, "build", "pure_link.node"), "old")
      assert.strictEqual(install(directory, { CXX: "/bin/false" }).status, 0)
      assert.isFalse(existsSync(join(directory, "build", "pure_link.node")))
    }))
})

/** Of the version that index.js asks for, and nothing else. */
const smallAddon = `
#include <node_api.h>
NAPI_MODULE_INIT() {
  napi_value version;
  napi_create_int32(env, ${load().addon?.interfaceVersion}, &version);
  napi_set_named_property(env, exports, "interfaceVersion", version);
  return exports;
}
`

describe.runIf(process.env.CI === "true" && process.env.PURE_LINK_NATIVE === undefined)("in CI", () => {
  it("the addon is there with all its parts, so that no test of it is left out", () => {
    const { addon, reason } = load()
    assert.isDefined(addon, reason)
    assert.isDefined(addon!.aead)
    assert.isDefined(addon!.derivation)
    assert.isDefined(addon!.Socket)
  })
})

describe.skipIf(load().addon === undefined)("building", () => {
  it("makes a binary that loads, once for the same sources", () =>
    inCopy((directory) => {
      const source = join(directory, "src")
      for (const name of readdirSync(source)) rmSync(join(source, name))
      writeFileSync(join(source, "addon.cc"), smallAddon)
      const binary = join(directory, "build", "pure_link.node")
      assert.include(install(directory, {}).stdout, binary)
      assert.strictEqual(loadIn(directory, {}), `loaded ${binary}`)
      assert.strictEqual(install(directory, {}).stdout, "")
      writeFileSync(join(source, "addon.cc"), "#error no\n")
      const { status, stderr } = install(directory, {})
      assert.strictEqual(status, 0)
      assert.match(stderr, /#error no/)
      assert.match(loadIn(directory, {}), /^not built: /)
    }))
})

describe.skipIf(load().addon === undefined)("a node that does not export its OpenSSL", () => {
  const loadWithout = (hidden: string): string => {
    execFileSync(process.execPath, [join(room, "build.mjs"), "--faults"], { stdio: "ignore" })
    const program = `
      import { load } from "@pure-link/native"
      const { addon } = load()
      console.log(typeof addon.aead, addon.aeadReason, typeof addon.derivation, typeof addon.Socket)`
    const output = execFileSync(process.execPath, ["--input-type=module", "-e", program], {
      cwd: import.meta.dirname,
      encoding: "utf8",
      env: {
        ...process.env,
        PURE_LINK_NATIVE: join(room, "build", "faults", "pure_link.node"),
        PURE_LINK_HIDDEN_SYMBOL: hidden
      }
    })
    return output.trim()
  }

  it("has sockets, and the name that is missing as the reason for no AEAD", () => {
    assert.strictEqual(loadWithout("EVP_DecryptUpdate"), "undefined EVP_DecryptUpdate object function")
  }, 120_000)

  it("encrypts natively all the same when only SHA-256 is missing", () => {
    assert.strictEqual(loadWithout("EVP_DigestUpdate"), "object undefined undefined function")
  }, 120_000)
})
