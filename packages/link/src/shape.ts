/**
 * The shape of a record type: the fingerprint by which both ends know that they mean the same records (spec §1, §8.1).
 *
 * It is the first 8 B of SHA-256 over a label and a canonical rendering. For JSON records that is the JSON Schema
 * (draft 2020-12) of what travels, freed of everything that does not change which bytes are valid: order of properties,
 * names of definitions, titles, descriptions, examples, defaults. `docs/library.md` tells users what does change it.
 */
import { nobleSuite } from "@pure-link/keys"
import type { Id64 } from "@pure-link/wire"
import * as Schema from "effect/Schema"

type Json = null | boolean | number | string | ReadonlyArray<Json> | { readonly [key: string]: Json }
type JsonObject = { readonly [key: string]: Json }

/** Keywords that speak to people, not to a validator. */
const annotations = new Set(["title", "description", "default", "examples", "readOnly", "writeOnly", "$comment"])
/** Keywords whose keys are names that the author chose; their values are schemas. */
const named = new Set(["properties", "patternProperties"])
/** Keywords whose values are data, not schemas. */
const data = new Set(["const", "enum", "required"])
/** Among those, the ones whose order says nothing. */
const sets = new Set(["enum", "required"])

const definitionPrefix = "#/$defs/"

const isObject = (value: Json): value is JsonObject =>
  typeof value === "object" && value !== null && !Array.isArray(value)

/** JSON text with sorted keys: one text per value, whatever order it was built in. */
export const canonicalJson = (value: Json): string => {
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join(",")}]`
  if (!isObject(value)) return JSON.stringify(value)
  const entries = Object.keys(value)
    .sort()
    .map((key) => `${JSON.stringify(key)}:${canonicalJson(value[key]!)}`)
  return `{${entries.join(",")}}`
}

const sorted = (values: ReadonlyArray<Json>): ReadonlyArray<Json> =>
  values
    .map((value) => [canonicalJson(value), value] as const)
    .sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0))
    .map(([, value]) => value)

/**
 * A schema without annotations and without names of definitions: each reference is replaced by what it names, and one
 * that leads back into a definition being written says how many definitions out that is.
 */
const canonicalSchema = (schema: Json, definitions: JsonObject, open: ReadonlyArray<string>): Json => {
  if (Array.isArray(schema)) return schema.map((member) => canonicalSchema(member, definitions, open))
  if (!isObject(schema)) return schema
  const reference = schema["$ref"]
  if (typeof reference === "string" && reference.startsWith(definitionPrefix)) {
    const name = reference.slice(definitionPrefix.length).replaceAll("~1", "/").replaceAll("~0", "~")
    const depth = open.lastIndexOf(name)
    if (depth >= 0) return { $ref: open.length - depth }
    return canonicalSchema(definitions[name] ?? {}, definitions, [...open, name])
  }
  const rendered: Record<string, Json> = {}
  for (const [key, value] of Object.entries(schema)) {
    if (annotations.has(key)) continue
    if (sets.has(key)) rendered[key] = sorted(value as ReadonlyArray<Json>)
    else if (data.has(key)) rendered[key] = value
    else if (named.has(key)) rendered[key] = canonicalNamed(value as JsonObject, definitions, open)
    else rendered[key] = canonicalSchema(value, definitions, open)
  }
  return rendered
}

const canonicalNamed = (schemas: JsonObject, definitions: JsonObject, open: ReadonlyArray<string>): Json =>
  Object.fromEntries(
    Object.entries(schemas).map(([name, schema]) => [name, canonicalSchema(schema, definitions, open)])
  )

/** The canonical rendering of what a schema's values look like on the wire; what `shapeOfSchema` hashes. */
export const renderSchema = (schema: Schema.Constraint): string => {
  const document = Schema.toJsonSchemaDocument(schema)
  return canonicalJson(canonicalSchema(document.schema as JsonObject, document.definitions as JsonObject, []))
}

const fingerprint = (kind: string, text: string): Id64 => {
  const digest = nobleSuite.derivation.sha256(new TextEncoder().encode(`pure-link 1 shape ${kind} ${text}`))
  return new DataView(digest.buffer, digest.byteOffset, 8).getBigUint64(0)
}

/** The shape of JSON records of a schema. */
export const shapeOfSchema = (schema: Schema.Constraint): Id64 => fingerprint("json", renderSchema(schema))

/** The shape of raw records of a named format. */
export const shapeOfFormat = (format: string): Id64 => fingerprint("bytes", format)
