/**
 * A stream type says what the records of an input are: its name, its shape and how a value becomes the bytes of a
 * record. Both ends declare the same one, usually from one shared module.
 */
import { type Id64, longestName } from "@pure-link/wire"
import * as Data from "effect/Data"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import { shapeOfFormat, shapeOfSchema } from "./shape.ts"

/** Values as the bytes of consecutive records: record `i` is the `sizes[i]` bytes after those before it. */
export interface RecordBytes {
  readonly bytes: Uint8Array
  readonly sizes: Uint32Array
}

/** A value could not become a record. Nothing was appended. */
export class UnencodableValue extends Data.TaggedError("UnencodableValue")<{
  readonly input: string
  /** Which value of those handed over, from 0. */
  readonly index: number
  /** What its schema found wrong with it. */
  readonly detail: string
}> {
  override get message(): string {
    return (
      `value ${this.index} is no record of input "${this.input}": ${this.detail}; ` +
      "correct the value, nothing was appended"
    )
  }
}

/**
 * A stored record could not become a value, although its shape is that of the input: its sender wrote other bytes than
 * its schema says, or a check that no JSON Schema can express differs. The consumer's cursor stays before it.
 */
export class UndecodableRecord extends Data.TaggedError("UndecodableRecord")<{
  readonly input: string
  readonly source: string
  /** The position in the input's log. */
  readonly position: number
  readonly detail: string
}> {
  override get message(): string {
    return (
      `record ${this.position} of input "${this.input}", from "${this.source}", is no value: ${this.detail}; ` +
      `correct the schema, or step over it with acknowledge(consumer, ${this.position})`
    )
  }
}

/** The records of one input. Made by `StreamType.make` or `StreamType.bytes`. */
export interface StreamType<A> {
  /** The name of the input: 1 to 64 B of UTF-8. */
  readonly input: string
  /** The fingerprint of the record type; a receiver refuses streams of another (reason 2, spec §11.1). */
  readonly shape: Id64
  /** Values to records; fails with the first value that is none. */
  readonly encode: (values: ReadonlyArray<A>) => Result.Result<RecordBytes, UnencodableValue>
  /** One record to its value; the failure is a description. */
  readonly decode: (bytes: Uint8Array) => Result.Result<A, string>
}

/** A name that cannot travel. Thrown where a stream type is declared; a failure of `Output.open`. */
export class InvalidName extends Data.TaggedError("InvalidName")<{
  readonly kind: "input" | "source"
  readonly name: string
}> {
  override get message(): string {
    return (
      `${JSON.stringify(this.name)} is no name of ${this.kind === "input" ? "an input" : "a source"}: ` +
      `use 1 to ${longestName} B of UTF-8`
    )
  }
}

const encoder = new TextEncoder()
const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true })

/** Whether a name of a source or input can travel: 1 to 64 B of well-formed UTF-8 (spec §4.3). */
export const isName = (name: string): boolean => {
  const length = encoder.encode(name).length
  return length >= 1 && length <= longestName && name.isWellFormed()
}

const checkName = (input: string): void => {
  if (!isName(input)) throw new InvalidName({ kind: "input", name: input })
}

/**
 * Declares an input whose records are values of a schema, as UTF-8 JSON (`Schema.toCodecJson`).
 *
 * The shape is the fingerprint of the JSON Schema of the encoded side: it changes when a valid record of before and
 * after may differ (a property, its type, optionality, a check such as a length or a pattern), and not with the order
 * of properties, names of schemas, descriptions, defaults or brands. An input whose shape changed is refused at once
 * instead of failing later. Custom filters do not show in it.
 *
 * Throws `InvalidName`.
 *
 * @example
 * ```ts
 * const Reading = Schema.Struct({ sensor: Schema.String, celsius: Schema.Finite })
 * const readings = StreamType.make("readings", Reading)
 * ```
 */
const make = <A, E>(input: string, schema: Schema.Codec<A, E>): StreamType<A> => {
  checkName(input)
  const codec = Schema.toCodecJson(schema)
  const encodeValue = Schema.encodeUnknownResult(codec)
  const decodeValue = Schema.decodeUnknownResult(codec)
  const encode = (values: ReadonlyArray<A>): Result.Result<RecordBytes, UnencodableValue> => {
    const texts: Array<Uint8Array> = []
    for (const [index, value] of values.entries()) {
      const json = encodeValue(value)
      if (Result.isFailure(json)) {
        return Result.fail(new UnencodableValue({ input, index, detail: json.failure.message }))
      }
      texts.push(encoder.encode(JSON.stringify(json.success)))
    }
    return Result.succeed(joinRecords(texts))
  }
  const decode = (bytes: Uint8Array): Result.Result<A, string> => {
    const json = parse(bytes)
    if (Result.isFailure(json)) return Result.fail(json.failure)
    return Result.mapError(decodeValue(json.success), (error) => error.message)
  }
  return { input, shape: shapeOfSchema(schema), encode, decode }
}

/**
 * Declares an input whose records are bytes as they are. The shape is the fingerprint of the format's name, which both
 * ends choose alike, such as `"image/png"` or `"telemetry v3"`. Throws `InvalidName`.
 */
const bytes = (input: string, format: string): StreamType<Uint8Array> => {
  checkName(input)
  return {
    input,
    shape: shapeOfFormat(format),
    encode: (values) => Result.succeed(joinRecords(values)),
    decode: (record) => Result.succeed(record)
  }
}

/** Declares stream types. */
export const StreamType = { make, bytes } as const

/** Records one after another in one buffer, with their sizes. */
export const joinRecords = (records: ReadonlyArray<Uint8Array>): RecordBytes => {
  const sizes = Uint32Array.from(records, (record) => record.length)
  const joined = new Uint8Array(sizes.reduce((sum, size) => sum + size, 0))
  let offset = 0
  for (const record of records) {
    joined.set(record, offset)
    offset += record.length
  }
  return { bytes: joined, sizes }
}

const parse = (record: Uint8Array): Result.Result<unknown, string> => {
  try {
    return Result.succeed(JSON.parse(decoder.decode(record)))
  } catch (error) {
    return Result.fail(`it is no JSON text: ${error instanceof Error ? error.message : String(error)}`)
  }
}
