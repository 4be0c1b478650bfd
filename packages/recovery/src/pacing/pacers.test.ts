import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { between } from "../../test/random.ts"
import { RoundTripTime } from "../roundTripTime.ts"
import { Pacing } from "./Pacing.ts"

const second = 1_000_000

const makers = [Pacing.layerPaced, Pacing.layerUnpaced].map(
  (layer) => Effect.runSync(Effect.provide(Pacing, layer)).make
)

for (const make of makers) {
  const controller = { window: 12_000, inSlowStart: true }
  const { name } = make({ controller, rtt: new RoundTripTime(), datagramSize: 1_200 })
  describe(`${name}: what every pacer keeps (spec §14.7)`, () => {
    it("names a time that is no number less than now, and lets a datagram go when that time comes", () => {
      for (let seed = 1; seed <= 80; seed++) {
        const any = between(seed)
        const path = { window: 12_000, inSlowStart: true }
        const rtt = new RoundTripTime()
        let datagramSize = 1_200
        const pacer = make({ controller: path, rtt, datagramSize })
        let now = any(0, second)
        for (let step = 0; step < 200; step++) {
          const why = `seed ${seed}, step ${step}`
          now += [0, 1, any(1, 5_000), any(1, 3_600 * second)][any(0, 3)]!
          const what = any(0, 6)
          if (what < 3) for (let i = any(1, 12); i > 0; i--) pacer.handleSent(now, any(1, datagramSize))
          else if (what === 3) pacer.rest(now)
          else if (what === 4) pacer.setDatagramSize((datagramSize = [1_200, 1_452][any(0, 1)]!))
          else if (what === 5) rtt.update([1, any(1, 500_000), any(1, 60 * second)][any(0, 2)]!, 0)
          else {
            path.window = [2 * datagramSize, any(2 * datagramSize, 1_000_000), 2 ** 30][any(0, 2)]!
            path.inSlowStart = any(0, 1) === 0
          }
          const at = pacer.paceAt(now)
          assert.isTrue(Number.isFinite(at) && at >= now, `${at} at ${now}, ${why}`)
          if (any(0, 1) === 0) continue
          now = at
          assert.strictEqual(pacer.paceAt(now), now, why)
        }
      }
    })
  })
}
