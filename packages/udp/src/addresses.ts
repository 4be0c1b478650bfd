import type { Address } from "@pure-link/wire"
import { isIP, SocketAddress } from "node:net"

/**
 * One spelling for each address, because addresses are compared as text: IPv4 seen through an IPv6 socket is plain
 * IPv4, and IPv6 is written the way the system writes it.
 */

const mapped = "::ffff:"

/**
 * The host as this project writes it. For what the system hands out, which is canonical but for v4-mapped addresses.
 */
export const plainHost = (host: string): string =>
  host.startsWith(mapped) && host.includes(".", mapped.length) ? host.slice(mapped.length) : host

/** The one spelling of a numeric host, however it was written; `undefined` if it is not numeric. */
export const canonicalHost = (host: string): string | undefined => {
  const family = isIP(host)
  if (family === 0) return undefined
  if (family === 4) return host
  const [address, zone] = host.split("%")
  const canonical = plainHost(new SocketAddress({ address: address!, family: "ipv6" }).address)
  return zone === undefined ? canonical : `${canonical}%${zone}`
}

export type Family = "udp4" | "udp6"

/** How a socket of this family names the host; `undefined` if it cannot reach it, or the host is not numeric. */
export const reachableHost = (family: Family, host: string): string | undefined => {
  const plain = plainHost(host)
  switch (isIP(plain)) {
    case 4:
      return family === "udp4" ? plain : mapped + plain
    case 6:
      return family === "udp6" ? plain : undefined
    default:
      return undefined
  }
}

export const isPort = (port: number): boolean => Number.isInteger(port) && port >= 0 && port <= 65_535

/** Makes `Address`es of what a socket reports, the same object while the peer stays the same. */
export class Sources {
  #reported = ""
  #address: Address = { host: "", port: 0 }

  addressOf(host: string, port: number): Address {
    if (host !== this.#reported || port !== this.#address.port) {
      this.#reported = host
      this.#address = { host: plainHost(host), port }
    }
    return this.#address
  }
}
