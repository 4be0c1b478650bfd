/** Where datagrams come from and go to. */

/** A numeric IPv4 or IPv6 address and a UDP port. Compared by value with `sameAddress`. */
export interface Address {
  readonly host: string
  readonly port: number
  /** Of a datagram that came: the address of this machine that it went to, where that is told. Answers leave from there. */
  readonly local?: string
}

/** Whether two addresses are the same one, however they were reached. */
export const sameAddress = (a: Address, b: Address): boolean => a === b || (a.port === b.port && a.host === b.host)

/** `host:port`, with IPv6 in brackets. */
export const formatAddress = (address: Address): string =>
  address.host.includes(":") ? `[${address.host}]:${address.port}` : `${address.host}:${address.port}`
