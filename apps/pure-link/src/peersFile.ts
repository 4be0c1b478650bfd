/**
 * Who may send changes while `serve` runs: on SIGHUP the peers file is read again and the difference applied. A file that
 * cannot be used changes nothing.
 */
import { Inputs } from "@pure-link/link"
import * as Effect from "effect/Effect"
import * as Latch from "effect/Latch"
import type * as Scope from "effect/Scope"
import { type Failure, toFailure } from "./failure.ts"
import { grouped, printJson, say } from "./output.ts"
import { allPeers, type AllowedPeer, changeOf } from "./peers.ts"

export interface PeersSources {
  /** Whom flags allow; they stay allowed whatever the file says. */
  readonly named: ReadonlyArray<AllowedPeer>
  readonly file: string
  /** Whom the receiver allows now. */
  readonly present: ReadonlyArray<AllowedPeer>
}

/** A latch that every SIGHUP opens, until the scope closes; several before it is looked at are one. */
export const hangups: Effect.Effect<Latch.Latch, never, Scope.Scope> = Effect.acquireRelease(
  Effect.sync(() => {
    const latch = Latch.makeUnsafe(false)
    const open = () => latch.openUnsafe()
    process.on("SIGHUP", open)
    return { latch, open }
  }),
  ({ open }) => Effect.sync(() => process.removeListener("SIGHUP", open))
).pipe(Effect.map(({ latch }) => latch))

/** Reads the file again at each hangup, for ever. */
export const followPeersFile = (
  hangup: Latch.Latch,
  sources: PeersSources,
  asJson: boolean
): Effect.Effect<never, never, Inputs> =>
  Effect.gen(function* () {
    let { present } = sources
    for (;;) {
      yield* hangup.await
      hangup.closeUnsafe()
      const read = yield* Effect.result(allPeers(sources.named, sources.file))
      if (read._tag === "Failure") {
        yield* tellKept(read.failure, asJson)
        continue
      }
      const applied = yield* Effect.result(apply(present, read.success))
      if (applied._tag === "Failure") yield* tellKept(toFailure(applied.failure), asJson)
      else {
        present = read.success
        yield* tellChange(applied.success, present.length, asJson)
      }
    }
  })

/** Removes first: an added key may have the key id of a removed one. */
const apply = Effect.fnUntraced(function* (present: ReadonlyArray<AllowedPeer>, next: ReadonlyArray<AllowedPeer>) {
  const inputs = yield* Inputs
  const { added, changed, removed } = changeOf(present, next)
  for (const { publicKey } of removed) yield* inputs.revoke(publicKey)
  for (const peer of [...changed, ...added]) yield* inputs.allow(peer)
  return { added: added.length, removed: removed.length, changed: changed.length }
})

const tellChange = (
  counts: { readonly added: number; readonly removed: number; readonly changed: number },
  peers: number,
  asJson: boolean
): Effect.Effect<void> =>
  asJson
    ? printJson({ event: "peersChanged", ...counts, peers })
    : say(
        `peers: ${grouped(counts.added)} added, ${grouped(counts.removed)} removed, ${grouped(counts.changed)} changed; ` +
          `${grouped(peers)} may send now`
      )

const tellKept = ({ text }: Failure, asJson: boolean): Effect.Effect<void> =>
  Effect.andThen(
    say(`peers are what they were: ${text}`),
    asJson ? printJson({ event: "peersKept", message: text }) : Effect.void
  )
