import { DatagramSocket, type SocketError } from "@pure-link/ports"
import type { Address, Bytes } from "@pure-link/wire"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as Schedule from "effect/Schedule"
import * as dgram from "node:dgram"
import { isIP } from "node:net"
import { type Family, plainHost } from "./addresses.ts"
import { bindError, codeOf } from "./failures.ts"
import { closeHandle, NodeSocket } from "./NodeSocket.ts"
import { type Binding, defaultRebind, openSupervised } from "./supervision.ts"

/**
 * The `DatagramSocket` of the system, over node:dgram: IPv4, IPv6 and both at once. It works wherever Node does.
 */

export interface NodeDatagramOptions {
  /** Asked for; the system may grant less (`OpenSocket.buffers`). */
  readonly receiveBufferBytes: Bytes
  readonly sendBufferBytes: Bytes
  /** Datagrams, and bytes of them, that may wait for the driver. */
  readonly receiveQueue: number
  readonly receiveQueueBytes: Bytes
  /** When to try again to bind a socket that died. */
  readonly rebind: Schedule.Schedule<unknown>
  /** Makes the system's socket; tests make one that fails. */
  readonly createSocket: (options: dgram.SocketOptions) => dgram.Socket
}

const defaults: NodeDatagramOptions = {
  receiveBufferBytes: 4_194_304,
  sendBufferBytes: 4_194_304,
  receiveQueue: 4_096,
  receiveQueueBytes: 8_388_608,
  rebind: defaultRebind,
  createSocket: (options) => dgram.createSocket(options)
}

const layerWith = (options: Partial<NodeDatagramOptions>): Layer.Layer<DatagramSocket> => {
  const settings = { ...defaults, ...options }
  return Layer.succeed(DatagramSocket, { open: (at) => openSupervised(bindingWith(settings), at) })
}

export const DatagramSocketNode = {
  /** Sockets of the system, with the usual limits. */
  layer: layerWith({}),
  layerWith
}

const bindingWith = (options: NodeDatagramOptions): Binding<NodeSocket> => ({
  rebind: options.rebind,
  bind: (at, supervisor) =>
    bindHandle(options, at, (handle, family) => {
      const made = new NodeSocket({
        ...supervisor,
        local: localOf(handle),
        family,
        buffers: askForBuffers(handle, options),
        receiveQueue: options.receiveQueue,
        receiveQueueBytes: options.receiveQueueBytes
      })
      made.attach(handle)
      return made
    }),
  bindAgain: (socket) =>
    bindHandle(options, socket.local, (handle) => {
      askForBuffers(handle, options)
      socket.counters.rebinds++
      socket.attach(handle)
    })
})

/** Binds a handle and gives it to `use` before the event loop goes on, so that no datagram comes between. */
const bindHandle = <A>(
  options: NodeDatagramOptions,
  at: Address,
  use: (handle: dgram.Socket, family: Family) => A
): Effect.Effect<A, SocketError> =>
  Effect.callback((resume) => {
    const family = isIP(at.host) === 4 ? "udp4" : "udp6"
    try {
      const handle = options.createSocket({ type: family, ipv6Only: false, lookup: numericOnly })
      handle.once("error", (error) => {
        closeHandle(handle, () => {})
        resume(Effect.fail(bindError(at, codeOf(error))))
      })
      const whenBound = () => resume(Effect.succeed(use(handle, family)))
      handle.bind({ address: at.host, port: at.port, exclusive: true }, whenBound)
    } catch (error) {
      resume(Effect.fail(bindError(at, codeOf(error))))
    }
  })

/** Addresses are numeric here: no look-up and no turn of the event loop per datagram. */
const numericOnly: NonNullable<dgram.SocketOptions["lookup"]> = (host, _options, callback) =>
  callback(null, host, isIP(host))

const localOf = (handle: dgram.Socket): Address => {
  const { address, port } = handle.address()
  return { host: plainHost(address), port }
}

/** Asks for large buffers, halving what is refused, and reads what was granted. */
const askForBuffers = (handle: dgram.Socket, options: NodeDatagramOptions) => {
  ask(options.receiveBufferBytes, (bytes) => handle.setRecvBufferSize(bytes))
  ask(options.sendBufferBytes, (bytes) => handle.setSendBufferSize(bytes))
  // Linux reports twice what it granted, its own bookkeeping included.
  const share = process.platform === "linux" ? 2 : 1
  return { receive: handle.getRecvBufferSize() / share, send: handle.getSendBufferSize() / share }
}

const ask = (most: Bytes, set: (bytes: Bytes) => void): void => {
  for (let bytes = most; bytes >= 65_536; bytes /= 2) {
    try {
      return set(bytes)
    } catch {
      continue
    }
  }
}
