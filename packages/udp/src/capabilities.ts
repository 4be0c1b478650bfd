import { load } from "@pure-link/native"
import { findNativeSockets, type NativeSocketReport } from "./nativeSockets.ts"
import { loadNativeSuite } from "./nativeSuite.ts"

/**
 * What of the native path this process has, part by part, and in one line why it lacks what it lacks: for `pure-link
 * doctor` and whoever reports a machine.
 */

export interface Capabilities {
  /** The binary that was loaded. */
  readonly addon: { readonly path: string } | Missing
  /** AES-128-GCM in place; else node:crypto does it. */
  readonly aead: { readonly library: string } | Missing
  /** Sockets of the addon; else node:dgram has them. */
  readonly sockets: NativeSocketReport | Missing
}

export interface Missing {
  readonly reason: string
}

export const capabilities = (): Capabilities => {
  const { addon, path, reason } = load()
  if (addon === undefined) return { addon: { reason }, aead: { reason }, sockets: { reason } }
  const suite = loadNativeSuite()
  const sockets = findNativeSockets()
  return {
    addon: { path },
    aead: suite.suite === undefined ? { reason: suite.reason } : { library: addon.aead!.opensslVersion },
    sockets: sockets.addon === undefined ? { reason: sockets.reason } : sockets.report
  }
}
