import { assert, describe, it } from "@effect/vitest"
import { nobleSuite, nodeSuite } from "@pure-link/keys"
import { cryptoSuiteContract } from "@pure-link/keys/contract"
import { load } from "@pure-link/native"
import { Cryptography } from "@pure-link/ports"
import * as Effect from "effect/Effect"
import { execFileSync } from "node:child_process"
import { CryptographySystem } from "./CryptographySystem.ts"
import { loadNativeSuite } from "./nativeSuite.ts"

/** The native suite against the contract where this machine has it, and the layer that chooses. */

const { reason, suite } = loadNativeSuite()

if (suite !== undefined) {
  cryptoSuiteContract(suite, { isFast: true })

  describe("the native suite", () => {
    it("refuses lengths and places out of bounds, and material that is no key", () => {
      const key = suite.packetKey(new Uint8Array(28))
      const bytes = new Uint8Array(40)
      assert.throws(() => key.seal(bytes, 0, 12, 25, 1), RangeError)
      assert.throws(() => key.open(bytes, 0, 12, 41, 1), RangeError)
      assert.throws(() => key.sealTrain(bytes, 40, Uint32Array.of(28, 28), 0, 2, 12, 1), RangeError)
      assert.throws(() => suite.packetKey(new Uint8Array(27)), RangeError)
      assert.deepStrictEqual(bytes, new Uint8Array(40))
    })
  })
} else {
  describe("without a native suite", () => {
    it("there is a reason", () => assert.isNotEmpty(reason))
  })
}

describe("CryptographySystem", () => {
  it.effect("is native where the addon loads, else node:crypto", () =>
    Effect.gen(function* () {
      const chosen = yield* Cryptography
      assert.strictEqual(chosen.name, load().addon?.aead === undefined ? nodeSuite.name : "native")
      const packet = new Uint8Array(60)
      chosen.packetKey(new Uint8Array(28)).seal(packet, 0, 12, 44, 5)
      assert.isTrue(nobleSuite.packetKey(new Uint8Array(28)).open(packet, 0, 12, 60, 5))
    }).pipe(Effect.provide(CryptographySystem.layer))
  )

  it("without an addon is node:crypto, after one line however often it is asked for; with it turned off after none", () => {
    const program = `
      import { Cryptography } from "@pure-link/ports"
      import { CryptographySystem, DatagramSocketSystem } from "@pure-link/udp"
      import * as Effect from "effect/Effect"
      import * as Layer from "effect/Layer"
      import * as Logger from "effect/Logger"
      const log = Logger.layer([Logger.make(({ message }) => console.log("line:", String(message)))])
      const both = Layer.merge(DatagramSocketSystem.layer, CryptographySystem.layer)
      const name = Effect.map(Cryptography, (suite) => suite.name).pipe(Effect.provide(both))
      const names = await Effect.runPromise(Effect.all([name, name]).pipe(Effect.provide(log)))
      console.log(names.join())`
    const run = (native: string): string =>
      execFileSync(process.execPath, ["--input-type=module", "-e", program], {
        cwd: import.meta.dirname,
        encoding: "utf8",
        env: { ...process.env, PURE_LINK_NATIVE: native }
      })
    assert.strictEqual(run("off"), "node,node\n")
    assert.match(
      run("/nowhere"),
      /^line: packets go through Node's own dgram and crypto[^\n]*\/nowhere[^\n]*\nnode,node\n$/
    )
  }, 120_000)
})
