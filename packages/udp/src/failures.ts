import { SocketError } from "@pure-link/ports"
import type { Address } from "@pure-link/wire"

/**
 * What the system's error codes mean for a socket. A refused datagram is lost, as on the way, and costs nobody else
 * anything; only a few codes say that the socket itself is gone.
 */

/**
 * Codes after which a socket never works again, such as after sleep on some systems. All others cost a datagram at
 * most.
 */
const fatal = new Set(["EBADF", "ENOTSOCK", "EPIPE", "ENOTCONN", "ERR_SOCKET_DGRAM_NOT_RUNNING"])

export const isFatal = (code: string): boolean => fatal.has(code)

/**
 * Errors in a row, without a datagram between them, after which a socket counts as dead: it would only keep the CPU
 * busy.
 */
export const errorsInARow = 64

export const codeOf = (error: unknown): string => {
  const code = error instanceof Error && "code" in error ? error.code : undefined
  return typeof code === "string" ? code : "UNKNOWN"
}

export const bindError = (address: Address, code: string): SocketError =>
  new SocketError({ operation: "bind", address, code, remedy: remedies[code] ?? "see the system's manual of bind(2)" })

export const deathError = (address: Address, code: string, last: SocketError): SocketError =>
  new SocketError({
    operation: "receive",
    address,
    code,
    remedy: `the socket died and could not be bound again (${last.code}): ${last.remedy}; then open it anew`
  })

const remedies: Readonly<Record<string, string>> = {
  EADDRINUSE: "another program has the port: stop it, or choose another port (0 takes a free one)",
  EACCES: "ports below 1024 need privileges: choose a higher port, or grant CAP_NET_BIND_SERVICE",
  EPERM: "the system forbids it: check firewall, sandbox and container rules",
  EADDRNOTAVAIL: "no interface of this machine has the address: bind to one that exists, 0.0.0.0 or ::",
  EAFNOSUPPORT: "this machine has no IPv6: bind to an IPv4 address or 0.0.0.0",
  EINVAL: "give a numeric IPv4 or IPv6 address, 0.0.0.0 or ::, and a port from 0 to 65535",
  EMFILE: "too many open files: raise the limit (ulimit -n)",
  ENFILE: "too many open files on this machine: close some programs",
  ENOBUFS: "the system is out of buffers: free memory, or close sockets",
  ENOMEM: "the system is out of memory: free some"
}
