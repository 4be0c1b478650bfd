import type { Bytes } from "@pure-link/wire"
import * as Context from "effect/Context"
import * as Layer from "effect/Layer"
import { BlackHole } from "./blackHole.ts"
import { Discovery } from "./discovery.ts"
import { FixedSize } from "./fixedSize.ts"
import type { PathMtuDiscovery } from "./PathMtuDiscovery.ts"

/** What path MTU discovery is made from, and the service that makes it. */
export interface PathMtuOptions {
  /** The size to begin with, 1,200 to 1,452 B. */
  readonly datagramSize: Bytes
  /** The system may cut datagrams on their way out: that a large one arrives says nothing about the path. */
  readonly mayBeCut?: boolean
}

/** Where datagrams may be cut, a probe would be believed wrongly: the size to begin with stays (spec §14.8). */
export const discoverPathMtu = ({ datagramSize, mayBeCut }: PathMtuOptions, blackHole?: BlackHole): PathMtuDiscovery =>
  mayBeCut === true ? new FixedSize(datagramSize) : new Discovery(datagramSize, blackHole)

/** The choice of path MTU discovery: a maker, one per run, whose calls are plain. */
export class PathMtu extends Context.Service<
  PathMtu,
  { readonly make: (options: PathMtuOptions) => PathMtuDiscovery }
>()("@pure-link/recovery/PathMtu") {
  /** Probes for larger datagrams, and returns from black holes (spec §14.8). The default. */
  static readonly layerDiscovery = Layer.succeed(this, { make: (o) => discoverPathMtu(o, new BlackHole()) })
  /** Probes, and falls into black holes: to compare with. */
  static readonly layerWithoutBlackHoles = Layer.succeed(this, { make: (o) => discoverPathMtu(o) })
  /** Always the size to begin with. */
  static readonly layerFixed = Layer.succeed(this, { make: (o) => new FixedSize(o.datagramSize) })
}
