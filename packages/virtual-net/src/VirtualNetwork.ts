import { DatagramSocket } from "@pure-link/ports"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { Network, type NetworkOptions } from "./Network.ts"

/** The network as an Effect service. Build its layer inside the program whose clock it shall follow. */
export class VirtualNetwork extends Context.Service<VirtualNetwork, Network>()(
  "@pure-link/virtual-net/VirtualNetwork"
) {
  static readonly layer = (options: NetworkOptions): Layer.Layer<VirtualNetwork> =>
    Layer.effect(
      VirtualNetwork,
      Effect.gen(function* () {
        const network = new Network(options, yield* Clock.Clock, yield* Effect.context<never>())
        yield* Effect.addFinalizer(() => Effect.sync(() => network.stop()))
        return network
      })
    )

  /** The sockets of one host, to be given to whatever runs on it. */
  static readonly host = (host: string): Layer.Layer<DatagramSocket, never, VirtualNetwork> =>
    Layer.effect(
      DatagramSocket,
      Effect.map(VirtualNetwork, (network) => network.socketsOf(host))
    )
}
