/**
 * `pure-link outbox`: looks into an outbox file, also while another process owns it.
 */
import { readOutbox } from "@pure-link/store"
import { endOf } from "@pure-link/wire"
import * as Command from "effect/cli/Command"
import * as Flag from "effect/cli/Flag"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import { toFailure } from "../failure.ts"
import { atLeastOne, json, showing, shownCount } from "../options.ts"
import { grouped, print, printJson, printRaw, records, say } from "../output.ts"
import { describeRecord, recordAsJson } from "../recordText.ts"

const store = Flag.String("store").pipe(
  Flag.withDescription("The outbox file (default: outbox.db)"),
  Flag.withDefault("outbox.db")
)

const list = Command.make(
  "list",
  { store, json },
  Effect.fnUntraced(
    function* (flags) {
      const state = yield* (yield* readOutbox(flags.store)).state
      if (flags.json) return yield* printJson({ file: flags.store, ...state })
      const held = state.last - state.lowestHeld + 1
      yield* print(`${flags.store}: "${state.stream.source}" → "${state.stream.input}"`)
      yield* print(`${records(held)} held (${grouped(state.heldBytes)} B), ${grouped(state.last)} appended in all`)
    },
    Effect.scoped,
    Effect.mapError(toFailure)
  )
).pipe(Command.withDescription("What the outbox is for and what it holds"))

const count = Command.make(
  "count",
  { store, json },
  Effect.fnUntraced(
    function* (flags) {
      const state = yield* (yield* readOutbox(flags.store)).state
      const held = state.last - state.lowestHeld + 1
      yield* flags.json ? printJson({ held, bytes: state.heldBytes, last: state.last }) : print(String(held))
    },
    Effect.scoped,
    Effect.mapError(toFailure)
  )
).pipe(Command.withDescription("How many records wait to be stored by the peer"))

const show = Command.make(
  "show",
  {
    store,
    ...showing,
    from: Flag.Int("from").pipe(
      Flag.withDescription("The first record number (default: the lowest held)"),
      Flag.optional
    )
  },
  Effect.fnUntraced(
    function* (flags) {
      const reader = yield* readOutbox(flags.store)
      const { last, lowestHeld } = yield* reader.state
      const from = Option.isSome(flags.from) ? yield* atLeastOne("--from", flags.from.value) : 1
      let number = Math.max(from, lowestHeld)
      for (let left = yield* shownCount(flags); left > 0;) {
        const batch = yield* reader.read(number, { records: Math.min(left, 1_024), bytes: 1_048_576 })
        if (batch.sizes.length === 0) return
        let at = 0
        for (const [index, size] of batch.sizes.entries()) {
          yield* showRecord(batch.first + index, batch.bytes.subarray(at, (at += size)), flags)
        }
        left -= batch.sizes.length
        number = endOf(batch)
      }
      if (number <= last) yield* say(`… ${records(last - number + 1)} more; see --count and --from`)
    },
    Effect.scoped,
    Effect.mapError(toFailure)
  )
).pipe(Command.withDescription("The records that wait, in order"))

const showRecord = (
  number: number,
  bytes: Uint8Array,
  flags: { readonly raw: boolean; readonly json: boolean }
): Effect.Effect<void> =>
  flags.raw
    ? printRaw(bytes)
    : flags.json
      ? printJson({ number, ...recordAsJson(bytes) })
      : print(`${number}  ${describeRecord(bytes)}`)

export const outbox = Command.make("outbox").pipe(
  Command.withDescription("Look into an outbox file"),
  Command.withSubcommands([list, count, show])
)
