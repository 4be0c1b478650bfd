import { assert, describe, it } from "@effect/vitest"
import * as Schema from "effect/Schema"
import { silentTrace } from "./trace.ts"
import { TraceEvent } from "./traceEvent.ts"

const Json = Schema.toCodecJson(TraceEvent)
const same = Schema.toEquivalence(TraceEvent)

describe("TraceEvent", () => {
  it.prop(
    "crosses JSON text and back, ids of 64 bits included",
    [TraceEvent],
    ([event]) => {
      const text = JSON.stringify(Schema.encodeSync(Json)(event))
      assert.isTrue(same(Schema.decodeUnknownSync(Json)(JSON.parse(text)), event), text)
    },
    { arbitrary: { runs: 300, seed: 7 } }
  )

  it("refuses what no machine emits", () => {
    const accepts = Schema.is(TraceEvent)
    assert.isTrue(accepts({ _tag: "Stored", at: 1, n: 2, creditRecords: 3, creditBytes: 4 }))
    assert.isFalse(accepts({ _tag: "Stored", at: 1, n: -2, creditRecords: 3, creditBytes: 4 }))
    assert.isFalse(accepts({ _tag: "PacketDropped", at: 1, bytes: 2, reason: "boredom" }))
    assert.isFalse(accepts({ _tag: "Applause", at: 1 }))
  })

  it("the silent trace wants no packets", () => {
    assert.isFalse(silentTrace.packets)
  })
})
