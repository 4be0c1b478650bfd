import { Kind, PacketHeader } from "@pure-link/wire"
import { Violation } from "./stores.ts"

/**
 * Remembers every sealed packet of a world by what makes its nonce (spec §6.5): the same run, epoch and number must
 * never seal two different packets. Worlds stay below 2^24 packets, so a short header's number is whole.
 */
export class Nonces {
  readonly #seen = new Map<string, Uint8Array>()
  readonly #header = new PacketHeader()

  check(bytes: Uint8Array, run: bigint): void {
    if (!this.#header.read(bytes, 0, bytes.length))
      throw new Violation("a machine sent a packet whose header it could not read")
    const space = this.#header.kind === Kind.answer ? `answer ${run} ${this.#header.replyRun}` : `data ${run}`
    const key = `${space} ${this.#header.epochBits} ${this.#header.number}`
    const former = this.#seen.get(key)
    if (former !== undefined && Buffer.compare(former, bytes) !== 0)
      throw new Violation(`a nonce was used twice: ${key}`)
    this.#seen.set(key, bytes.slice())
  }
}
