import type { Address } from "@pure-link/wire"

/** Whoever is at an address of the network: a socket, or a station. */
export interface Endpoint {
  /** What it is bound to. */
  readonly local: Address
  /** Where its datagrams come from and where it is reached: `local`, unless a NAT in front of it says otherwise. */
  outside: Address
  /** A datagram arrives, and belongs to the endpoint from now on; false if there is no room for it. */
  arrive(bytes: Uint8Array, from: Address): boolean
  /** Follows each `arrive`, once the network has counted and shown what became of it. */
  attend(): void
}
