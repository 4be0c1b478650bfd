/**
 * `pure-link inbox`: looks into an inbox file, also while another process owns it; and, while none does, lets an operator
 * forget which outboxes were replaced.
 */
import { Inbox, type InboxRecord, inboxRecords, type InputSummary, lastPositionOf } from "@pure-link/ports"
import { InboxSqlite, readInbox } from "@pure-link/store"
import * as Command from "effect/cli/Command"
import * as Flag from "effect/cli/Flag"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import { badInput, type Failure, toFailure } from "../failure.ts"
import { atLeastOne, json, showing, shownCount } from "../options.ts"
import { grouped, print, printJson, printRaw, records, say } from "../output.ts"
import { describeRecord, recordAsJson } from "../recordText.ts"

const store = Flag.String("store").pipe(
  Flag.withDescription("The inbox file (default: inbox.db)"),
  Flag.withDefault("inbox.db")
)

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
        const { bytes, consumers, input, lastPosition, sources } = summary
        yield* print(`${input}: ${records(summary.records)} (${grouped(bytes)} B), last position ${lastPosition}`)
        for (const { n, source } of sources)
          yield* print(`  from "${source}": through ${grouped(n)} of its present outbox`)
        for (const { consumer, position } of consumers) yield* print(`  consumer "${consumer}": at ${position}`)
      }
    },
    Effect.scoped,
    Effect.mapError(toFailure)
  )
).pipe(Command.withDescription("The inputs, their sources and consumers"))

/** The summary of an input that must exist. */
const summaryOf = (
  summaries: ReadonlyArray<InputSummary>,
  input: string,
  file: string
): Effect.Effect<InputSummary, Failure> => {
  const found = summaries.find((summary) => summary.input === input)
  if (found !== undefined) return Effect.succeed(found)
  const known = summaries.map((summary) => `"${summary.input}"`).join(", ")
  return Effect.fail(badInput(`${file} has no input "${input}"; it has ${known === "" ? "none" : known}`))
}

const count = Command.make(
  "count",
  { store, json, input: Flag.String("input").pipe(Flag.withDescription("Only this input"), Flag.optional) },
  Effect.fnUntraced(
    function* (flags) {
      const all = yield* (yield* readInbox(flags.store)).summaries
      const counted = Option.isSome(flags.input) ? [yield* summaryOf(all, flags.input.value, flags.store)] : all
      const total = counted.reduce((sum, summary) => sum + summary.records, 0)
      if (!flags.json) return yield* print(String(total))
      yield* printJson({ records: total, inputs: counted.map(({ input, records }) => ({ input, records })) })
    },
    Effect.scoped,
    Effect.mapError(toFailure)
  )
).pipe(Command.withDescription("How many records are stored and not pruned"))

const show = Command.make(
  "show",
  {
    store,
    ...showing,
    input: Flag.String("input").pipe(Flag.withDescription("The input (required)")),
    from: Flag.Int("from").pipe(
      Flag.withDescription("The first position (default: 1, or the first that is held)"),
      Flag.withDefault(1)
    )
  },
  Effect.fnUntraced(
    function* (flags) {
      const reader = yield* readInbox(flags.store)
      const { lastPosition } = yield* summaryOf(yield* reader.summaries, flags.input, flags.store)
      let after = (yield* atLeastOne("--from", flags.from)) - 1
      for (let left = yield* shownCount(flags); left > 0;) {
        const found = yield* reader.read(flags.input, after, { records: Math.min(left, 1_024), bytes: 1_048_576 })
        if (found.sizes.length === 0) return
        for (const record of inboxRecords(found)) yield* showRecord(record, flags)
        left -= found.sizes.length
        after = lastPositionOf(found)
      }
      if (after < lastPosition) yield* say(`… ${records(lastPosition - after)} more; see --count and --from`)
    },
    Effect.scoped,
    Effect.mapError(toFailure)
  )
).pipe(Command.withDescription("The records of an input, in order"))

const showRecord = (
  { bytes, number, position, source }: InboxRecord,
  flags: { readonly raw: boolean; readonly json: boolean }
): Effect.Effect<void> =>
  flags.raw
    ? printRaw(bytes)
    : flags.json
      ? printJson({ position, source, number, ...recordAsJson(bytes) })
      : print(`${position}  ${source} ${number}  ${describeRecord(bytes)}`)

/** The file must be there and have the stream: a misspelt name would forget nothing, and say so as if all were well. */
const knownSource = Effect.fnUntraced(function* (flags: {
  readonly store: string
  readonly input: string
  readonly source: string
}) {
  const { summaries } = yield* readInbox(flags.store)
  const { sources } = yield* summaryOf(yield* summaries, flags.input, flags.store)
  if (sources.some(({ source }) => source === flags.source)) return
  const known = sources.map(({ source }) => `"${source}"`).join(", ")
  return yield* Effect.fail(
    badInput(`input "${flags.input}" has no source "${flags.source}"; it has ${known === "" ? "none" : known}`)
  )
}, Effect.scoped)

const forgetRetired = Command.make(
  "forget-retired",
  {
    store,
    json,
    input: Flag.String("input").pipe(Flag.withDescription("The input (required)")),
    source: Flag.String("source").pipe(
      Flag.withDescription("The source whose replaced outboxes are forgotten (required)")
    )
  },
  Effect.fnUntraced(function* (flags) {
    const { input, source } = flags
    yield* knownSource(flags)
    const forgotten = yield* Effect.flatMap(Inbox, (opened) => opened.forgetRetired({ source, input })).pipe(
      Effect.provide(InboxSqlite.layer({ file: flags.store }))
    )
    if (flags.json) return yield* printJson({ input, source, forgotten })
    yield* print(`${grouped(forgotten)} replaced ${forgotten === 1 ? "outbox" : "outboxes"} of "${source}" forgotten`)
  }, Effect.mapError(toFailure))
).pipe(
  Command.withDescription(
    "Forget which outboxes of a source were replaced, so that a new one is accepted; serve must be stopped"
  )
)

export const inbox = Command.make("inbox").pipe(
  Command.withDescription("Look into an inbox file"),
  Command.withSubcommands([list, count, show, forgetRetired])
)
