/**
 * Batched UDP and fine timers, as socket.cc and timer.cc export them. Errors of the system are negative errnos; only misuse
 * throws (TypeError).
 */
export interface SocketAddon {
  readonly Socket: new (
    tables: SocketTables,
    settings: SocketSettings,
    /** 0: datagrams wait. Negative: the socket died of this errno. */
    callback: (code: number) => void
  ) => NativeSocket
  readonly Timer: new (callback: () => void) => NativeTimer
  /** An address as `open` and `send` want it; undefined if a host is not numeric. `local`: the address to send from. */
  encodePeer(host: string, port: number, local?: string): Uint8Array | undefined
  /** Of the test build alone (PURE_LINK_FAULTS, faults.cc). */
  injectFault?(fault: Fault): void
  clearFaults?(): void
}

/** Memory that `receive` writes to. It stays where it is: a table that was transferred makes `receive` throw. */
export interface SocketTables {
  /** Slots of 64 KiB, at least one. */
  readonly bytes: Uint8Array
  readonly starts: Uint32Array
  readonly ends: Uint32Array
  readonly ecn: Uint8Array
  /** For each datagram, the place of its sender in the socket's memory of 256 peers. */
  readonly peers: Uint32Array
  /** 258 numbers: 1 if more may wait, how many places hold other peers than before, and which. */
  readonly news: Uint32Array
}

/** Whole numbers; `gso` and `gro` are 0 or 1. */
export interface SocketSettings {
  readonly receiveBufferBytes: number
  readonly sendBufferBytes: number
  readonly sendQueueBytes: number
  readonly longestDatagram: number
  readonly sendEcn: number
  readonly gso: number
  readonly gro: number
}

export interface NativeSocket {
  /** Binds, anew if it was bound. */
  open(at: Uint8Array): number
  /** How many datagrams the system refused; each is counted, by errno. */
  send(slab: Uint8Array, stride: number, lengths: Uint32Array, count: number, to: Uint8Array): number
  /** How many datagrams stand in the tables now. */
  receive(most: number): number
  /** Whether to call back when datagrams wait; called once, and again after the next `receive`. */
  watch(on: boolean): void
  waits(): boolean
  peerAt(index: number): { readonly host: string; readonly port: number; readonly local?: string }
  local(): { readonly host: string; readonly port: number } | undefined
  capabilities(): SocketCapabilities
  setEcn(codepoint: number): boolean
  /** Copies the table of counters.h: 256 numbers, from 16 on how often each errno came. */
  counters(out: Float64Array): void
  close(): void
}

/** What the kernel granted, and what is left of it. */
export interface SocketCapabilities {
  /** Datagrams that one message carries at most; 0 without GSO. */
  readonly segments: number
  readonly gro: boolean
  readonly receiveBufferBytes: number
  readonly sendBufferBytes: number
  readonly dontFragment: boolean
  readonly ecnReceive: boolean
  readonly ecnSend: boolean
  readonly packetInfo: boolean
  readonly dropCounter: boolean
}

export interface NativeTimer {
  /** Calls back after so many microseconds, instead of when it was armed for. */
  arm(micros: number): void
  disarm(): void
  close(): void
}

/** Makes calls of the system fail, in the test build. */
export interface Fault {
  readonly call: "socket" | "bind" | "setsockopt" | "sendmmsg" | "recvmmsg"
  readonly errno?: number
  /** Calls (for sendmmsg: messages) that pass before. */
  readonly after?: number
  readonly times?: number
  /** sendmmsg: only messages with GSO. */
  readonly gso?: boolean
  /** sendmmsg: only messages with a datagram of more than so many bytes. */
  readonly above?: number
  /** sendmmsg: so many messages at most are taken. */
  readonly partial?: number
  /** recvmmsg: takes the segment size away, or tells that the message was cut. */
  readonly spoil?: "segment" | "truncate"
}
