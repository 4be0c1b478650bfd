import { load, type SocketAddon } from "@pure-link/native"
import { DatagramSocket, type SocketError } from "@pure-link/ports"
import { type Address, type Bytes, largestDatagram } from "@pure-link/wire"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as Schedule from "effect/Schedule"
import { bindError } from "./failures.ts"
import { NativeSocket } from "./NativeSocket.ts"
import { type Binding, defaultRebind, openSupervised, type Supervisor } from "./supervision.ts"

/**
 * The `DatagramSocket` over the addon: many datagrams per call of the system both ways (GSO, sendmmsg; GRO, recvmmsg).
 * What a kernel does not have is done without. `DatagramSocketSystem` chooses between this and node:dgram.
 */

export interface NativeDatagramOptions {
  /** Asked for, by force where the system allows that; it may grant less (`OpenSocket.buffers`). At most 1 GiB. */
  readonly receiveBufferBytes: Bytes
  readonly sendBufferBytes: Bytes
  /** Datagrams that wait, already sealed, while the system's send buffer is full; more are lost. At most 1 GiB. */
  readonly sendQueueBytes: Bytes
  /** Messages of 64 KiB that one call takes from the system: 1 to 64. They are the slab of this size. */
  readonly receiveSlots: number
  /** Datagrams that one `receive` hands over at most: 1 to 65,536. */
  readonly receivedAtOnce: number
  /** A longer datagram is a GRO train that lost its segment size, or garbage: 1 to 65,507 bytes. */
  readonly longestDatagram: Bytes
  /** The ECN bits of what is sent: 0 none, 1 ECT(1), 2 ECT(0). */
  readonly sendEcn: 0 | 1 | 2
  /** Whether to use GSO and GRO where the system has them. */
  readonly gso: boolean
  readonly gro: boolean
  /** When to try again to bind a socket that died. */
  readonly rebind: Schedule.Schedule<unknown>
}

export const nativeDefaults: NativeDatagramOptions = {
  receiveBufferBytes: 16_777_216,
  sendBufferBytes: 4_194_304,
  sendQueueBytes: 1_048_576,
  receiveSlots: 8,
  receivedAtOnce: 1_024,
  longestDatagram: largestDatagram,
  sendEcn: 0,
  gso: true,
  gro: true,
  rebind: defaultRebind
}

/** With an addon given, for tests and for who has loaded it already; it must have `Socket`. */
export const nativeLayer = (
  addon: SocketAddon,
  options: Partial<NativeDatagramOptions> = {}
): Layer.Layer<DatagramSocket> => {
  const binding = bindingWith(addon, { ...nativeDefaults, ...options })
  return Layer.succeed(DatagramSocket, { open: (at) => openSupervised(binding, at) })
}

const layerWith = (options: Partial<NativeDatagramOptions>): Layer.Layer<DatagramSocket> =>
  Layer.unwrap(
    Effect.suspend(() => {
      const { addon, reason } = load()
      return addon === undefined ? Effect.die(new Error(reason)) : Effect.succeed(nativeLayer(addon, options))
    })
  )

export const DatagramSocketNative = {
  /** Sockets of the addon, with the usual limits. Dies where there is none. */
  layer: layerWith({}),
  layerWith
}

const bindingWith = (addon: SocketAddon, options: NativeDatagramOptions): Binding<NativeSocket> => ({
  rebind: options.rebind,
  bind: (at, supervisor) =>
    Effect.suspend(() => {
      const socket = makeSocket(addon, options, supervisor)
      const code = socket.open(at)
      if (code === undefined) return Effect.succeed(socket)
      socket.close(() => {})
      return Effect.fail(bindError(at, code))
    }),
  bindAgain: (socket) => Effect.suspend(() => bound(socket.local, socket.openAgain()))
})

const bound = (at: Address, code: string | undefined): Effect.Effect<void, SocketError> =>
  code === undefined ? Effect.void : Effect.fail(bindError(at, code))

export const makeSocket = (addon: SocketAddon, options: NativeDatagramOptions, supervisor: Supervisor): NativeSocket =>
  new NativeSocket({
    ...supervisor,
    addon,
    settings: {
      receiveBufferBytes: options.receiveBufferBytes,
      sendBufferBytes: options.sendBufferBytes,
      sendQueueBytes: options.sendQueueBytes,
      longestDatagram: options.longestDatagram,
      sendEcn: options.sendEcn,
      gso: options.gso ? 1 : 0,
      gro: options.gro ? 1 : 0
    },
    receiveSlots: options.receiveSlots,
    receivedAtOnce: options.receivedAtOnce
  })
