import {
  type Address,
  amplificationLimit,
  type Bytes,
  type Id64,
  type Micros,
  never,
  type PacketNumber,
  sameAddress
} from "@pure-link/wire"

/**
 * Where the answers of a run go (spec §10.9, §13): the last validated address, and a newer one until it is validated or
 * given up, which gets at most 3 × the bytes that came from it. A run's first address is validated by the packet that
 * confirms the epoch that was accepted there; every other one by the RESPONSE to the CHALLENGE that was sent to it.
 */

/** How long a challenge waits for its RESPONSE (spec §18). */
export const challengeTime: Micros = 10_000_000

export class AnswerPath {
  /** Proved to reach the sender; undefined until one was. */
  validated: Address | undefined
  /** Where the packet with the largest number came from, while that is not validated. */
  candidate: Address | undefined
  /** The token of the pending challenge; 0n while none is. */
  token: Id64 = 0n
  /** When the pending challenge began; never while none is. */
  challengedAt: Micros = never
  /** Stands in the receiver's line of pending challenges. */
  isQueued = false
  /** Bytes that may still go to the candidate. */
  private allowance: Bytes = 0
  /** An ACCEPT was sent to the candidate. */
  private isAccepted = false
  /** The largest number heard. */
  private newest: PacketNumber
  /** Packets up to here may be replays: they change no path (spec §12.1). */
  private readonly bound: PacketNumber

  constructor(bound: PacketNumber) {
    this.bound = this.newest = bound
  }

  /** An authenticated packet came: one with a new largest number may come from a new address. */
  handleHeard(number: PacketNumber, from: Address, length: Bytes): void {
    if (number <= this.bound) return
    const isNewest = number > this.newest
    if (isNewest) this.newest = number
    if (this.candidate !== undefined && isSame(from, this.candidate)) {
      this.allowance += amplificationLimit * length
      return
    }
    if (!isNewest) return
    if (this.validated !== undefined && isSame(from, this.validated)) {
      this.dropCandidate()
      return
    }
    this.candidate = from
    this.allowance = amplificationLimit * length
    this.isAccepted = false
    this.token = 0n
    this.challengedAt = never
  }

  /** A challenge with this token goes to the candidate from now on (spec §13.1). */
  challenge(now: Micros, token: Id64): void {
    this.token = token
    this.challengedAt = now
  }

  /** The packet that confirmed the run's first epoch came from here: if its ACCEPT went here, somebody is here. */
  handleConfirmed(from: Address): void {
    if (this.validated !== undefined || this.candidate === undefined || !this.isAccepted) return
    if (isSame(from, this.candidate)) this.validate(this.candidate)
  }

  /** RESPONSE: true when it validated the address that its CHALLENGE went to, wherever it comes from (spec §13.2). */
  handleResponse(token: Id64): boolean {
    if (this.candidate === undefined || token === 0n || token !== this.token) return false
    return this.validate(this.candidate)
  }

  /** Makes an address the validated one. */
  validate(address: Address): true {
    this.validated = address
    this.dropCandidate()
    return true
  }

  /** Whether the candidate has another host than the last validated address (spec §13.3). */
  get isHostNew(): boolean {
    return this.validated !== undefined && this.candidate !== undefined && this.validated.host !== this.candidate.host
  }

  /** How many bytes may go to an address of this path now. */
  sendable(to: Address): Bytes {
    return to === this.validated ? Number.POSITIVE_INFINITY : this.allowance
  }

  handleSent(to: Address, length: Bytes, withAccept: boolean): void {
    if (to === this.validated) return
    this.allowance -= length
    this.isAccepted ||= withAccept
  }

  /** No RESPONSE came in time: true. The next packet from there with a new largest number makes it a candidate again. */
  giveUp(now: Micros): boolean {
    if (now < this.challengedAt + challengeTime) return false
    this.dropCandidate()
    return true
  }

  private dropCandidate(): void {
    this.candidate = undefined
    this.allowance = 0
    this.token = 0n
    this.challengedAt = never
  }
}

const isSame = (a: Address, b: Address): boolean => a === b || sameAddress(a, b)
