import { assert, describe, it } from "@effect/vitest"
import { type Aead, type Derivation, load } from "@pure-link/native"
import { execFileSync } from "node:child_process"
import { setImmediate } from "node:timers/promises"
import { setFlagsFromString } from "node:v8"
import { runInNewContext } from "node:vm"
import { Worker } from "node:worker_threads"
import { garbage, seededRandom } from "./garbage.ts"

/**
 * What the packet keys of the addon owe to any caller: handles that cannot be mistaken, memory that comes back, threads
 * and exits at any moment, and no access out of bounds whatever the arguments are. That sealing is right is the contract
 * of `CryptoSuite`, run in the room udp. `npm run sanitize -w native` runs this under ASan and UBSan.
 */

const { addon } = load()
const aead = addon?.aead as Aead
const derivation = addon?.derivation as Derivation
const material = new Uint8Array(28).fill(1)

setFlagsFromString("--expose-gc")
const collectGarbage = runInNewContext("gc") as () => void

describe.skipIf(aead === undefined)("packet keys", () => {
  it("are not found under a handle that was freed, reused or never given", () => {
    const owner = {}
    const bytes = new Uint8Array(16)
    const first = aead.createKey(owner, material)
    assert.isTrue(aead.freeKey(first))
    assert.isFalse(aead.freeKey(first))
    const second = aead.createKey(owner, material)
    assert.notStrictEqual(second, first)
    for (const handle of [first, 0, 1, second + 1, second + 2 ** 20, 2 ** 53 - 1]) {
      assert.throws(() => aead.seal(handle, bytes, 0, 0, 0, 1), RangeError)
      assert.throws(() => aead.open(handle, bytes, 0, 0, 16, 1), RangeError)
      assert.isFalse(aead.freeKey(handle))
    }
    for (const handle of [-1, 0.5, NaN, Infinity]) {
      assert.throws(() => aead.seal(handle, bytes, 0, 0, 0, 1), RangeError)
    }
    assert.deepStrictEqual(bytes, new Uint8Array(16))
    aead.seal(second, bytes, 0, 0, 0, 1)
    assert.notDeepEqual(bytes, new Uint8Array(16))
    aead.freeKey(second)
  })

  it("are other keys under the same handle once they were renewed", () => {
    const owner = {}
    const handle = aead.createKey(owner, material)
    const first = new Uint8Array(48)
    aead.seal(handle, first, 0, 0, 32, 1)
    const sealed = first.slice()
    assert.isTrue(aead.open(handle, first, 0, 0, 48, 1))
    assert.throws(() => aead.renewKey(handle, new Uint8Array(27)), RangeError)
    aead.renewKey(handle, new Uint8Array(28).fill(2))
    assert.isFalse(aead.open(handle, sealed, 0, 0, 48, 1))
    const [renewed, fresh] = [new Uint8Array(48), new Uint8Array(48)]
    aead.seal(handle, renewed, 0, 0, 32, 1)
    const other = aead.createKey(owner, new Uint8Array(28).fill(2))
    aead.seal(other, fresh, 0, 0, 32, 1)
    aead.freeKey(other)
    assert.deepStrictEqual(renewed, fresh)
    aead.renewKey(handle, material)
    assert.isTrue(aead.open(handle, sealed, 0, 0, 48, 1))
    aead.freeKey(handle)
    assert.throws(() => aead.renewKey(handle, material), RangeError)
  })

  it("are freed with their owner, or before", async () => {
    const before = aead.keyCount()
    const make = () => {
      for (let i = 0; i < 2_000; i++) {
        const handle = aead.createKey({}, material)
        if (i % 3 === 0) aead.freeKey(handle)
      }
    }
    make()
    assert.isAbove(aead.keyCount(), before + 1_000)
    for (let i = 0; i < 10 && aead.keyCount() > before; i++) {
      collectGarbage()
      await setImmediate()
    }
    assert.strictEqual(aead.keyCount(), before)
  })

  it("cost no memory once they are freed", () => {
    const owner = {}
    const bytes = new Uint8Array(64)
    const round = () => {
      for (let i = 0; i < 5_000; i++) {
        const handle = aead.createKey(owner, material)
        aead.seal(handle, bytes, 0, 0, 48, i)
        aead.open(handle, bytes, 0, 0, 64, i)
        aead.freeKey(handle)
      }
      collectGarbage()
    }
    round()
    const before = process.memoryUsage.rss()
    for (let i = 0; i < 8; i++) round()
    // 40,000 keys with two contexts each are more than 60 MB; a sanitizer keeps freed memory for a while
    const quarantine = process.env["LD_PRELOAD"]?.includes("asan") ? 500 : 0
    assert.isBelow((process.memoryUsage.rss() - before) / 1e6, 30 + quarantine)
  })

  it("work in several threads at once, and end with them at any moment", async () => {
    const rounds = Array.from({ length: 4 }, async (_, index) => {
      const worker = new Worker(new URL("./sealingWorker.ts", import.meta.url), { workerData: { index } })
      const [message] = await once(worker, "message")
      assert.strictEqual(message, "working")
      if (index % 2 === 0) worker.postMessage("end")
      else void worker.terminate() // in the middle of its work
      const [code] = await once(worker, "exit")
      assert.strictEqual(code, index % 2 === 0 ? 0 : 1)
    })
    await Promise.all(rounds)
  })

  it("do not trouble a process that exits with many of them", () => {
    const program = `
      import { load } from "@pure-link/native"
      const { aead } = load().addon
      const owners = Array.from({ length: 5_000 }, () => ({}))
      const bytes = new Uint8Array(64)
      for (const owner of owners) aead.seal(aead.createKey(owner, new Uint8Array(28)), bytes, 0, 0, 48, 1)
      process.on("exit", () => aead.seal(aead.createKey(owners[0], new Uint8Array(28)), bytes, 0, 0, 48, 2))
      if (process.argv[1] === "abruptly") process.exit(0)`
    for (const how of ["abruptly", "quietly"]) {
      execFileSync(process.execPath, ["--input-type=module", "-e", program, how], { cwd: import.meta.dirname })
    }
  })
})

describe.skipIf(aead === undefined)("garbage from JavaScript", () => {
  it("throws a TypeError or a RangeError, and changes nothing around the bytes", () => {
    const owner = {}
    let key = aead.createKey(owner, material)
    const functions = ["seal", "open", "sealTrain", "openAll", "createKey", "renewKey", "freeKey", "keyCount"] as const
    const tally = { returned: 0, threw: 0 }
    const random = seededRandom(5)
    const { argument, isIntact } = garbage(random)
    for (let i = 0; i < 40_000; i++) {
      const name = functions[random(functions.length)]!
      const values = Array.from({ length: random(12) }, argument)
      if (random(4) > 0) values[0] = name === "createKey" ? {} : key
      try {
        ;(aead[name] as (...values: ReadonlyArray<unknown>) => unknown)(...values)
        tally.returned++
      } catch (error) {
        assert.isTrue(error instanceof TypeError || error instanceof RangeError, `${name}: ${String(error)}`)
        tally.threw++
      }
      if (i % 1_000 === 0) assert.isTrue(isIntact())
      if (name === "freeKey" && values[0] === key) key = aead.createKey(owner, material)
    }
    assert.isTrue(isIntact())
    assert.isAbove(tally.threw, 10_000)
    assert.isAbove(tally.returned, 100)
  })

  it("in almost right calls is found by its bounds", () => {
    const key = aead.createKey({}, material)
    const random = seededRandom(6)
    const around = new Uint8Array(4_096).fill(0xa5)
    const slabs = [around.subarray(1_024, 3_072), new Uint8Array(2_048)] // margins for us; ends for a sanitizer
    const near = (value: number) => [value, value - 1, value + 1, value + 16, 0, 2 ** 32, 2 ** 53 - 1][random(7)]!
    let done = 0
    for (let i = 0; i < 40_000; i++) {
      const lengths = Uint32Array.from({ length: 4 }, () => near(random(600)) % 2 ** 32)
      const starts = Uint32Array.from({ length: 4 }, () => near(random(2_100)) % 2 ** 32)
      const ends = starts.map((start, at) => start + lengths[at]!)
      const numbers = Float64Array.from(
        { length: 4 },
        () => [near(i), -1, NaN, 0.5][random(20) % 4 === 0 ? random(4) : 0]!
      )
      const opened = new Uint8Array(4)
      const slab = slabs[random(2)]!
      const calls = [
        () => aead.seal(key, slab, near(100), near(112), near(2_032), near(i)),
        () => aead.open(key, slab, near(100), near(112), near(2_048), near(i)),
        () => aead.sealTrain(key, slab, near(512), lengths, near(1), near(4), near(12), near(i)),
        () => aead.openAll(key, slab, starts, ends, numbers, opened, near(1), near(4), near(12)),
        // columns that lie in the bytes that are sealed and opened
        () => aead.sealTrain(key, slab, 512, new Uint32Array(around.buffer, 1_024, 4), 0, near(4), 12, i),
        () =>
          aead.openAll(key, slab, starts, ends, new Float64Array(around.buffer, 1_024, 4), slab, 0, near(4), near(12))
      ]
      try {
        calls[random(calls.length)]!()
        done++
      } catch (error) {
        assert.isTrue(error instanceof RangeError, String(error))
      }
    }
    assert.isAbove(done, 1_000)
    assert.isTrue(around.subarray(0, 1_024).every((byte) => byte === 0xa5))
    assert.isTrue(around.subarray(3_072).every((byte) => byte === 0xa5))
  })

  it("to derivations throws as well, or fills what it was given to fill", () => {
    const random = seededRandom(7)
    const { argument, isIntact } = garbage(random)
    const functions = ["sha256", "hmac", "expand"] as const
    const tally = { returned: 0, threw: 0 }
    for (let i = 0; i < 20_000; i++) {
      const out = new Uint8Array(random(3) === 0 ? random(64) : 8_200)
      const values = [argument(), argument(), out, [random(100), random(9_000), -1, 8_160, 8_161][random(5)]]
      if (random(8) === 0) values[random(4)] = argument()
      const name = functions[random(3)]!
      if (name === "sha256") values[1] = out
      try {
        ;(derivation[name] as (...values: ReadonlyArray<unknown>) => unknown)(...values)
        tally.returned++
      } catch (error) {
        assert.isTrue(error instanceof TypeError || error instanceof RangeError, `${name}: ${String(error)}`)
        tally.threw++
      }
      if (i % 1_000 === 0) assert.isTrue(isIntact())
    }
    assert.isTrue(isIntact())
    assert.isAbove(tally.threw, 5_000)
    assert.isAbove(tally.returned, 500)
  })

  it("includes bytes that were transferred away or are shared", () => {
    const key = aead.createKey({}, material)
    const gone = new Uint8Array(100)
    structuredClone(gone, { transfer: [gone.buffer] })
    assert.throws(() => aead.seal(key, gone, 0, 12, 84, 1), RangeError)
    assert.throws(() => aead.createKey({}, gone), RangeError)
    const shared = new Uint8Array(new SharedArrayBuffer(100))
    aead.seal(key, shared, 0, 12, 84, 1)
    assert.isTrue(aead.open(key, shared, 0, 12, 100, 1))
    const shrinking = new ArrayBuffer(100, { maxByteLength: 200 })
    const tracking = new Uint8Array(shrinking)
    shrinking.resize(50)
    assert.throws(() => aead.seal(key, tracking, 0, 12, 84, 1), RangeError)
  })
})

const once = (emitter: Worker, event: string): Promise<ReadonlyArray<unknown>> =>
  new Promise((resolve, reject) => {
    emitter.once(event, (...values: ReadonlyArray<unknown>) => resolve(values))
    emitter.once("error", reject)
  })
