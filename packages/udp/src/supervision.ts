import type { OpenSocket, SocketError } from "@pure-link/ports"
import type { Address } from "@pure-link/wire"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Latch from "effect/Latch"
import * as Schedule from "effect/Schedule"
import type * as Scope from "effect/Scope"
import { isIP } from "node:net"
import { isPort, plainHost } from "./addresses.ts"
import { bindError, deathError } from "./failures.ts"

/**
 * The life of a socket, whatever it is made of: it is bound, closes with its scope, and when the system's socket beneath
 * it dies, as after sleep, it is bound anew to the same address; if that keeps failing, its `died` fails.
 */

/** What a socket tells whoever supervises it. */
export interface Supervisor {
  /** For `OpenSocket.died`. */
  readonly died: Effect.Effect<never, SocketError>
  /** The system's socket has died, with the code. */
  readonly whenHandleDies: (code: string) => void
  /** The system forbade to send, for the first time. */
  readonly whenForbidden: () => void
}

export interface SupervisedSocket extends OpenSocket {
  /** Closes for good; calls back when the port is free. */
  close(whenDone: () => void): void
}

/** How sockets of a kind are bound, at first and again. */
export interface Binding<S extends SupervisedSocket> {
  readonly bind: (at: Address, supervisor: Supervisor) => Effect.Effect<S, SocketError>
  readonly bindAgain: (socket: S) => Effect.Effect<void, SocketError>
  /** When to try again to bind a socket that died. */
  readonly rebind: Schedule.Schedule<unknown>
}

/** Up to nine tries within about 13 s. */
export const defaultRebind: Schedule.Schedule<unknown> = Schedule.max([
  Schedule.exponential("50 millis"),
  Schedule.recurs(8)
])

export const openSupervised = <S extends SupervisedSocket>(
  binding: Binding<S>,
  at: Address
): Effect.Effect<OpenSocket, SocketError, Scope.Scope> =>
  Effect.gen(function* () {
    const died = Deferred.makeUnsafe<never, SocketError>()
    const death = Latch.makeUnsafe(false)
    const forbidden = Latch.makeUnsafe(false)
    let deathCode = ""
    const supervisor: Supervisor = {
      died: Deferred.await(died),
      whenHandleDies: (code) => {
        deathCode = code
        death.openUnsafe()
      },
      whenForbidden: () => void forbidden.openUnsafe()
    }
    const socket = yield* Effect.acquireRelease(bindEitherFamily(at, supervisor, binding.bind), (opened) =>
      Effect.callback<void>((resume) => opened.close(() => resume(Effect.void)))
    )
    const supervise = Effect.gen(function* () {
      yield* death.await
      death.closeUnsafe()
      const rebound = Effect.retry(Effect.uninterruptible(binding.bindAgain(socket)), binding.rebind)
      yield* Effect.mapError(rebound, (error) => deathError(socket.local, deathCode, error))
    })
    yield* Effect.forever(supervise).pipe(
      Effect.catch((error) => Deferred.fail(died, error)),
      Effect.forkScoped
    )
    yield* Effect.forkScoped(
      Effect.andThen(
        forbidden.await,
        Effect.logWarning(
          "The system forbids to send some datagrams (EPERM): they count as lost. Check firewall and sandbox rules."
        )
      )
    )
    return socket
  })

const bindEitherFamily = <S extends SupervisedSocket>(
  at: Address,
  supervisor: Supervisor,
  bind: Binding<S>["bind"]
): Effect.Effect<S, SocketError> => {
  if (isIP(at.host) === 0 || !isPort(at.port)) return Effect.fail(bindError(at, "EINVAL"))
  const host = plainHost(at.host)
  const bound = bind({ host, port: at.port }, supervisor)
  if (host !== "::") return bound
  // A machine without IPv6 still has all that dual stack can mean there.
  return Effect.catch(bound, (error) =>
    error.code === "EAFNOSUPPORT" || error.code === "EADDRNOTAVAIL"
      ? bind({ host: "0.0.0.0", port: at.port }, supervisor)
      : Effect.fail(error)
  )
}
