import { type Address, type Bytes, formatAddress, type Micros } from "@pure-link/wire"
import * as Context from "effect/Context"
import * as Data from "effect/Data"
import type * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type { ReceivedDatagrams } from "./ReceivedDatagrams.ts"

/**
 * Where datagrams go and come from. Opening and closing are Effects; sending and receiving are plain calls, because they
 * are the packet path. One open socket serves all links of a node, in both roles.
 */

/** What happened on a socket since it was opened; counts of datagrams unless named otherwise. */
export interface SocketCounters {
  sent: number
  received: number
  /** Sends that the system refused; each counts as lost on the way. */
  sendErrors: number
  /** Errors that the system reported while receiving. They cost no datagram of another peer. */
  receiveErrors: number
  /** Datagrams that came while the receive queue was full, where known. */
  receiveDrops: number
  /** Times that the system's socket died and was bound anew. */
  rebinds: number
  /** System calls that carried a datagram or more; absent where the socket cannot tell. */
  sendCalls?: number
  receiveCalls?: number
}

export interface OpenSocket {
  /** The bound address; its port is the one chosen when 0 was asked for. */
  readonly local: Address
  readonly counters: Readonly<SocketCounters>
  /** How often each system error code (`EMSGSIZE`, `EPERM`…) came, sending and receiving together. */
  readonly errorCodes: ReadonlyMap<string, number>
  /** Room for waiting datagrams in the system's buffers, as granted: it may be less than what was asked for. */
  readonly buffers: { readonly receive: Bytes; readonly send: Bytes }
  /**
   * Whether each datagram goes whole or not at all (DF). Where not, the system cuts what is longer than it believes the
   * path to carry, and that one of some length arrives says nothing about the path (spec §14.8).
   */
  readonly dontFragment: boolean
  /**
   * Sends `count` datagrams to one destination: datagram `i` is `slab[i * stride, i * stride + lengths[i])`. The bytes
   * are taken before it returns. It never throws: what the system refuses counts in `sendErrors` and is lost, for this
   * destination only.
   */
  send(slab: Uint8Array, stride: number, lengths: Uint32Array, count: number, to: Address): void
  /**
   * Hands over at most `most` waiting datagrams. Their bytes belong to the caller until the next `receive` of this socket,
   * and may be changed (packets are opened in place). If `more` is set, more may wait, and nobody is called for those: ask
   * again.
   */
  receive(most: number): ReceivedDatagrams
  /**
   * Has `onReadable` called once when this time has passed, in place of what was asked for before; finer than a millisecond.
   * Absent where the system has no such timer.
   */
  readonly wakeAfter?: (delay: Micros) => void
  /**
   * Called when datagrams wait; set by the one driver of the socket. It is called after every arrival (once for those
   * that come together; not again before a `receive`) and, if datagrams wait already, while it is being set. It must not throw.
   */
  onReadable: (() => void) | undefined
  /**
   * Fails when the socket died and could not be bound anew; waits until then. Sends after that count as `sendErrors`.
   */
  readonly died: Effect.Effect<never, SocketError>
}

/** A socket could not be opened, or died for good. */
export class SocketError extends Data.TaggedError("SocketError")<{
  readonly operation: "bind" | "receive"
  readonly address: Address
  /** The system's error code, such as `EADDRINUSE`. */
  readonly code: string
  /** What to do about it, for a person. */
  readonly remedy: string
}> {
  override get message(): string {
    return `cannot ${this.operation} ${formatAddress(this.address)}: ${this.code}; ${this.remedy}`
  }
}

export class DatagramSocket extends Context.Service<
  DatagramSocket,
  {
    /**
     * Binds a socket; it closes with the scope. Port 0 takes a free one; host `::` is dual stack, `0.0.0.0` IPv4 only.
     */
    readonly open: (at: Address) => Effect.Effect<OpenSocket, SocketError, Scope.Scope>
  }
>()("@pure-link/ports/DatagramSocket") {}
