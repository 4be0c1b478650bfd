import type { Address } from "@pure-link/wire"

/** What is kept by address. Looks up host, then port, so that a datagram on its way builds no string. */
export class AddressMap<A> {
  readonly #hosts = new Map<string, Map<number, A>>()

  get(address: Address): A | undefined {
    return this.#hosts.get(address.host)?.get(address.port)
  }

  set(address: Address, value: A): void {
    let ports = this.#hosts.get(address.host)
    if (ports === undefined) this.#hosts.set(address.host, (ports = new Map()))
    ports.set(address.port, value)
  }

  /** Forgets `value` at this address, unless another took its place. */
  delete(address: Address, value: A): void {
    const ports = this.#hosts.get(address.host)
    if (ports === undefined || ports.get(address.port) !== value) return
    ports.delete(address.port)
    if (ports.size === 0) this.#hosts.delete(address.host)
  }
}
