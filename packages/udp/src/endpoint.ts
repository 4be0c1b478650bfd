import type { Address } from "@pure-link/wire"
import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as dns from "node:dns"
import { isIP } from "node:net"
import { canonicalHost, isPort } from "./addresses.ts"

/**
 * Endpoints as people write them (`host:port`, `[v6]:port`) and as sockets want them: names are resolved here, once,
 * and never on the packet path.
 */

/** A host, by name or number, and a port. */
export interface Endpoint {
  readonly host: string
  readonly port: number
}

/** An endpoint that cannot be read or found. */
export class EndpointError extends Data.TaggedError("EndpointError")<{
  readonly endpoint: string
  readonly problem: string
  readonly remedy: string
}> {
  override get message(): string {
    return `${this.endpoint}: ${this.problem}; ${this.remedy}`
  }
}

/** Reads `host:port` or `[v6]:port`. */
export const parseEndpoint = (text: string): Result.Result<Endpoint, EndpointError> => {
  const fail = (problem: string, remedy: string) =>
    Result.fail(new EndpointError({ endpoint: text || "(empty)", problem, remedy }))
  if (isIP(text) === 6) return fail("an IPv6 address without brackets and a port", `write [${text}]:PORT`)
  const match = /^(?:\[(?<bracketed>[^\]]*)\]|(?<bare>[^[\]:]*))(?::(?<port>[^:]*))?$/.exec(text)
  if (match === null) return fail("not an endpoint", "write HOST:PORT, or [IPV6]:PORT")
  const { bare, bracketed, port } = match.groups ?? {}
  const host = bracketed ?? bare ?? ""
  if (bracketed !== undefined && isIP(host) !== 6) return fail("no IPv6 address in the brackets", "write [IPV6]:PORT")
  if (host === "") return fail("no host before the port", "write HOST:PORT, such as 192.0.2.7:4433")
  if (/[\s/@]/.test(host)) return fail(`'${host}' is not a host`, "write HOST:PORT without scheme, path or user")
  if (/^[0-9.]+$/.test(host) && isIP(host) !== 4) return fail(`'${host}' is no IPv4 address`, "give 4 numbers to 255")
  if (port === undefined || port === "") return fail("no port", `write ${text.replace(/:$/, "")}:PORT`)
  if (!isPortText(port)) return fail(`'${port}' is not a port`, "give a number from 0 to 65535")
  return Result.succeed({ host, port: Number(port) })
}

const isPortText = (text: string): boolean => /^[0-9]{1,5}$/.test(text) && isPort(Number(text))

/**
 * Finds the numeric address of a host, by DNS unless it is numeric already. The first that the system prefers is taken.
 */
export const resolveHost = (host: string, port: number): Effect.Effect<Address, EndpointError> => {
  const numeric = canonicalHost(host)
  if (numeric !== undefined) return Effect.succeed({ host: numeric, port })
  return Effect.callback((resume) => {
    dns.lookup(host, { order: "verbatim" }, (error, address) => {
      if (error !== null) resume(Effect.fail(notFound(host, error)))
      else resume(Effect.succeed({ host: canonicalHost(address) ?? address, port }))
    })
  })
}

const notFound = (host: string, error: NodeJS.ErrnoException): EndpointError =>
  error.code === "ENOTFOUND"
    ? new EndpointError({ endpoint: host, problem: "no such host", remedy: "check the name, or give its number" })
    : new EndpointError({
        endpoint: host,
        problem: `name service failed (${error.code ?? error.message})`,
        remedy: "check the network and its DNS, or give the numeric address"
      })
