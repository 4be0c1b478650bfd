/**
 * `pure-link inbox`: looks into an inbox file, also while another process owns it.
 */
import { readInbox } from "@pure-link/store"
import * as Command from "effect/cli/Command"
import * as Flag from "effect/cli/Flag"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import { badInput, toFailure } from "../failure.ts"
import { count, json } from "../options.ts"
import { grouped, print, printJson } from "../output.ts"
import { describeRecord, recordAsJson, writeRaw } from "../recordText.ts"

const store = Flag.String("store").pipe(Flag.withDescription("The inbox file"), Flag.withDefault("inbox.db"))

const list = Command.make(
  "list",
  { store, json },
  Effect.fnUntraced(
    function* (flags) {
      for (const summary of yield* (yield* readInbox(flags.store)).summaries) {
        if (flags.json) {
          yield* printJson(summary)
          continue
        }
        yield* print(
          `${summary.input}: ${grouped(summary.records)} records (${grouped(summary.bytes)} B), ` +
            `last position ${summary.lastPosition}`
        )
        for (const { n, source } of summary.sources) yield* print(`  from "${source}": ${grouped(n)} stored`)
        for (const { consumer, position } of summary.consumers) yield* print(`  consumer "${consumer}": at ${position}`)
      }
    },
    Effect.scoped,
    Effect.mapError(toFailure)
  )
).pipe(Command.withDescription("The inputs, their sources and consumers"))

const countCommand = Command.make(
  "count",
  {
    store,
    json,
    input: Flag.String("input").pipe(Flag.withDescription("Only this input"), Flag.optional)
  },
  Effect.fnUntraced(
    function* (flags) {
      const summaries = (yield* (yield* readInbox(flags.store)).summaries).filter(
        (summary) => Option.isNone(flags.input) || summary.input === flags.input.value
      )
      const records = summaries.reduce((sum, summary) => sum + summary.records, 0)
      yield* flags.json
        ? printJson({ records, inputs: summaries.map(({ input, records }) => ({ input, records })) })
        : print(String(records))
    },
    Effect.scoped,
    Effect.mapError(toFailure)
  )
).pipe(Command.withDescription("How many records are stored and not pruned"))

const show = Command.make(
  "show",
  {
    store,
    json,
    count,
    input: Flag.String("input").pipe(Flag.withDescription("The input")),
    from: Flag.Int("from").pipe(
      Flag.withDescription("The first position (default: the first held)"),
      Flag.withDefault(1)
    ),
    raw: Flag.Boolean("raw").pipe(
      Flag.withDescription("Write the bytes of each record and a newline, nothing else"),
      Flag.withDefault(false)
    )
  },
  Effect.fnUntraced(
    function* (flags) {
      const reader = yield* readInbox(flags.store)
      const summaries = yield* reader.summaries
      if (!summaries.some(({ input }) => input === flags.input)) {
        const known = summaries.map(({ input }) => `"${input}"`).join(", ")
        return yield* Effect.fail(
          badInput(`${flags.store} has no input "${flags.input}"; it has ${known === "" ? "none" : known}`)
        )
      }
      let after = flags.from - 1
      for (let left = flags.count; left > 0;) {
        const records = yield* reader.read(flags.input, after, { records: Math.min(left, 1_024), bytes: 1_048_576 })
        if (records.length === 0) return
        for (const { bytes, number, position, source } of records) {
          if (flags.raw) yield* writeRaw(bytes)
          else if (flags.json) yield* printJson({ position, source, number, ...recordAsJson(bytes) })
          else yield* print(`${position}  ${source} ${number}  ${describeRecord(bytes)}`)
        }
        left -= records.length
        after = records[records.length - 1]!.position
      }
    },
    Effect.scoped,
    Effect.mapError(toFailure)
  )
).pipe(Command.withDescription("The records of an input, in order"))

export const inbox = Command.make("inbox").pipe(
  Command.withDescription("Look into an inbox file"),
  Command.withSubcommands([list, countCommand, show])
)
