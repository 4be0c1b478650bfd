/**
 * The rules of the house (docs/architecture.md) that a machine can check: the import law, no ambient time or randomness
 * in the rooms, citations that exist, files that stay readable, links that lead somewhere.
 */
import { assert, describe, it } from "@effect/vitest"
import { existsSync, readFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { documents, nativeSources, root, type Source, sources } from "./sources.ts"

/** What each room may import of the others; the order is the way data flows (docs/architecture.md). */
const importLaw: Record<string, ReadonlyArray<string>> = {
  wire: [],
  keys: ["wire"],
  trace: [],
  recovery: ["wire", "trace"],
  sender: ["wire", "keys", "recovery", "trace"],
  receiver: ["wire", "keys", "trace"],
  ports: ["wire", "keys"],
  link: ["wire", "keys", "trace", "recovery", "sender", "receiver", "ports"],
  native: [],
  udp: ["wire", "keys", "ports", "native"],
  store: ["wire", "keys", "ports"],
  "virtual-net": ["wire", "ports"],
  sim: ["wire", "keys", "trace", "recovery", "ports", "link", "store", "virtual-net"],
  bench: ["wire", "keys", "recovery", "ports", "link", "udp", "store", "native"],
  "pure-link": ["wire", "keys", "recovery", "ports", "link", "udp", "store"]
}

/** Node's own modules, room by room: the machines reach nothing of the system. */
const systemLaw: Record<string, RegExp> = {
  wire: /^$/,
  keys: /^node:(crypto|assert\/strict)$/,
  trace: /^$/,
  recovery: /^node:assert\/strict$/,
  sender: /^node:(buffer|assert\/strict)$/,
  receiver: /^node:(buffer|assert\/strict)$/,
  ports: /^$/,
  link: /^node:(crypto|assert\/strict)$/,
  "virtual-net": /^node:assert\/strict$/
}

const roomImports = (source: Source) =>
  source.imports.filter((name) => name.startsWith("@pure-link/")).map((name) => name.split("/")[1]!)

/** Relative imports that leave their package: every room is entered by its name, or the law would not see it. */
const strayImports = (source: Source) =>
  source.imports.filter((name) => {
    const home = source.path.split("/").slice(0, 2).join("/")
    return name.startsWith(".") && !join(dirname(source.path), name).startsWith(`${home}/`)
  })

const production = sources.filter((source) => !source.isTest && source.room in importLaw)

describe("tidy", () => {
  it("finds the rooms it is to judge", () => {
    for (const room of Object.keys(importLaw))
      assert.isTrue(
        production.some((source) => source.room === room),
        room
      )
  })

  it("imports go one way, by the import law", () => {
    const broken = production.flatMap((source) =>
      roomImports(source)
        .filter((room) => room !== source.room && !importLaw[source.room]!.includes(room))
        .map((room) => `${source.path} imports ${room}`)
    )
    assert.deepStrictEqual(broken, [])
  })

  it("no import leaves its package by a relative path", () => {
    const broken = sources
      .filter((source) => /^(packages|apps)\//.test(source.path))
      .flatMap((source) => strayImports(source).map((name) => `${source.path} imports ${name}`))
    assert.deepStrictEqual(broken, [])
  })

  it("machines reach nothing of the system", () => {
    const broken = production.flatMap((source) =>
      source.imports
        .filter((name) => name.startsWith("node:") && systemLaw[source.room] && !systemLaw[source.room]!.test(name))
        .map((name) => `${source.path} imports ${name}`)
    )
    assert.deepStrictEqual(broken, [])
  })

  it("native code knows no word of the protocol", () => {
    const words = /\b(records?|outbox|inbox|epochs?|acknowledg\w*|congestion|runPrefix|replyRun)\b/i
    const broken = nativeSources.flatMap(({ path, text }) =>
      text.split("\n").flatMap((line, index) => (words.test(line) ? [`${path}:${index + 1}: ${line.trim()}`] : []))
    )
    assert.isAbove(nativeSources.length, 30)
    assert.deepStrictEqual(broken, [])
  })

  it("every package declares the packages that its sources import", () => {
    const broken = sources
      .filter((source) => /^(packages|apps)\//.test(source.path))
      .flatMap((source) => {
        const folder = source.path.split("/").slice(0, 2).join("/")
        const manifest = JSON.parse(readFileSync(join(root, folder, "package.json"), "utf8")) as {
          name: string
          dependencies?: Record<string, string>
          devDependencies?: Record<string, string>
        }
        const declared = { ...manifest.dependencies, ...manifest.devDependencies }
        const tools = new Set(["@effect/vitest", "vitest"])
        return source.imports
          .filter((name) => !name.startsWith(".") && !name.startsWith("node:"))
          .map((name) => (name.startsWith("@") ? name.split("/").slice(0, 2).join("/") : name.split("/")[0]!))
          .filter((name) => name !== manifest.name && !(name in declared) && !(source.isTest && tools.has(name)))
          .map((name) => `${source.path} imports ${name}, which ${folder}/package.json does not declare`)
      })
    assert.deepStrictEqual([...new Set(broken)], [])
  })

  it("time and chance come in through Clock and Entropy, never from the air", () => {
    const ambient =
      /\bDate\.now\b|\bnew Date\(\)|\bperformance\.now\b|\bset(Timeout|Interval|Immediate)\b|\bMath\.random\b|\bprocess\.hrtime\b/
    const broken = production
      .filter((source) => source.path.startsWith("packages/"))
      .flatMap((source) =>
        source.text
          .split("\n")
          .flatMap((line, index) =>
            !(source.room === "udp" && /setImmediate/.test(line)) && ambient.test(line.replace(/\/\/.*|^\s*\*.*/, ""))
              ? [`${source.path}:${index + 1}: ${line.trim()}`]
              : []
          )
      )
    assert.deepStrictEqual(broken, [])
  })

  it("every clause that is cited stands in the specification", () => {
    const clauses = new Set<string>()
    for (const document of documents) {
      if (!document.path.startsWith("docs/spec/")) continue
      for (const match of document.text.matchAll(/\*\*§(\d+\.\d+)/g)) clauses.add(match[1]!)
      for (const match of document.text.matchAll(/^# .*$/gm)) {
        for (const section of match[0].matchAll(/§(\d+)/g)) clauses.add(section[1]!)
      }
    }
    const broken = [...sources, ...documents].flatMap((source) =>
      [...source.text.matchAll(/(?<!RFC \d{4} |RFC \d{4}, )(?:spec )?§(\d+(?:\.\d+)?)/g)]
        .filter((match) => match[0].startsWith("spec") || source.path.startsWith("docs/spec"))
        .filter((match) => !clauses.has(match[1]!))
        .map((match) => `${source.path} cites ${match[0]}`)
    )
    assert.deepStrictEqual(
      broken.filter((line) => !/RFC/.test(line)),
      []
    )
  })

  it("every clause of sections 3 to 11 is cited by code", () => {
    const spec = documents.filter((document) => document.path.startsWith("docs/spec/"))
    const clauses = spec
      .flatMap((document) => [...document.text.matchAll(/\*\*§(\d+\.\d+)/g)].map((match) => match[1]!))
      .filter((clause) => Number(clause.split(".")[0]) >= 3 && Number(clause.split(".")[0]) <= 11)
    const code = sources.map((source) => source.text).join("\n")
    const silent = clauses.filter((clause) => !new RegExp(`§${clause.replace(".", "\\.")}(?!\\d)`).test(code))
    // Clauses that belong to a later step of the project, or say what no single line does.
    const exempt = new Set(["3.9", "7.6", "3.10"])
    assert.deepStrictEqual(
      silent.filter((clause) => !exempt.has(clause)),
      []
    )
  })

  it("files stay readable", () => {
    const long = [...sources, ...nativeSources]
      .filter((source) => source.text.split("\n").length > 500)
      .map((source) => `${source.path}: ${source.text.split("\n").length} lines`)
    const wide = production.flatMap((source) =>
      source.text
        .split("\n")
        .flatMap((line, index) => (line.length > 130 ? [`${source.path}:${index + 1}: ${line.length} columns`] : []))
    )
    assert.deepStrictEqual([...long, ...wide], [])
  })

  it("files say what they are before they do it", () => {
    const silent = production
      .filter((source) => !source.path.endsWith("index.ts"))
      .filter((source) => !/\/\*\*/.test(source.text.split(/\n(?:export|const|class|interface|type|let) /)[0]!))
      .map((source) => source.path)
    assert.deepStrictEqual(silent, [])
  })

  it("no room is called utils", () => {
    const vague = sources.filter((source) => /(^|\/)(utils?|helpers?|misc|common|manager)(\.|\/)/i.test(source.path))
    assert.deepStrictEqual(
      vague.map((source) => source.path),
      []
    )
  })

  it("no test is switched off", () => {
    const off = sources
      .filter((source) => source.path !== "test/tidy/tidy.test.ts")
      .filter((source) => /\b(it|describe|test)\.(skip|only|todo)\b|\bxit\(|\bxdescribe\(/.test(source.text))
    assert.deepStrictEqual(
      off.map((source) => source.path),
      []
    )
  })

  it("files that docs/architecture.md names exist", () => {
    const architecture = documents.find(({ path }) => path === "docs/architecture.md")!
    const named = [...architecture.text.matchAll(/`((?:[a-z-]+\/src|apps|test)\/[\w/.-]+)`/g)].map((match) => match[1]!)
    const missing = named.filter((path) => !existsSync(join(root, path)) && !existsSync(join(root, "packages", path)))
    assert.isAbove(named.length, 30)
    assert.deepStrictEqual(missing, [])
  })

  it("links in the documents lead somewhere", () => {
    const broken = documents.flatMap((document) =>
      [...document.text.matchAll(/\]\((?!https?:|#)([^)#]+)(#[^)]*)?\)/g)]
        .filter((match) => !existsSync(join(root, dirname(document.path), match[1]!)))
        .map((match) => `${document.path} links to ${match[1]}`)
    )
    assert.deepStrictEqual(broken, [])
  })
})
