import { type Address, formatAddress, sameAddress } from "@pure-link/wire"
import { AddressMap } from "./AddressMap.ts"
import type { Endpoint } from "./Endpoint.ts"

/**
 * Who is where: endpoints by the address they are bound to on their host, and by the one the network reaches them at.
 * The two differ when a NAT in front of an endpoint was made to give it another address.
 */
export class EndpointDirectory {
  readonly #bound = new AddressMap<Endpoint>()
  readonly #reachable = new AddressMap<Endpoint>()
  readonly #nextPorts = new Map<string, number>()

  isTaken(address: Address): boolean {
    return this.#bound.get(address) !== undefined || this.#reachable.get(address) !== undefined
  }

  add(endpoint: Endpoint): void {
    this.#bound.set(endpoint.local, endpoint)
    this.#reachable.set(endpoint.outside, endpoint)
  }

  remove(endpoint: Endpoint): void {
    this.#bound.delete(endpoint.local, endpoint)
    this.#reachable.delete(endpoint.outside, endpoint)
  }

  /** Who is bound to this address. */
  boundTo(local: Address): Endpoint | undefined {
    return this.#bound.get(local)
  }

  /** Who gets what is sent to this address now. */
  reachedAt(outside: Address): Endpoint | undefined {
    return this.#reachable.get(outside)
  }

  /** Gives an endpoint another outside address; nobody is reached at its former one any more. */
  move(local: Address, outside: Address): void {
    const endpoint = this.#bound.get(local)
    if (endpoint === undefined) throw new Error(`no socket is open at ${formatAddress(local)}`)
    const isOwn = sameAddress(outside, local) || sameAddress(outside, endpoint.outside)
    if (!isOwn && this.isTaken(outside)) throw new Error(`${formatAddress(outside)} is taken`)
    this.#reachable.delete(endpoint.outside, endpoint)
    endpoint.outside = { host: outside.host, port: outside.port }
    this.#reachable.set(endpoint.outside, endpoint)
  }

  /** A port of this host that nobody has; they go round, so that one that was freed does not come back soon. */
  freePort(host: string): number {
    let port = this.#nextPorts.get(host) ?? firstFreePort
    while (this.isTaken({ host, port })) port = port === lastPort ? firstFreePort : port + 1
    this.#nextPorts.set(host, port === lastPort ? firstFreePort : port + 1)
    return port
  }
}

const firstFreePort = 49_152
const lastPort = 65_535
