import { StoreError } from "@pure-link/ports"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import { getCompileCacheDir } from "node:module"
import { Worker } from "node:worker_threads"
import type { Failure } from "./file/failure.ts"
import { closing, type Operations, type Reply, type Request } from "./worker/messages.ts"

/** A store's worker thread, seen from the thread that uses it: one per file, opened and closed with a scope. */
export interface StoreThread<O extends Operations<O>, Opened> {
  /** What the thread found in its file. */
  readonly opened: Opened
  /** Asks, and waits for the reply. A request that was sent is carried out even if nobody waits any more. */
  readonly request: <K extends keyof O & string>(
    operation: K,
    request: O[K][0],
    transfer?: ReadonlyArray<ArrayBuffer>
  ) => Effect.Effect<O[K][1], StoreError>
  /** Fails when the thread has ended without being told to, or refuses to do anything more. */
  readonly ended: Effect.Effect<never, StoreError>
}

const bootstrap = new URL("./worker/start.js", import.meta.url)

/** A store's thread makes little garbage: a young generation of the usual size would only take room. */
const memory = { maxYoungGenerationSizeMb: 8 }

type Resume = (result: Effect.Effect<unknown, StoreError>) => void

/** Starts a thread and waits until its file is open. */
export const openThread = Effect.fnUntraced(function* <
  O extends Operations<O>,
  Opened,
  Opening extends { readonly file: string }
>(program: URL, opening: Opening): Effect.fn.Return<StoreThread<O, Opened>, StoreError, Scope.Scope> {
  const { file } = opening
  const waiting = new Map<number, Resume>()
  let nextId = 0
  /** Why nothing more can be asked: the thread died, or the store is closed. */
  let dead: StoreError | undefined
  let isClosing = false
  const ended = Deferred.makeUnsafe<never, StoreError>()
  const storeError = (failure: Failure) => new StoreError({ file, ...failure })

  const start = Effect.callback<{ readonly worker: Worker; readonly opened: Opened }, StoreError>((resume) => {
    const workerData = { ...opening, program: program.href, compileCache: getCompileCacheDir() }
    const worker = new Worker(bootstrap, { workerData, execArgv: [], resourceLimits: memory })
    const die = (detail: string) => {
      if (isClosing) dead ??= storeError({ reason: "failed", detail: "the store is closed", remedy: "open it again" })
      else {
        dead ??= storeError({ reason: "died", detail, remedy: "restart the program: nothing is stored", isFinal: true })
        Deferred.doneUnsafe(ended, Effect.fail(dead))
      }
      const waiters = [...waiting.values()]
      waiting.clear()
      for (const waiter of waiters) waiter(Effect.fail(dead))
    }
    worker.on("message", (reply: Reply) => {
      const waiter = waiting.get(reply.id)
      waiting.delete(reply.id)
      if ("failure" in reply && reply.failure.isFinal) {
        Deferred.doneUnsafe(ended, Effect.fail(storeError(reply.failure)))
      }
      waiter?.("failure" in reply ? Effect.fail(storeError(reply.failure)) : Effect.succeed(reply.reply))
    })
    worker.on("error", (cause) => die(`its thread died: ${String(cause)}`))
    worker.on("messageerror", (cause) => die(`its thread cannot be understood: ${String(cause)}`))
    worker.on("exit", (code) => die(`its thread ended by itself, with code ${code}`))
    waiting.set(nextId++, (result) => resume(Effect.map(result, (opened) => ({ worker, opened: opened as Opened }))))
  })

  const stop = ({ worker }: { readonly worker: Worker }) =>
    Effect.callback<void>((resume) => {
      if (dead !== undefined) return resume(Effect.void)
      isClosing = true
      worker.once("exit", () => resume(Effect.void))
      worker.postMessage({ id: nextId++, operation: closing, request: undefined } satisfies Request)
    })

  const { opened, worker } = yield* Effect.acquireRelease(start, stop)
  const request: StoreThread<O, Opened>["request"] = (operation, body, transfer = []) =>
    Effect.callback<never, StoreError>((resume) => {
      if (dead !== undefined) return resume(Effect.fail(dead))
      const id = nextId++
      waiting.set(id, resume as Resume)
      worker.postMessage({ id, operation, request: body } satisfies Request, transfer)
    })
  return { opened, request, ended: Deferred.await(ended) }
})
