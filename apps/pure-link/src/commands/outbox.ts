/**
 * `pure-link outbox`: looks into an outbox file, also while another process owns it.
 */
import { readOutbox } from "@pure-link/store"
import { endOf } from "@pure-link/wire"
import * as Command from "effect/cli/Command"
import * as Flag from "effect/cli/Flag"
import * as Effect from "effect/Effect"
import { toFailure } from "../failure.ts"
import { count, json } from "../options.ts"
import { grouped, print, printJson } from "../output.ts"
import { describeRecord, recordAsJson } from "../recordText.ts"

const store = Flag.String("store").pipe(Flag.withDescription("The outbox file"), Flag.withDefault("outbox.db"))

const list = Command.make(
  "list",
  { store, json },
  Effect.fnUntraced(
    function* (flags) {
      const reader = yield* readOutbox(flags.store)
      const state = yield* reader.state
      if (flags.json) return yield* printJson({ file: flags.store, ...state })
      const held = state.last - state.lowestHeld + 1
      yield* print(`${flags.store}: "${state.stream.source}" → "${state.stream.input}"`)
      yield* print(
        `${grouped(held)} records held (${grouped(state.heldBytes)} B), ${grouped(state.last)} appended in all`
      )
    },
    Effect.scoped,
    Effect.mapError(toFailure)
  )
).pipe(Command.withDescription("What the outbox is for and what it holds"))

const countCommand = Command.make(
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
    json,
    count,
    from: Flag.Int("from").pipe(
      Flag.withDescription("The first record number (default: the lowest held)"),
      Flag.withDefault(0)
    )
  },
  Effect.fnUntraced(
    function* (flags) {
      const reader = yield* readOutbox(flags.store)
      let number = Math.max(flags.from, (yield* reader.state).lowestHeld)
      for (let left = flags.count; left > 0;) {
        const batch = yield* reader.read(number, { records: Math.min(left, 1_024), bytes: 1_048_576 })
        if (batch.sizes.length === 0) return
        let at = 0
        for (const [index, size] of batch.sizes.entries()) {
          const bytes = batch.bytes.subarray(at, (at += size))
          yield* flags.json
            ? printJson({ number: batch.first + index, ...recordAsJson(bytes) })
            : print(`${batch.first + index}  ${describeRecord(bytes)}`)
        }
        left -= batch.sizes.length
        number = endOf(batch)
      }
    },
    Effect.scoped,
    Effect.mapError(toFailure)
  )
).pipe(Command.withDescription("The records that wait, in order"))

export const outbox = Command.make("outbox").pipe(
  Command.withDescription("Look into an outbox file"),
  Command.withSubcommands([list, countCommand, show])
)
