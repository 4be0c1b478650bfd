import { assert, describe, it } from "@effect/vitest"
import { Memo, type StoreError } from "@pure-link/ports"
import { streamOf } from "@pure-link/ports/contract"
import type { MemoPeer, MemoRun, ReceiverMemo } from "@pure-link/wire"
import * as Effect from "effect/Effect"
import { execFileSync } from "node:child_process"
import {
  chmodSync,
  existsSync,
  linkSync,
  mkdirSync,
  readFileSync,
  statSync,
  truncateSync,
  writeFileSync
} from "node:fs"
import { join } from "node:path"
import { MemoFile } from "../src/index.ts"
import { openMemoFile } from "../src/memo/memoFile.ts"
import type { RawFile } from "../src/memo/rawFile.ts"
import { memoKey, temporaryFolder } from "./places.ts"
import { startWriter } from "./processes/spawn.ts"
import { memoPeer, writtenMemoKey, writtenRun, writtenStaticSecret } from "./processes/written.ts"

/** A memo's file under all that can befall a file: cut off, torn, killed writers, full disks, somebody else's bytes. */

const slotLength = 512
const firstPeerPlace = 1_025
const newFile = Effect.map(temporaryFolder, (folder) => join(folder, "node.memo"))
const withMemo = <A>(
  file: string,
  body: (memo: ReceiverMemo, service: Memo["Service"]) => A,
  options: Partial<MemoFile.Options> = {}
): Effect.Effect<A, StoreError> =>
  Effect.provide(
    Effect.map(Memo, (service) => body(service.memo, service)),
    MemoFile.layer({ file, publicKey: memoKey, ...options })
  )

/** A file in memory, whose calls can be let fail. */
class FileInMemory implements RawFile {
  bytes: Buffer
  /** Bytes that a write writes at most, by position; undefined: it throws. */
  room: (position: number) => number | undefined = () => Infinity
  unreadable: (position: number) => boolean = () => false
  constructor(bytes: Uint8Array = new Uint8Array(0)) {
    this.bytes = Buffer.from(bytes)
  }
  read(into: Uint8Array, position: number): number {
    if (this.unreadable(position)) throw Object.assign(new Error("EIO"), { code: "EIO" })
    return this.bytes.copy(into, 0, Math.min(position, this.bytes.length))
  }
  write(from: Uint8Array, position: number): number {
    const room = this.room(position)
    if (room === undefined) throw Object.assign(new Error("ENOSPC"), { code: "ENOSPC" })
    const length = Math.min(from.length, room)
    if (this.bytes.length < position + length) {
      this.bytes = Buffer.concat([this.bytes, Buffer.alloc(position + length - this.bytes.length)])
    }
    this.bytes.set(from.subarray(0, length), position)
    return length
  }
  size(): number {
    return this.bytes.length
  }
  truncate(length: number): void {
    this.bytes = this.bytes.subarray(0, length)
  }
  protect(): void {}
  sync(): void {}
  close(): void {}
}

const openIn = (file: RawFile, peers = 8) => openMemoFile(file, { publicKey: memoKey, peers, sideRuns: 1_024 })

const peers = [0, 1, 2].map(memoPeer)
const stream = { ...streamOf(31, 2) }
const runs: ReadonlyArray<ReadonlyArray<MemoRun>> = [
  [{ ...writtenRun(0, 1, 1), stream }, writtenRun(0, 2, 2)],
  [writtenRun(1, 3, 4)],
  []
]
const fill = (memo: ReceiverMemo): void =>
  peers.forEach((key, peer) => {
    assert.isTrue(memo.keepPeer(key, writtenStaticSecret(peer)))
    for (const run of runs[peer]!) assert.isTrue(memo.keepRun(key, run))
  })
const whole = (peer: number): MemoPeer => ({ staticSecret: writtenStaticSecret(peer), runs: runs[peer]! })
const recallAll = (memo: ReceiverMemo) => peers.map((key) => memo.recall(key))

describe("a memo's file", () => {
  it("gives whole peers and runs, or nothing of them, wherever it was cut off", () => {
    const original = new FileInMemory()
    fill(openIn(original).table)
    const { bytes } = original
    const lastPlace = firstPeerPlace + peers.length
    assert.strictEqual(bytes.length, lastPlace * slotLength)
    const interesting = [
      [0, 2 * slotLength],
      [firstPeerPlace * slotLength, lastPlace * slotLength]
    ]
    for (const [from, to] of interesting) {
      for (let length = from!; length <= to!; length++) {
        const file = new FileInMemory(bytes.subarray(0, length))
        const { rebuilt, table } = openIn(file)
        const headerStands = length >= slotLength
        assert.strictEqual(rebuilt !== undefined, length > 0 && !headerStands, `${length} B`)
        const padded = Buffer.concat([bytes.subarray(0, length), Buffer.alloc(bytes.length - length)])
        const stands = (place: number) => {
          const end = (place + 1) * slotLength // what was cut off may have been zeros
          return padded.subarray(place * slotLength, end).equals(bytes.subarray(place * slotLength, end))
        }
        const expected = peers.map((_, peer) => (stands(firstPeerPlace + peer) ? whole(peer) : undefined))
        assert.deepStrictEqual(recallAll(table), expected, `${length} B`)
        assert.isTrue(table.keepPeer(peers[0]!, writtenStaticSecret(0)), "it goes on")
      }
    }
  })

  it("gives the old or the new state of a slot, or nothing, wherever its writing was torn", () => {
    const file = new FileInMemory()
    const { table } = openIn(file)
    fill(table)
    const changes: ReadonlyArray<readonly [name: string, peer: number, change: (memo: ReceiverMemo) => void]> = [
      ["a run goes on", 0, (memo) => memo.keepRun(peers[0]!, writtenRun(0, 1, 77))],
      ["a further run goes on", 0, (memo) => memo.keepRun(peers[0]!, writtenRun(0, 2, 78))],
      ["a further run begins", 1, (memo) => memo.keepRun(peers[1]!, writtenRun(1, 9, 79))],
      ["a first run begins", 2, (memo) => memo.keepRun(peers[2]!, writtenRun(2, 8, 80))],
      ["a run ends and another moves up", 1, (memo) => memo.forgetRun(peers[1]!, 3n)],
      ["a run ends", 2, (memo) => memo.forgetRun(peers[2]!, 8n)],
      ["a peer goes", 0, (memo) => memo.forgetPeer(peers[0]!)]
    ]
    for (const [name, peer, change] of changes) {
      const states = [recallAll(table)]
      const writes: Array<{ readonly before: Buffer; readonly slot: Buffer; readonly position: number }> = []
      const { write } = file
      file.write = (slot, position) => {
        writes.push({ before: Buffer.from(file.bytes), slot: Buffer.from(slot), position })
        return write.call(file, slot, position)
      }
      change(table)
      file.write = write
      states.push(recallAll(table))
      assert.notDeepEqual(states[0], states[1])
      const allowed = states.map((state) => state[peer])
      for (const { before, position, slot } of writes) {
        for (let torn = 0; torn <= slotLength; torn++) {
          const killed = new FileInMemory(before)
          killed.room = () => torn
          killed.write(slot, position)
          killed.room = () => Infinity
          const reopened = openIn(killed).table
          const recalled = recallAll(reopened)
          recalled.forEach((found, other) => {
            if (other !== peer) return assert.deepStrictEqual(found, states[0]![other])
            if (found === undefined) return
            assert.deepStrictEqual(found.staticSecret, writtenStaticSecret(peer))
            assert.strictEqual(new Set(found.runs.map(({ run }) => run)).size, found.runs.length)
            for (const run of found.runs) {
              const known = allowed.flatMap((state) => state?.runs ?? []).filter((one) => one.run === run.run)
              assert.isTrue(
                known.some((one) => sameRun(one, run)),
                `${name}, torn after ${torn} B`
              )
            }
          })
          assertErased(killed, reopened, name, torn)
        }
      }
    }
  })

  it("is of no use to a node with another key, and is made anew for it", () => {
    const file = new FileInMemory()
    fill(openIn(file).table)
    const other = openMemoFile(file, { publicKey: writtenMemoKey, peers: 8, sideRuns: 1_024 })
    assert.match(other.rebuilt!, /made anew: it is of the node with public key pk[\w-]{43}, not of this one$/)
    assert.deepStrictEqual(recallAll(other.table), [undefined, undefined, undefined])
    assert.isFalse(file.bytes.includes(Buffer.from(writtenStaticSecret(0))))
  })

  it("is made anew when its version is unknown or its header damaged, at any byte, or all but its magic is garbage", () => {
    const original = new FileInMemory()
    fill(openIn(original).table)
    for (let byte = 8; byte < slotLength; byte++) {
      const file = new FileInMemory(original.bytes.subarray(0, 1_024))
      file.bytes[byte]! ^= 0x40
      const { rebuilt, table } = openIn(file)
      assert.match(rebuilt!, byte < 12 ? /it is of version \d+, and this program knows 1/ : /its header is damaged/)
      fill(table)
      assert.isUndefined(openIn(file).rebuilt)
    }
    const garbage = new FileInMemory(original.bytes)
    for (let byte = 8; byte < garbage.bytes.length; byte++) garbage.bytes[byte] = (byte * 7_919) >> 3
    assert.isDefined(openIn(garbage).rebuilt)
    fill(openIn(garbage).table)
  })

  it("reads slots whose bytes changed, or that were moved, as empty", () => {
    const original = new FileInMemory()
    fill(openIn(original).table)
    const start = firstPeerPlace * slotLength
    for (let byte = 0; byte < slotLength; byte++) {
      const file = new FileInMemory(original.bytes)
      file.bytes[start + byte]! ^= 1
      assert.deepStrictEqual(recallAll(openIn(file).table), [undefined, whole(1), whole(2)])
    }
    const moved = new FileInMemory(original.bytes)
    moved.bytes.copy(moved.bytes, start + slotLength, start, start + slotLength)
    moved.bytes.fill(0, start, start + slotLength)
    assert.deepStrictEqual(recallAll(openIn(moved).table), [undefined, undefined, whole(2)])
  })

  it("keeps what fits when it is opened with another capacity, and says what it forgot", () => {
    const file = new FileInMemory()
    const large = openIn(file, 40).table
    for (let peer = 0; peer < 40; peer++) large.keepPeer(memoPeer(peer), writtenStaticSecret(peer))
    large.keepRun(memoPeer(0), writtenRun(0, 1, 1))
    large.keepRun(memoPeer(38), writtenRun(38, 2, 3))
    large.keepRun(memoPeer(38), writtenRun(38, 3, 4))
    const held = (memo: ReceiverMemo) => Array.from({ length: 40 }, (_, i) => i).filter((i) => memo.recall(memoPeer(i)))
    const enlarged = openIn(file, 60)
    assert.isUndefined(enlarged.rebuilt)
    assert.strictEqual(held(enlarged.table).length, 40)
    const small = openIn(file, 3)
    assert.strictEqual(small.rebuilt, "the memo has room for 3 peers now and forgot 37 of those it held")
    assert.deepStrictEqual(held(small.table), [0, 38, 39])
    assert.deepStrictEqual(small.table.recall(memoPeer(38))?.runs.length, 2)
    assert.strictEqual(file.size(), (firstPeerPlace + 3) * slotLength)
    assert.isFalse(small.table.keepPeer(memoPeer(7), writtenStaticSecret(7)) && held(small.table).length !== 3)
    const again = openIn(file, 3)
    assert.isUndefined(again.rebuilt)
    assert.strictEqual(held(again.table).length, 3)
  })

  it("forgets what could not be written, says so, and goes on when the disk does", () => {
    for (const failing of [undefined, 0, 17, 300]) {
      const file = new FileInMemory()
      const { table } = openIn(file)
      fill(table)
      file.room = () => failing
      assert.isFalse(table.keepRun(peers[0]!, writtenRun(0, 2, 50))) // its side slot
      assert.deepStrictEqual(table.recall(peers[0]!)?.runs, [runs[0]![0]!])
      assert.isFalse(table.keepRun(peers[1]!, writtenRun(1, 3, 51))) // its own slot
      assert.isUndefined(table.recall(peers[1]!))
      assert.isFalse(table.keepPeer(memoPeer(5), writtenStaticSecret(5)))
      table.forgetPeer(peers[2]!)
      assert.isUndefined(table.recall(peers[2]!))
      assert.isAtLeast(table.counters.failures, 4)
      file.room = () => Infinity
      for (let peer = 3; peer < 10; peer++) assert.isTrue(table.keepPeer(memoPeer(peer), writtenStaticSecret(peer)))
      assert.isTrue(table.keepRun(memoPeer(9), writtenRun(9, 1, 5)))
      const again = openIn(file).table
      assert.deepStrictEqual(again.recall(memoPeer(9))?.runs, [writtenRun(9, 1, 5)])
    }
  })

  it("forgets what cannot be read", () => {
    const file = new FileInMemory()
    const { table } = openIn(file)
    fill(table)
    file.unreadable = (position) => position === slotLength || position === (firstPeerPlace + 1) * slotLength
    assert.deepStrictEqual(recallAll(table), [{ ...whole(0), runs: [runs[0]![0]!] }, undefined, whole(2)])
    file.unreadable = () => false
    assert.deepStrictEqual(recallAll(table), [{ ...whole(0), runs: [runs[0]![0]!] }, undefined, whole(2)])
    const unread = new FileInMemory(file.bytes)
    let tries = 0
    unread.unreadable = (position) => position === slotLength && tries++ === 0 // the chunk, then slot by slot
    assert.deepStrictEqual(openIn(unread).table.recall(peers[0]!)?.runs, [runs[0]![0]!])
  })

  it("begins on a disk that is full, and remembers once there is room", () => {
    const file = new FileInMemory()
    file.room = () => undefined
    const { rebuilt, table } = openIn(file)
    assert.isUndefined(rebuilt)
    assert.isFalse(table.keepPeer(peers[0]!, writtenStaticSecret(0)))
    file.room = () => Infinity
    fill(table)
    assert.deepStrictEqual(recallAll(openIn(file).table), [0, 1, 2].map(whole))
  })
})

const sameRun = (a: MemoRun, b: MemoRun): boolean => {
  try {
    assert.deepStrictEqual(a, b)
    return true
  } catch {
    return false
  }
}

/** After an opening nothing is left of what it does not recall. */
const assertErased = (file: FileInMemory, memo: ReceiverMemo, name: string, torn: number): void => {
  const known = new Set(
    recallAll(memo).flatMap((peer) => (peer?.runs ?? []).flatMap(({ candidate }) => [hex(candidate!.secret)]))
  )
  for (const [peer, run, step] of [
    [0, 1, 1],
    [0, 2, 2],
    [1, 3, 4],
    [0, 1, 77]
  ] as const) {
    const { secret } = writtenRun(peer, run, step).candidate!
    if (!known.has(hex(secret))) assert.isFalse(file.bytes.includes(Buffer.from(secret)), `${name}, after ${torn} B`)
  }
}
const hex = (bytes: Uint8Array): string => Buffer.from(bytes).toString("hex")

describe("a memo in a real file", () => {
  it.effect("is the owner's alone, whatever its mode was, and grows with what is kept", () =>
    Effect.gen(function* () {
      const file = yield* newFile
      yield* withMemo(file, fill)
      assert.strictEqual(statSync(file).mode & 0o777, 0o600)
      assert.strictEqual(statSync(file).size, (firstPeerPlace + 3) * slotLength)
      assert.isBelow(statSync(file).blocks * 512, 64 * 1_024)
      chmodSync(file, 0o644)
      yield* withMemo(file, (memo) => assert.deepStrictEqual(recallAll(memo), [0, 1, 2].map(whole)))
      assert.strictEqual(statSync(file).mode & 0o777, 0o600)
    })
  )

  it.effect("is never made of what is something else: a typed error says what to do, and nothing is touched", () =>
    Effect.gen(function* () {
      const folder = yield* temporaryFolder
      const open = (name: string) => Effect.flip(withMemo(join(folder, name), () => undefined))
      const precious = Buffer.concat([Buffer.alloc(600), Buffer.from("dear diary")])
      for (const bytes of [Buffer.from("dear diary"), precious, Buffer.from([0x89, 0x50, 0x4e])]) {
        const file = join(folder, "precious")
        writeFileSync(file, bytes, { mode: 0o644 })
        chmodSync(file, 0o644)
        const error = yield* open("precious")
        assert.deepInclude(error, { reason: "unreadable", file })
        assert.match(error.message, /no memo of Pure Link; name another file for the memo/)
        assert.deepStrictEqual(readFileSync(file), bytes)
        assert.strictEqual(statSync(file).mode & 0o777, 0o644)
      }
      // Where nobody else has the name, what is there is kept under another.
      const options = { file: join(folder, "precious"), publicKey: new Uint8Array(32).fill(9), movesAside: true }
      assert.match(
        (yield* Effect.provide(Memo, MemoFile.layer(options))).rebuilt!,
        /no memo, is kept as .*precious\.bad/
      )
      assert.deepStrictEqual(readFileSync(join(folder, "precious.bad")), Buffer.from([0x89, 0x50, 0x4e]))
      mkdirSync(join(folder, "folder"))
      assert.deepInclude(yield* open("folder"), { reason: "permission" })
      assert.deepInclude(yield* open("no/such/folder"), { reason: "permission" })
      linkSync(join(folder, "precious"), join(folder, "link"))
      assert.deepInclude(yield* open("link"), { reason: "locked" })
    })
  )

  it.effect("tells what was wrong with one that it made anew, and with which file", () =>
    Effect.gen(function* () {
      const file = yield* newFile
      yield* withMemo(file, fill)
      truncateSync(file, 100)
      yield* withMemo(file, (memo, { counters, rebuilt }) => {
        assert.strictEqual(rebuilt, `${file}: the memo was made anew: it was cut off within its header`)
        assert.deepInclude(counters, { peers: 0, runs: 0 })
        fill(memo)
      })
      yield* withMemo(file, (memo) => assert.deepStrictEqual(recallAll(memo), [0, 1, 2].map(whole)))
    })
  )

  it.effect("does nothing once it is closed", () =>
    Effect.gen(function* () {
      const file = yield* newFile
      const memo = yield* withMemo(file, (memo) => memo)
      assert.isFalse(memo.keepPeer(peers[0]!, writtenStaticSecret(0)))
      memo.forgetPeer(peers[0]!)
      assert.isUndefined(memo.recall(peers[0]!))
    })
  )

  it.live(
    "holds only what was written, after 24 SIGKILLs in the middle of writing",
    () =>
      Effect.gen(function* () {
        const folder = yield* temporaryFolder
        const files = ["a.memo", "b.memo"].map((name) => join(folder, name))
        const recalled = yield* Effect.forEach(files, (file) => killWriters(file, 12), { concurrency: 2 })
        for (const count of recalled) assert.isAbove(count, 100)
      }),
    { timeout: 240_000 }
  )

  it.effect("of 65,536 peers opens within a second of the processor's time", () =>
    Effect.gen(function* () {
      const file = yield* newFile
      const key = new Uint8Array(32)
      const peerKey = (peer: number) => {
        new DataView(key.buffer).setUint32(0, peer)
        return key
      }
      const spent = () => (process.cpuUsage().user + process.cpuUsage().system) / 1_000
      const written = yield* withMemo(file, (memo) => {
        const before = spent()
        for (let peer = 0; peer < 65_536; peer++) {
          memo.keepPeer(peerKey(peer), writtenStaticSecret(1))
          memo.keepRun(key, writtenRun(1, 1, peer + 1))
        }
        return spent() - before
      })
      const before = spent()
      yield* withMemo(file, (memo, { counters }) => {
        const opened = spent() - before
        console.log(`131,072 slots written in ${written} ms, 65,536 peers opened in ${opened} ms of processor time`)
        assert.deepInclude(counters, { peers: 65_536, runs: 65_536 })
        assert.deepStrictEqual(memo.recall(peerKey(4_711))?.runs[0]?.bound, 4_712)
        assert.isBelow(opened, 1_000)
      })
    })
  )

  const isRoot = process.getuid?.() === 0
  it.effect.skipIf(!isRoot)("on a disk that fills up (skipped unless root, who can mount a small one)", () =>
    Effect.gen(function* () {
      const folder = yield* smallDisk
      if (folder === undefined) return
      const file = join(folder, "node.memo")
      yield* withMemo(file, (memo, service) => {
        let kept = 0
        while (kept < 2_000 && memo.keepPeer(new Uint8Array(32).fill(kept, 8).fill(kept >> 8, 0, 8), memoKey)) kept++
        assert.isAbove(kept, 10)
        assert.isBelow(kept, 2_000)
        assert.isAtLeast(service.counters.failures, 1)
        assert.strictEqual(service.counters.peers, kept)
        assert.isFalse(memo.keepPeer(memoKey, memoKey))
        assert.isDefined(memo.recall(new Uint8Array(32)))
      })
      assert.isTrue(existsSync(file))
      yield* withMemo(file, (memo, { rebuilt }) => {
        assert.isUndefined(rebuilt)
        assert.isDefined(memo.recall(new Uint8Array(32)))
      })
    })
  )
})

/**
 * Lets a writer change a memo and kills it, again and again; each time every run is one that was written, whole, and what
 * the writer said it had done is there. Returns how many runs were recalled.
 */
const killWriters = Effect.fnUntraced(function* (file: string, kills: number) {
  let first = 1
  let recalled = 0
  for (let kill = 0; kill < kills; kill++) {
    const seed = `${file}, from step ${first}`
    const done = yield* Effect.scoped(
      Effect.gen(function* () {
        const writer = yield* startWriter("memoWriter", file, String(first))
        assert.strictEqual(yield* writer.line, "open")
        let last = Number(yield* writer.line)
        for (let burst = 0; burst < kill % 5; burst++) last = Number(yield* writer.line)
        return Number((yield* writer.kill).at(-1) ?? last)
      })
    )
    const check = (memo: ReceiverMemo, { rebuilt }: Memo["Service"]): void => {
      assert.isUndefined(rebuilt, seed)
      let newest = 0
      for (let peer = 0; peer < 20; peer++) {
        const found = memo.recall(memoPeer(peer))
        if (found === undefined) continue
        assert.deepStrictEqual(found.staticSecret, writtenStaticSecret(peer), seed)
        for (const run of found.runs) {
          assert.deepStrictEqual(run, writtenRun(peer, Number(run.run), run.bound), seed)
          newest = Math.max(newest, run.bound)
          recalled++
        }
      }
      assert.isAtLeast(newest, done - 20, seed)
    }
    yield* withMemo(file, check, { publicKey: writtenMemoKey, peers: 16 })
    first = done + 1
  }
  return recalled
})

/** A disk of 128 KiB; undefined where none may be mounted. */
const smallDisk = Effect.gen(function* () {
  const folder = yield* temporaryFolder
  return yield* Effect.acquireRelease(
    Effect.sync(() => {
      try {
        execFileSync("mount", ["-t", "tmpfs", "-o", "size=128k", "pure-link-memo", folder], { stdio: "ignore" })
        return folder
      } catch {
        return undefined
      }
    }),
    (mounted) =>
      Effect.sync(() => {
        if (mounted !== undefined) execFileSync("umount", [mounted], { stdio: "ignore" })
      })
  )
})
