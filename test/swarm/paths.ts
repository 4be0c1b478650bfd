import { type Address, amplificationLimit, type Bytes, formatAddress, type Id64 } from "@pure-link/wire"
import type { Delivery } from "./network.ts"
import type { Spoken } from "./spoken.ts"
import { Violation } from "./violation.ts"

/**
 * What came from each address and went to it, run by run, in one life of a receiver. An address is proved by a packet in
 * an epoch whose ACCEPT went there, or by the token of a CHALLENGE that went there; every other one gets at most 3 × what
 * came from it (spec §10.9, §13).
 */
interface Path {
  received: Bytes
  sent: Bytes
  isProved: boolean
}

export class Paths {
  readonly #paths = new Map<string, Path>()
  readonly #challenged = new Map<Id64, Path>()
  /** By run prefix: where the ACCEPT of each epoch went, by epoch bits. */
  readonly #accepted = new Map<number, Map<number, Set<string>>>()

  /** A datagram arrived that claims this run. */
  receive(runPrefix: number, { bytes, from }: Delivery): void {
    this.#path(runPrefix, from).received += bytes.length
  }

  /** It opened. */
  handleOpened(runPrefix: number, epochBits: number, { from, sent }: Delivery): void {
    const token = sent?.spoken.response
    const challenged = token === undefined ? undefined : this.#challenged.get(token)
    if (challenged !== undefined) challenged.isProved = true
    if (this.#accepted.get(runPrefix)?.get(epochBits)?.has(formatAddress(from)) === true)
      this.#path(runPrefix, from).isProved = true
  }

  /** An answer leaves; `accepted` are the epoch bits of its ACCEPT. */
  answer(runPrefix: number, to: Address, length: Bytes, { challenge }: Spoken, accepted: number | undefined): void {
    const path = this.#path(runPrefix, to)
    if (challenge !== undefined) this.#challenged.set(challenge, path)
    if (accepted !== undefined) this.#acceptedAt(runPrefix, accepted).add(formatAddress(to))
    path.sent += length
    if (!path.isProved && path.sent > amplificationLimit * path.received)
      throw new Violation(`${path.sent} B went to an address that is not proved and sent ${path.received} B`)
  }

  /** The receiver says that answers go to an address from now on. */
  handleValidated(runPrefix: number, address: Address): void {
    if (!this.#path(runPrefix, address).isProved)
      throw new Violation(`${formatAddress(address)} was validated, which answered no CHALLENGE`)
  }

  #path(runPrefix: number, address: Address): Path {
    const key = `${runPrefix} ${formatAddress(address)}`
    let path = this.#paths.get(key)
    if (path === undefined) this.#paths.set(key, (path = { received: 0, sent: 0, isProved: false }))
    return path
  }

  #acceptedAt(runPrefix: number, epochBits: number): Set<string> {
    let epochs = this.#accepted.get(runPrefix)
    if (epochs === undefined) this.#accepted.set(runPrefix, (epochs = new Map()))
    let addresses = epochs.get(epochBits)
    if (addresses === undefined) epochs.set(epochBits, (addresses = new Set()))
    return addresses
  }
}
