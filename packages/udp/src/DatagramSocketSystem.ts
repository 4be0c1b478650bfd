import type { DatagramSocket } from "@pure-link/ports"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { type NativeDatagramOptions, nativeLayer } from "./DatagramSocketNative.ts"
import { DatagramSocketNode, type NodeDatagramOptions } from "./DatagramSocketNode.ts"
import { tellFallback } from "./fallbackNotice.ts"
import { findNativeSockets } from "./nativeSockets.ts"

/**
 * The best `DatagramSocket` that this machine has: the addon's, or node:dgram where the addon is missing, turned off
 * (`PURE_LINK_NATIVE=off`) or refused by the kernel, after one line that says why.
 */

/** Those of the kind that is not chosen are without effect. */
export type SystemDatagramOptions = Partial<NativeDatagramOptions> & Partial<NodeDatagramOptions>

const layerWith = (options: SystemDatagramOptions): Layer.Layer<DatagramSocket> =>
  Layer.unwrap(
    Effect.suspend(() => {
      const { addon, reason } = findNativeSockets()
      if (addon !== undefined) return Effect.succeed(nativeLayer(addon, options))
      return Effect.as(tellFallback(reason), DatagramSocketNode.layerWith(options))
    })
  )

export const DatagramSocketSystem = {
  /** With the usual limits. */
  layer: layerWith({}),
  layerWith
}
