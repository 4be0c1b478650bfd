import { load, type SocketAddon, type SocketCapabilities } from "@pure-link/native"
import * as Effect from "effect/Effect"
import { makeSocket, nativeDefaults } from "./DatagramSocketNative.ts"
import type { NativeSocket } from "./NativeSocket.ts"

/**
 * Whether native sockets work in this process, found out by using one: a kernel or a sandbox may lack what the addon was
 * built for. `pure-link doctor` shows what was found.
 */

/** What native sockets can do here. Buffers are what was granted of the default. */
export type NativeSocketReport = SocketCapabilities & { readonly timer: boolean }

export type NativeSockets =
  | { readonly addon: SocketAddon; readonly report: NativeSocketReport; readonly reason?: undefined }
  | { readonly addon?: undefined; readonly reason: string }

let found: NativeSockets | undefined

/** The addon with working sockets, or one line that says why there is none. The first answer stays. */
export const findNativeSockets = (): NativeSockets => {
  const loaded = load()
  return (found ??= loaded.addon === undefined ? { reason: loaded.reason } : tryOut(loaded.addon))
}

/** Sends a datagram to itself. The address for all, so that all capabilities are asked for. */
export const tryOut = (addon: SocketAddon): NativeSockets => {
  if (addon.Socket === undefined) return { reason: "the addon has no sockets: build it anew" }
  const supervisor = { died: Effect.never, whenHandleDies: () => {}, whenForbidden: () => {} }
  const socket = makeSocket(addon, nativeDefaults, supervisor)
  try {
    const code = socket.open({ host: "0.0.0.0", port: 0 })
    // That an address cannot be bound is for whoever binds to find out: it is not the addon's fault.
    if (code === undefined) sendToItself(socket)
    const report = socket.capabilities
    const refused = [...socket.errorCodes.keys()].filter((name) => telling.has(name))
    if (refused.length > 0) return { reason: `the system refuses batches of datagrams (${refused.join(", ")})` }
    return { addon, report }
  } finally {
    socket.close(() => {})
  }
}

/** Codes of a system that does not know a call, or of a sandbox that forbids it. */
const telling = new Set(["ENOSYS", "EOPNOTSUPP", "EACCES", "EPERM"])

const sendToItself = (socket: NativeSocket): void => {
  const to = { host: "127.0.0.1", port: socket.local.port }
  socket.send(new Uint8Array(8), 4, Uint32Array.of(4, 4), 2, to)
  socket.receive(8)
}
