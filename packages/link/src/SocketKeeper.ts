/**
 * Keeps a node on the air: opens its socket, and opens another at the same address when one died for good, for as long
 * as it takes.
 */
import type { DatagramSocket, OpenSocket, SocketError } from "@pure-link/ports"
import { type Address, formatAddress, type Micros } from "@pure-link/wire"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Result from "effect/Result"
import * as Scope from "effect/Scope"
import type { Driver } from "./Driver.ts"
import type { Journal } from "./Journal.ts"

/** Opening again is tried after 100 ms, doubling to 5 s. */
const firstPauseMillis = 100
const longestPauseMillis = 5_000

/** What the keeper works on. */
interface Keeping {
  readonly open: DatagramSocket["Service"]["open"]
  readonly driver: Driver
  readonly journal: Journal
  readonly now: () => Micros
  /** Called when datagrams wait, and when there is a new socket. */
  readonly wake: () => void
}

/**
 * Opens the first socket, fails if that fails, and keeps one open until the scope closes. Succeeds with the bound
 * address.
 */
export const keepSocket = Effect.fnUntraced(function* (
  keeping: Keeping,
  listen: Address
): Effect.fn.Return<Address, SocketError, Scope.Scope> {
  const scope = yield* Effect.scope
  const first = yield* openIn(keeping, listen, scope)
  const address = first.socket.local
  yield* Effect.forkScoped(
    Effect.gen(function* () {
      for (let current = first; ;) {
        const error = yield* Effect.flip(current.socket.died)
        keeping.driver.socket = undefined
        keeping.driver.counters.socketFailures++
        report(keeping, "SocketFailed", address, `the socket died and is being opened again: ${error.message}`)
        yield* Scope.close(current.scope, Exit.void)
        current = yield* reopen(keeping, address, scope)
        const { local } = current.socket
        report(keeping, "SocketReopened", local, `the socket is open again at ${formatAddress(local)}`)
      }
    })
  )
  return address
})

interface Kept {
  readonly socket: OpenSocket
  readonly scope: Scope.Closeable
}

const openIn = (keeping: Keeping, at: Address, parent: Scope.Scope): Effect.Effect<Kept, SocketError> =>
  Effect.gen(function* () {
    const scope = yield* Scope.fork(parent)
    const opening = Scope.provide(keeping.open(at), scope)
    const socket = yield* Effect.onError(opening, (cause) => Scope.close(scope, Exit.failCause(cause)))
    keeping.driver.socket = socket
    socket.onReadable = keeping.wake
    keeping.wake()
    return { socket, scope }
  })

const reopen = Effect.fnUntraced(function* (keeping: Keeping, at: Address, parent: Scope.Scope) {
  for (let pause = firstPauseMillis; ; pause = Math.min(2 * pause, longestPauseMillis)) {
    const opened = yield* Effect.result(openIn(keeping, at, parent))
    if (Result.isSuccess(opened)) return opened.success
    yield* Effect.sleep(pause)
  }
})

const report = (keeping: Keeping, tag: "SocketFailed" | "SocketReopened", address: Address, message: string): void =>
  keeping.journal.report({
    _tag: tag,
    at: keeping.now(),
    level: tag === "SocketFailed" ? "error" : "info",
    address,
    message
  })
