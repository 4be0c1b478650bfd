/**
 * What the command line reads: keys, key files, peers, and records out of sources.
 */
import { formatPublicKey, keyPair, systemEntropy } from "@pure-link/keys"
import { type LinkEvent, refusalRemedy } from "@pure-link/link"
import { longestRecord, type RefusalReason } from "@pure-link/wire"
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Failure } from "./failure.ts"
import { numberedNames, writeKeyBatch } from "./keyBatch.ts"
import { readKeyFile, readPublicKey, writeKeyFile } from "./keyFile.ts"
import { suite } from "./options.ts"
import { allPeers, type AllowedPeer, changeOf, mergePeers, parseAllow, readPeersFile } from "./peers.ts"
import { openSource } from "./recordFile.ts"
import { type Format, readRecords, type RecordChunk } from "./recordSource.ts"
import { toJson, visible } from "./output.ts"
import { noticeOf } from "./notices.ts"
import { describeRecord, recordAsJson } from "./recordText.ts"
import { refusalOf } from "./refusal.ts"

const inFolder = async (body: (at: (name: string) => string) => Promise<void>) => {
  const folder = mkdtempSync(join(tmpdir(), "pure-link-cli-"))
  try {
    await body((name) => join(folder, name))
  } finally {
    rmSync(folder, { recursive: true })
  }
}

const failureOf = <A>(effect: Effect.Effect<A, Failure>): Failure => Effect.runSync(Effect.flip(effect))

async function* pieces(...texts: ReadonlyArray<string>) {
  for (const text of texts) yield Buffer.from(text)
}

const collect = async (source: AsyncIterable<Uint8Array>, format: Format = "lines", offset = 0) => {
  const records: Array<string> = []
  let last: RecordChunk | undefined
  for await (const chunk of readRecords(source, { format, name: "test", offset })) {
    let at = 0
    for (const size of chunk.sizes) records.push(Buffer.from(chunk.bytes.subarray(at, (at += size))).toString())
    assert.strictEqual(at, chunk.bytes.length)
    last = chunk
  }
  return { records, end: last?.end }
}

const rejection = async (body: Promise<unknown>): Promise<string> => {
  try {
    await body
  } catch (error) {
    assert.instanceOf(error, Failure)
    return error.text
  }
  throw new Error("nothing was refused")
}

describe("keys", () => {
  it("a key file is private, keeps its key, and is never overwritten", () =>
    inFolder(async (at) => {
      const keys = keyPair(suite, systemEntropy)
      Effect.runSync(writeKeyFile(at("k"), keys))
      assert.strictEqual(statSync(at("k")).mode & 0o777, 0o600)
      assert.deepStrictEqual(Effect.runSync(readKeyFile(suite, at("k"))).publicKey, keys.publicKey)
      const before = readFileSync(at("k"), "utf8")
      assert.match(failureOf(writeKeyFile(at("k"), keyPair(suite, systemEntropy))).text, /exists and is kept/)
      assert.strictEqual(readFileSync(at("k"), "utf8"), before)
    }))

  it("a public key reads back as it is printed; anything else names the remedy", () => {
    const { publicKey } = keyPair(suite, systemEntropy)
    assert.deepStrictEqual(Effect.runSync(readPublicKey(formatPublicKey(publicKey))), publicKey)
    for (const wrong of ["", "abc", formatPublicKey(publicKey).slice(2), formatPublicKey(publicKey) + "A"]) {
      assert.match(failureOf(readPublicKey(wrong)).text, /keygen/, wrong)
    }
  })

  it("a missing or foreign key file names the remedy", () =>
    inFolder(async (at) => {
      assert.match(failureOf(readKeyFile(suite, at("none"))).text, /keygen/)
      writeFileSync(at("foreign"), "hello\nworld\n")
      assert.match(failureOf(readKeyFile(suite, at("foreign"))).text, /not a key file/)
    }))

  it("many keys get numbered files, and none is written where one of them exists", () =>
    inFolder(async (at) => {
      assert.deepStrictEqual(numberedNames("till", 2), ["till-0001", "till-0002"])
      assert.strictEqual(numberedNames("till", 10_000)[0], "till-00001")
      const makeKeys = () => keyPair(suite, systemEntropy)
      const made = await Effect.runPromise(writeKeyBatch(at("new"), numberedNames("a", 3), makeKeys))
      for (const { file, keys, name } of made) {
        assert.strictEqual(file, join(at("new"), `${name}.key`))
        assert.strictEqual(statSync(file).mode & 0o777, 0o600)
        assert.deepStrictEqual(Effect.runSync(readKeyFile(suite, file)).publicKey, keys.publicKey)
      }
      const before = readFileSync(made[2]!.file, "utf8")
      const again = Effect.flip(writeKeyBatch(at("new"), ["a-0000", "a-0003"], makeKeys))
      assert.match((await Effect.runPromise(again)).text, /a-0003\.key exists and is kept, and nothing was written/)
      assert.strictEqual(readFileSync(made[2]!.file, "utf8"), before)
      assert.deepStrictEqual(readdirSync(at("new")), ["a-0001.key", "a-0002.key", "a-0003.key"])
      writeFileSync(at("file"), "")
      const blocked = Effect.flip(writeKeyBatch(at("file"), ["a"], makeKeys))
      assert.match((await Effect.runPromise(blocked)).text, /--directory/)
    }))
})

describe("peers", () => {
  const key = formatPublicKey(keyPair(suite, systemEntropy).publicKey)

  it("an --allow flag names a key and its sources", () => {
    assert.strictEqual(Effect.runSync(parseAllow(key)).sources, "any")
    assert.deepStrictEqual(Effect.runSync(parseAllow(`${key}=a,b`)).sources, ["a", "b"])
  })

  it("what several flags allow a key adds up", () => {
    const [first, second] = [`${key}=a`, `${key}=b`].map((text) => Effect.runSync(parseAllow(text)))
    assert.deepStrictEqual(
      mergePeers([first!, second!]).map(({ sources }) => sources),
      [["a", "b"]]
    )
    assert.match(failureOf(parseAllow(`${key}=`)).text, /names no source/)
  })

  it("a peers file is read line by line, and an error names its line", () =>
    inFolder(async (at) => {
      writeFileSync(at("peers"), `# tills\n${key} till-1,till-2 # front\n\n${key} *\n`)
      assert.deepStrictEqual(
        Effect.runSync(readPeersFile(at("peers"))).map(({ sources }) => sources),
        [["till-1", "till-2"], "any"]
      )
      writeFileSync(at("peers"), `${key} *\n${key}\n`)
      assert.match(failureOf(readPeersFile(at("peers"))).text, /line 2/)
      writeFileSync(at("peers"), `${key} *\n\n${key} ${"x".repeat(65)}\n`)
      assert.match(failureOf(readPeersFile(at("peers"))).text, /line 3 .*longer than 64 B/)
    }))

  it("a list that allows nobody is refused, with where to write whom", () =>
    inFolder(async (at) => {
      assert.match(failureOf(allPeers([], undefined)).text, /--allow/)
      writeFileSync(at("peers"), "# nobody\n")
      assert.match(failureOf(allPeers([], at("peers"))).text, /peers names no key/)
      const named = Effect.runSync(parseAllow(key))
      assert.deepStrictEqual(Effect.runSync(allPeers([named], at("peers"))), [named])
    }))

  it("what a list read again changes is who came, who went, and who may send as others", () => {
    const [a, b, c, d] = Array.from({ length: 4 }, () => keyPair(suite, systemEntropy).publicKey)
    const peer = (publicKey: Uint8Array, ...sources: ReadonlyArray<string>): AllowedPeer => ({ publicKey, sources })
    const former = [peer(a!, "x", "y"), peer(b!, "x"), peer(c!, "x")]
    const next = [peer(a!, "y", "x"), { publicKey: b!, sources: "any" as const }, peer(d!, "x")]
    assert.deepStrictEqual(changeOf(former, next), { added: [next[2]!], changed: [next[1]!], removed: [former[2]!] })
    assert.deepStrictEqual(changeOf(next, next), { added: [], changed: [], removed: [] })
  })
})

describe("records of a source", () => {
  it("lines lose their newline and nothing else, wherever the pieces are cut", async () => {
    const text = "one\n\ntwo\r\n  three\nlast"
    for (let cut = 0; cut <= text.length; cut++) {
      const { end, records } = await collect(pieces(text.slice(0, cut), text.slice(cut)))
      assert.deepStrictEqual(records, ["one", "", "two\r", "  three", "last"])
      assert.strictEqual(end, text.length)
    }
  })

  it("every chunk ends where its last record ends, so that reading from there gives the rest", async () => {
    const text = Array.from({ length: 9_000 }, (_, i) => `line ${i}\n`).join("")
    const ends: Array<number> = []
    for await (const chunk of readRecords(pieces(text), { format: "lines", name: "t", offset: 0 })) ends.push(chunk.end)
    assert.isAbove(ends.length, 1)
    const { records } = await collect(pieces(text.slice(ends[0])), "lines", ends[0])
    assert.strictEqual(records.length, 9_000 - text.slice(0, ends[0]).split("\n").length + 1)
  })

  it("ndjson leaves blank lines out and names the line that is not JSON", async () => {
    assert.deepStrictEqual((await collect(pieces('{"a":1}\n\n[2]\n'), "ndjson")).records, ['{"a":1}', "[2]"])
    assert.match(await rejection(collect(pieces("1\n{oops\n"), "ndjson")), /line 2 .*not JSON/)
  })

  it("what comes before a line that cannot be a record is handed over first", async () => {
    const records: Array<number> = []
    const reading = (async () => {
      for await (const chunk of readRecords(pieces("1\n2\n{oops\n"), { format: "ndjson", name: "t", offset: 0 })) {
        records.push(...chunk.sizes)
      }
    })()
    await rejection(reading)
    assert.deepStrictEqual(records, [1, 1])
  })

  it("a file is one record, also an empty one", async () => {
    assert.deepStrictEqual((await collect(pieces("a\nb", "\n"), "file")).records, ["a\nb\n"])
    assert.deepStrictEqual((await collect(pieces(), "file")).records, [""])
  })

  it("a record of 16 MiB passes, one byte more is refused with its line", async () => {
    const longest = "x".repeat(longestRecord)
    assert.strictEqual((await collect(pieces("a\n", longest, "\nb"))).records[1]!.length, longestRecord)
    assert.match(await rejection(collect(pieces("a\n", longest, "y\nb"))), /line 2 .*limit/)
    assert.match(await rejection(collect(pieces(longest, "y"), "file")), /limit/)
  })

  it("an empty source has no records", async () => {
    assert.deepStrictEqual((await collect(pieces())).records, [])
  })
})

describe("a source file", () => {
  const open = (path: string, mark: number | undefined, format: Format = "lines") =>
    openSource(path, { format, noted: () => mark })
  const markOf = (path: string, end: number, format: Format = "lines") =>
    Effect.runSync(open(path, undefined, format)).markAt(end)

  const after = async (path: string, mark: number) => {
    const source = Effect.runSync(open(path, mark))
    return (await collect(source.bytes!, "lines", source.offset)).records
  }

  it("is read on from where the outbox stands", () =>
    inFolder(async (at) => {
      writeFileSync(at("f"), "one\ntwo\nthree\n")
      assert.deepStrictEqual(await after(at("f"), markOf(at("f"), 4)), ["two", "three"])
    }))

  it("whose last line got its newline since goes on after it", () =>
    inFolder(async (at) => {
      writeFileSync(at("f"), "one\ntwo")
      const mark = markOf(at("f"), 7)
      writeFileSync(at("f"), "one\ntwo\nthree\n")
      assert.deepStrictEqual(await after(at("f"), mark), ["three"])
    }))

  it("whose last line was torn and written on since is refused", () =>
    inFolder(async (at) => {
      writeFileSync(at("f"), "one\ntw")
      const mark = markOf(at("f"), 6)
      writeFileSync(at("f"), "one\ntwo\nthree\n")
      assert.match(failureOf(open(at("f"), mark)).text, /torn.*--again/)
    }))

  it("that was replaced or cut is refused, be the new one longer", () =>
    inFolder(async (at) => {
      writeFileSync(at("f"), "one\ntwo\n")
      const mark = markOf(at("f"), 8)
      for (const text of ["100\n101\n102\n", "one\n", "one\ntwx\nthree\n"]) {
        writeFileSync(at("f"), text)
        assert.match(failureOf(open(at("f"), mark)).text, /replaced or cut.*--again/, text)
      }
    }))

  it("that is one record is sent once, and again only with other content", () =>
    inFolder(async (at) => {
      writeFileSync(at("f"), "same length 1")
      const mark = markOf(at("f"), 13, "file")
      assert.isUndefined(Effect.runSync(open(at("f"), mark, "file")).bytes)
      writeFileSync(at("f"), "same length 2")
      assert.isDefined(Effect.runSync(open(at("f"), mark, "file")).bytes)
    }))

  it("that is empty is one record with --format file, once; empty standard input is none", () =>
    inFolder(async (at) => {
      writeFileSync(at("f"), "")
      const first = Effect.runSync(open(at("f"), undefined, "file"))
      assert.deepStrictEqual((await collect(first.bytes!, "file")).records, [""])
      assert.isUndefined(Effect.runSync(open(at("f"), markOf(at("f"), 0, "file"), "file")).bytes)
      const chunks = readRecords(pieces(), { format: "file", name: "standard input", offset: 0, skipEmpty: true })
      for await (const chunk of chunks) assert.fail(`a record of ${chunk.bytes.length} B`)
    }))

  it("that is a folder or missing is refused with a remedy", () =>
    inFolder(async (at) => {
      assert.match(failureOf(open(at("."), undefined)).text, /folder/)
      assert.match(failureOf(open(at("none"), undefined)).text, /ENOENT/)
    }))
})

describe("refusals", () => {
  it("of every reason say the reason, the remedy and that nothing is lost, with their exit code", () => {
    const codes = [3, 3, 3, 5, 5, 3, 3]
    for (const [index, exit] of codes.entries()) {
      const reason = (index + 1) as RefusalReason
      const remedy = refusalRemedy(reason)
      const failure = refusalOf({ _tag: "Refused", reason, remedy })!
      assert.strictEqual(failure.exit, exit, failure.text)
      assert.include(failure.text, `reason ${reason}`)
      assert.include(failure.text, remedy)
      assert.include(failure.text, "kept in the outbox")
    }
    assert.strictEqual(new Set(codes.map((_, index) => refusalRemedy((index + 1) as RefusalReason))).size, codes.length)
    assert.isUndefined(refusalOf({ _tag: "Sending" }))
  })

  it("are notices that a script reads, without the machine's time", () => {
    const stream = { source: "till", input: "orders" }
    const refused: LinkEvent = { _tag: "OutputRefused", ...stream, reason: 3, at: 5, level: "warning", message: "why" }
    const told = { event: "notice", notice: "OutputRefused", ...stream, reason: 3, level: "warning", message: "why" }
    assert.deepStrictEqual(noticeOf(refused), told)
    const address = { host: "::1", port: 4600 }
    const found: LinkEvent = { _tag: "AddressFound", ...stream, address, at: 5, level: "info", message: "where" }
    assert.strictEqual(noticeOf(found).address, "[::1]:4600")
  })
})

describe("records shown", () => {
  it("control characters never reach a terminal, and a record is one line", () => {
    assert.strictEqual(visible(describeRecord(Buffer.from("plain ü"))), "plain ü")
    assert.strictEqual(visible(describeRecord(Buffer.from("\u001b[31mred\u009b\r\n"))), "\\u001b[31mred\\u009b\\r\\n")
    assert.strictEqual(toJson("\u009b\u001b\n"), '"\\u009b\\u001b\\n"')
  })

  it("long text is cut between characters, bytes are shown as hexadecimal", () => {
    assert.strictEqual(describeRecord(Buffer.from(`x${"ü".repeat(600)}`)), `x${"ü".repeat(199)}… (1201 B)`)
    assert.deepStrictEqual(recordAsJson(Buffer.from("\ufeffmark")), { text: "\ufeffmark" })
    assert.match(describeRecord(Buffer.of(0xff, 0xfe)), /^2 B: fffe/)
  })
})
