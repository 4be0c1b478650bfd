import { lostKey } from "@pure-link/keys"
import { expandPacketNumber, isLostLength, PacketEcho, type PacketHeader, tagLength } from "@pure-link/wire"
import type { SenderRun } from "./senderRun.ts"
import type { StateOptions } from "./senderState.ts"

/**
 * Judges a LOST: it must open under the key of its reply run, and repeat one packet that is in flight in the present run
 * (spec §12.3). Whatever is replayed, of another run, or forged without the static key fails one of the two.
 */

/** The bits of the flags that say the epoch (spec §3.2). */
const epochBits = 0x0f

export class LostNotice {
  readonly #options: StateOptions
  readonly #echo = new PacketEcho()

  constructor(options: StateOptions) {
    this.#options = options
  }

  /** Whether a datagram may be a LOST that matters: computing for it is worth a token. */
  isPossible(run: SenderRun, start: number, end: number): boolean {
    return isLostLength(start, end) && (run.recovery.inFlightCount > 0 || this.#options.acceptAnyLost)
  }

  /** Opens it, in place. */
  open(bytes: Uint8Array, start: number, end: number, header: PacketHeader): boolean {
    const { suite, staticSecret, pair } = this.#options
    const key = lostKey(suite, staticSecret, pair, header.replyRun)
    const bodyStart = start + header.length
    return key.open(bytes, start, bodyStart, end, 0) && this.#echo.read(bytes, bodyStart, end - tagLength)
  }

  /** Whether what was opened repeats a packet of epoch 1 or later that is in flight. */
  isOfFlight({ recovery, flights }: SenderRun): boolean {
    if (this.#options.acceptAnyLost) return true
    const number = expandPacketNumber(this.#echo.number, recovery.nextNumber - 1)
    if ((this.#echo.flags & epochBits) === 0 || !recovery.isInFlight(number)) return false
    return flights.isEcho(number, this.#echo)
  }
}
