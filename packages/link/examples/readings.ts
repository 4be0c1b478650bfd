import { StreamType } from "@pure-link/link"
import * as Schema from "effect/Schema"

export const Reading = Schema.Struct({
  sensor: Schema.String,
  celsius: Schema.Finite,
  takenAt: Schema.DateTimeUtcFromString
})
export type Reading = typeof Reading.Type

/** Imported by the sender and the receiver alike. */
export const readings = StreamType.make("readings", Reading)
