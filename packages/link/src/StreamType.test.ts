import { assert, describe, it } from "@effect/vitest"
import * as Arbitrary from "effect/Arbitrary"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import { renderSchema } from "./shape.ts"
import { InvalidName, joinRecords, StreamType } from "./StreamType.ts"

const Reading = Schema.Struct({
  sensor: Schema.String,
  celsius: Schema.Finite,
  at: Schema.DateTimeUtcFromString,
  raw: Schema.optionalKey(Schema.Uint8Array),
  total: Schema.BigInt
})
const shape = (schema: Schema.Codec<unknown, unknown>) => StreamType.make("x", schema).shape

describe("StreamType", () => {
  it("has a shape that stays the same from process to process and version to version", () => {
    // Frozen: a change here cuts off every deployed sender of this type.
    assert.strictEqual(shape(Reading).toString(16), "c450fabdbeb265f9")
    assert.strictEqual(StreamType.bytes("x", "image/png").shape.toString(16), "622380c080ef23fd")
  })

  it("does not change its shape with what no record shows", () => {
    const plain = Schema.Struct({ name: Schema.String, level: Schema.Literals(["low", "high"]) })
    const reordered = Schema.Struct({ level: Schema.Literals(["high", "low"]), name: Schema.String })
    const annotated = Schema.Struct({
      name: Schema.String.annotate({ title: "Name", description: "what it is called", examples: ["a"] }),
      level: Schema.Literals(["low", "high"])
    }).annotate({ identifier: "Thing", description: "a thing" })
    const branded = Schema.Struct({
      name: Schema.String.pipe(Schema.brand("Name")),
      level: Schema.Literals(["low", "high"])
    })
    class Named extends Schema.Class<Named>("SomeName")({
      name: Schema.String,
      level: Schema.Literals(["low", "high"])
    }) {}
    for (const other of [reordered, annotated, branded, Named]) assert.strictEqual(shape(other), shape(plain))
  })

  it("does not change its shape with the names of the parts of a recursive type", () => {
    const tree = (identifier: string) => {
      interface Tree {
        readonly label: string
        readonly children: ReadonlyArray<Tree>
      }
      const Tree: Schema.Codec<Tree> = Schema.Struct({
        label: Schema.String,
        children: Schema.Array(Schema.suspend((): Schema.Codec<Tree> => Tree))
      }).annotate({ identifier })
      return Tree
    }
    assert.strictEqual(shape(tree("Tree")), shape(tree("Baum")))
  })

  it("changes its shape with everything that a record shows", () => {
    const variants = [
      Schema.Struct({ a: Schema.String }),
      Schema.Struct({ b: Schema.String }),
      Schema.Struct({ a: Schema.Finite }),
      Schema.Struct({ a: Schema.Int }),
      Schema.Struct({ a: Schema.optionalKey(Schema.String) }),
      Schema.Struct({ a: Schema.NullOr(Schema.String) }),
      Schema.Struct({ a: Schema.String.check(Schema.isMinLength(2)) }),
      Schema.Struct({ a: Schema.Literals(["x", "y"]) }),
      Schema.Struct({ a: Schema.Array(Schema.String) }),
      Schema.Struct({ a: Schema.String, b: Schema.String }),
      Schema.Struct({ title: Schema.String }),
      Schema.Struct({ description: Schema.String }),
      Schema.Tuple([Schema.String, Schema.Finite]),
      Schema.Tuple([Schema.Finite, Schema.String]),
      Schema.String
    ]
    const shapes = [
      ...variants.map((schema) => shape(schema)),
      StreamType.bytes("x", "").shape,
      StreamType.bytes("x", "a").shape
    ]
    assert.strictEqual(new Set(shapes).size, shapes.length)
  })

  it("renders a property called like a keyword as a property", () => {
    assert.include(
      renderSchema(Schema.Struct({ title: Schema.String, enum: Schema.Finite })),
      '"title":{"type":"string"}'
    )
  })

  it.prop("gives back every value that it encoded", [Arbitrary.array(Arbitrary.schema(Reading))], ([values]) => {
    const type = StreamType.make("readings", Reading)
    const records = Result.getOrThrow(type.encode(values))
    const equal = Schema.toEquivalence(Reading)
    let offset = 0
    assert.strictEqual(records.sizes.length, values.length)
    for (const [index, size] of records.sizes.entries()) {
      assert.isTrue(
        equal(Result.getOrThrow(type.decode(records.bytes.subarray(offset, offset + size))), values[index]!)
      )
      offset += size
    }
    assert.strictEqual(offset, records.bytes.length)
  })

  it("says which value cannot be encoded and why", () => {
    const type = StreamType.make("n", Schema.Struct({ n: Schema.Natural }))
    const encoded = type.encode([{ n: 1 }, { n: -1 }])
    assert.isTrue(Result.isFailure(encoded))
    if (Result.isFailure(encoded)) {
      assert.strictEqual(encoded.failure.index, 1)
      assert.match(encoded.failure.message, /value 1 .* "n".*greater than or equal to 0/s)
    }
  })

  it("decodes no garbage", () => {
    const type = StreamType.make("n", Schema.Struct({ n: Schema.Natural }))
    for (const text of ["", "{", "{}", '{"n":-1}', '{"n":"1"}', "\ud800"]) {
      assert.isTrue(Result.isFailure(type.decode(new TextEncoder().encode(text))), text)
    }
    assert.isTrue(Result.isFailure(type.decode(Uint8Array.of(0x22, 0xff, 0x22))))
  })

  it("refuses names that cannot travel", () => {
    for (const name of ["", "x".repeat(65), "ä".repeat(33), "\ud800"]) {
      assert.throws(() => StreamType.bytes(name, "raw"), InvalidName)
    }
    assert.strictEqual(StreamType.bytes("ä".repeat(32), "raw").input.length, 32)
  })

  it("joins records, empty ones too", () => {
    const { bytes, sizes } = joinRecords([Uint8Array.of(1, 2), new Uint8Array(0), Uint8Array.of(3)])
    assert.deepStrictEqual([...bytes], [1, 2, 3])
    assert.deepStrictEqual([...sizes], [2, 0, 1])
  })
})
