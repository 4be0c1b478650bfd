import { type Id64, Kind, PacketHeader } from "@pure-link/wire"
import { Violation } from "./violation.ts"

/**
 * Remembers every sealed packet of a world by what makes its nonce (spec §6.5): the same run, epoch and number must
 * never seal two different packets. Worlds stay below 2^24 packets, so a short header's number is whole.
 */
export class Nonces {
  readonly #spaces = new Map<Id64, Map<number, Uint8Array>>()
  readonly #header = new PacketHeader()

  /** `run` is that of a data packet; an answer has its reply run in its header. The bytes must stay as they are. */
  check(bytes: Uint8Array, run: Id64): void {
    const header = this.#header
    if (!header.read(bytes, 0, bytes.length)) throw new Violation("a packet was sent whose header cannot be read")
    const id = header.kind === Kind.answer || header.kind === Kind.lost ? header.replyRun : run
    let space = this.#spaces.get(id)
    if (space === undefined) this.#spaces.set(id, (space = new Map()))
    const key = (header.number * 16 + header.epochBits) * 2 + (header.kind === Kind.lost ? 1 : 0)
    const former = space.get(key)
    if (former === undefined) space.set(key, bytes)
    else if (Buffer.compare(former, bytes) !== 0)
      throw new Violation(`a nonce was used twice: run ${id.toString(16)}, number ${header.number}`)
  }
}
