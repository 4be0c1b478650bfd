import { assert, describe, it } from "@effect/vitest"
import { livesInMemo, type ReceiverMemo } from "@pure-link/wire"
import * as Effect from "effect/Effect"
import type * as Layer from "effect/Layer"
import type * as Scope from "effect/Scope"
import { Memo, memoSideRuns } from "../Memo.ts"
import type { StoreError } from "../StoreError.ts"
import { followMemoSteps, MemoModel, MemoSteps, peerKey, runOf, secretOf, streamOf } from "./memoModel.ts"

/**
 * What every `Memo` promises, as tests: what was kept is recalled after a restart, what was forgotten is not, and who
 * gives way when there is no room (spec §12.1). An implementation calls this from a test of its own.
 */

/** Where one memo lives, such as a file. */
export interface MemoPlace {
  /** Opens the memo of the place; a second opening after the first was closed is a restart. */
  readonly layer: (capacity: { readonly peers?: number; readonly sideRuns?: number }) => Layer.Layer<Memo, StoreError>
  /** All bytes in which secrets may stand, of a memo that is open or closed. */
  readonly bytes: () => Uint8Array
}

type OpenMemo = Memo["Service"]

/** `runs`: how many random histories the property test tries; fewer where an opening is dear. */
export const memoContract = (
  name: string,
  makePlace: Effect.Effect<MemoPlace, never, Scope.Scope>,
  runs = 300
): void => {
  const opened = <A>(place: MemoPlace, body: (memo: ReceiverMemo, service: OpenMemo) => A, capacity = {}) =>
    Effect.provide(
      Effect.map(Memo, (service) => body(service.memo, service)),
      place.layer(capacity)
    )
  const [alice, bob] = [peerKey(0), peerKey(1)]

  describe(`Memo contract: ${name}`, () => {
    it.effect("recalls after a restart exactly what was kept", () =>
      Effect.gen(function* () {
        const place = yield* makePlace
        const full = { ...runOf(1, true, 6), stream: { ...streamOf(63, livesInMemo), source: "s".repeat(64) } }
        const bare = { ...runOf(2, false, 0), candidate: undefined, stream: undefined }
        yield* opened(place, (memo, { rebuilt }) => {
          assert.isUndefined(rebuilt)
          assert.isUndefined(memo.recall(alice))
          assert.isTrue(memo.keepPeer(alice, secretOf(1)))
          assert.isTrue(memo.keepPeer(bob, secretOf(2)))
          assert.isTrue(memo.keepRun(alice, full))
          assert.isTrue(memo.keepRun(alice, bare))
        })
        yield* opened(place, (memo, { counters, rebuilt }) => {
          assert.isUndefined(rebuilt)
          assert.deepStrictEqual(memo.recall(alice), { staticSecret: secretOf(1), runs: [full, bare] })
          assert.deepStrictEqual(memo.recall(bob), { staticSecret: secretOf(2), runs: [] })
          assert.deepInclude(counters, { peers: 2, runs: 2, evicted: 0, failures: 0 })
        })
      })
    )

    it.effect("takes its own copies of keys and secrets, and gives copies", () =>
      Effect.gen(function* () {
        const place = yield* makePlace
        yield* opened(place, (memo) => {
          const [key, secret, run] = [alice.slice(), secretOf(1), runOf(1, true, 6)]
          memo.keepPeer(key, secret)
          memo.keepRun(key, run)
          for (const bytes of [key, secret, run.current!.secret, run.candidate!.secret]) bytes.fill(0)
          const recalled = memo.recall(alice)
          assert.deepStrictEqual(recalled, { staticSecret: secretOf(1), runs: [runOf(1, true, 6)] })
          recalled!.staticSecret.fill(0)
          recalled!.runs[0]!.candidate!.acceptKey.fill(0)
          assert.deepStrictEqual(memo.recall(alice), { staticSecret: secretOf(1), runs: [runOf(1, true, 6)] })
        })
      })
    )

    it.effect("keeps a run of more lives than it has room for without its stream", () =>
      Effect.gen(function* () {
        const place = yield* makePlace
        yield* opened(place, (memo) => {
          memo.keepPeer(alice, secretOf(1))
          const run = { ...runOf(1, true, 6), stream: streamOf(6, livesInMemo + 1) }
          assert.isTrue(memo.keepRun(alice, run))
          assert.deepStrictEqual(memo.recall(alice)?.runs, [{ ...run, stream: undefined }])
        })
      })
    )

    it.effect("remembers no run of a peer that is not kept", () =>
      Effect.gen(function* () {
        const place = yield* makePlace
        yield* opened(place, (memo) => {
          assert.isFalse(memo.keepRun(alice, runOf(1, true, 1)))
          memo.forgetRun(alice, 1n)
          memo.forgetPeer(alice)
          assert.isUndefined(memo.recall(alice))
        })
      })
    )

    it.effect("overwrites what it forgets, first runs, further runs and peers", () =>
      Effect.gen(function* () {
        const place = yield* makePlace
        const holds = (secret: Uint8Array) => Buffer.from(place.bytes()).includes(Buffer.from(secret))
        const runs = [1, 2, 3].map((n) => ({ ...runOf(n, true, 40 * n + 1), stream: undefined }))
        yield* opened(place, (memo) => {
          memo.keepPeer(alice, secretOf(1))
          for (const run of runs) memo.keepRun(alice, run)
          for (const run of runs) assert.isTrue(holds(run.candidate!.secret))
          memo.forgetRun(alice, runs[0]!.run)
          memo.forgetRun(alice, runs[2]!.run)
          assert.deepStrictEqual(memo.recall(alice)?.runs, [runs[1]!])
          const left = runs.map(({ candidate, current }) => [current!, candidate!].map(({ secret }) => holds(secret)))
          assert.deepStrictEqual(left, [
            [false, false],
            [true, true],
            [false, false]
          ])
          memo.forgetPeer(alice)
          assert.isUndefined(memo.recall(alice))
          for (const secret of [secretOf(1), alice, runs[1]!.candidate!.acceptKey]) assert.isFalse(holds(secret))
        })
        yield* opened(place, (memo) => assert.isUndefined(memo.recall(alice)))
      })
    )

    it.effect("lets the peer go that was kept longest ago without a live run, and none that has one", () =>
      Effect.gen(function* () {
        const place = yield* makePlace
        const capacity = { peers: 3 }
        const kept = (memo: ReceiverMemo) => [0, 1, 2, 3, 4].filter((peer) => memo.recall(peerKey(peer)) !== undefined)
        yield* opened(
          place,
          (memo) => {
            for (const peer of [0, 1, 2]) assert.isTrue(memo.keepPeer(peerKey(peer), secretOf(peer)))
            memo.keepRun(peerKey(0), runOf(1, true, 1))
            memo.keepRun(peerKey(1), runOf(1, false, 1))
          },
          capacity
        )
        yield* opened(
          place,
          (memo, service) => {
            assert.isTrue(memo.keepPeer(peerKey(3), secretOf(3)))
            assert.deepStrictEqual(kept(memo), [0, 2, 3])
            for (const peer of [2, 3]) memo.keepRun(peerKey(peer), runOf(peer, true, 1))
            assert.isFalse(memo.keepPeer(peerKey(4), secretOf(4)))
            assert.deepStrictEqual(kept(memo), [0, 2, 3])
            assert.deepInclude(service.counters, { peers: 3, runs: 3, evicted: 1 })
            memo.forgetRun(peerKey(2), runOf(2, true, 1).run)
            assert.isTrue(memo.keepPeer(peerKey(4), secretOf(4)))
            assert.deepStrictEqual(kept(memo), [0, 3, 4])
          },
          capacity
        )
      })
    )

    it.effect(
      "counts a live run wherever it stands: in who gives way, and in which run takes the first one's place",
      () =>
        Effect.gen(function* () {
          const place = yield* makePlace
          const [first, older, live, last] = [1, 2, 3, 4].map((n) => runOf(n, n === 3, n))
          for (const restart of [false, true]) {
            yield* opened(
              place,
              (memo) => {
                if (restart) return
                memo.keepPeer(alice, secretOf(1))
                for (const run of [first!, older!, live!, last!]) assert.isTrue(memo.keepRun(alice, run))
              },
              { peers: 1 }
            )
            yield* opened(
              place,
              (memo) => {
                assert.isFalse(memo.keepPeer(bob, secretOf(2)))
                if (!restart) return
                memo.forgetRun(alice, first!.run)
                assert.deepStrictEqual(memo.recall(alice)?.runs, [live!, older!, last!])
                memo.forgetRun(alice, live!.run)
                assert.deepStrictEqual(memo.recall(alice)?.runs, [older!, last!])
                assert.isTrue(memo.keepPeer(bob, secretOf(2)))
                assert.isUndefined(memo.recall(alice))
              },
              { peers: 1 }
            )
          }
        })
    )

    it.effect(`has ${memoSideRuns} places for further runs, and lets the oldest provisional one go`, () =>
      Effect.gen(function* () {
        const place = yield* makePlace
        yield* opened(place, (memo) => {
          memo.keepPeer(alice, secretOf(1))
          memo.keepPeer(bob, secretOf(2))
          const isLive = (n: number) => n !== 5 && n !== 9
          for (let n = 0; n <= memoSideRuns; n++) assert.isTrue(memo.keepRun(alice, runOf(n, isLive(n), 1)))
          assert.isTrue(memo.keepRun(bob, runOf(0, true, 1)))
          const gone = () => {
            const runs = new Set(memo.recall(alice)?.runs.map(({ run }) => run))
            return Array.from({ length: memoSideRuns + 1 }, (_, n) => n).filter((n) => !runs.has(runOf(n, true, 1).run))
          }
          assert.isTrue(memo.keepRun(bob, runOf(1, false, 1)))
          assert.deepStrictEqual(gone(), [5])
          assert.isTrue(memo.keepRun(bob, runOf(2, true, 1)))
          assert.deepStrictEqual(gone(), [5, 9])
          assert.isTrue(memo.keepRun(bob, runOf(3, true, 1)))
          assert.deepStrictEqual(memo.recall(bob)?.runs.length, 3) // its own provisional one was the last
          assert.isFalse(memo.keepRun(bob, runOf(4, true, 1)))
          assert.isTrue(memo.keepRun(bob, runOf(3, true, 2))) // a run that is kept needs no place
          assert.deepStrictEqual(gone(), [5, 9])
        })
      })
    )

    it.effect.prop(
      "does what plain lists do, over restarts",
      [MemoSteps],
      ([openings]) =>
        Effect.gen(function* () {
          const place = yield* makePlace
          const capacity = { peers: 4, sideRuns: 3 }
          const model = new MemoModel(capacity.peers, capacity.sideRuns)
          for (const steps of openings) {
            yield* opened(place, (memo) => followMemoSteps(memo, model, steps), capacity)
          }
          yield* opened(place, (memo) => model.assertState(memo), capacity)
        }),
      { timeout: 120_000, arbitrary: { runs, seed: 17 } }
    )
  })
}
