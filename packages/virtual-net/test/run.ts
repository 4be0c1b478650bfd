import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type * as Scope from "effect/Scope"
import type { Network, NetworkOptions } from "../src/Network.ts"
import { Sim } from "../src/Sim.ts"
import { VirtualNetwork } from "../src/VirtualNetwork.ts"

/** What the tests of this room share: programs on a network in virtual time. */

export const run = (
  options: NetworkOptions,
  body: (network: Network) => Generator<Effect.Effect<unknown, unknown, Scope.Scope>, void, never>
): void => {
  const program = Effect.gen(function* () {
    const network = yield* VirtualNetwork
    yield* Effect.gen(() => body(network))
  })
  succeed(new Sim().run(program.pipe(Effect.scoped, Effect.provide(VirtualNetwork.layer(options)))))
}

export const openOn = (network: Network, host: string) => network.socketsOf(host).open({ host, port: 0 })

export const succeed = <A>(exit: Exit.Exit<A, unknown>): A => {
  if (Exit.isSuccess(exit)) return exit.value
  throw new Error("the simulated program failed", { cause: exit.cause })
}

export const firstDifference = (a: ReadonlyArray<string>, b: ReadonlyArray<string>) => {
  for (let i = 0; i < Math.max(a.length, b.length); i++) if (a[i] !== b[i]) return { i, a: a[i], b: b[i] }
  return undefined
}
