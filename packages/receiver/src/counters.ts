/** What a receiver counted since it started. */
export interface ReceiverCounters {
  packetsOpened: number
  /** Of those: all parts kept (ACK), or not (SEEN). */
  packetsAcknowledged: number
  packetsSeen: number
  /** Datagrams without effect, by reason (spec §15.1). `limit`: beyond a bound of this receiver. */
  readonly dropped: {
    header: number
    "unknown key": number
    "unknown run": number
    replayed: number
    "not authentic": number
    malformed: number
    limit: number
    "expired epoch": number
  }
  /** Parts that were not kept, by frame: no room or credit, of another life than what is held, or contradicting it. */
  framesWithoutRoom: number
  framesOfOtherLife: number
  contradictions: number
  /** Broken rules of authenticated peers (spec §15.3). */
  violations: number
  answersSent: number
  /** LOST packets, and causes that drew none for want of tokens (spec §12.2). */
  lostSent: number
  lostLimited: number
  /** X25519 computations: static secrets and ACCEPTs. */
  keyAgreements: number
  /** Keys derived for packets of unknown runs and for LOST; computations that were refused for want of tokens. */
  keyDerivations: number
  keyDerivationsLimited: number
  /** Packets that claimed an epoch of a known run and did not open (spec §7.6). */
  forgedPackets: number
  /** Addresses (spec §13): challenges drawn, addresses that answered, and those given up. */
  pathsChallenged: number
  pathsValidated: number
  pathsGivenUp: number
  recordsStored: number
  storeFailures: number
  /** Half records that lost the reserve after 10 s without progress (spec §10.7). */
  halfRecordsDropped: number
  /** Conflicts of commits, and cursors that changed outside (spec §8.6). */
  cursorsChanged: number
  runsBegun: number
  runsLive: number
  runsEvicted: number
  /** Runs that went on from the memo (spec §12.1), and writes of it that failed. */
  runsRestored: number
  memoFailures: number
  /** Refusals that began: `listener_refused` (spec §11.3). */
  refusals: number
  eventsDropped: number
}

/** Why a datagram had no effect; `limit`: it is beyond a bound of this receiver. */
export type DropReason = keyof ReceiverCounters["dropped"]

export const zeroCounters = (): ReceiverCounters => ({
  packetsOpened: 0,
  packetsAcknowledged: 0,
  packetsSeen: 0,
  dropped: {
    header: 0,
    "unknown key": 0,
    "unknown run": 0,
    replayed: 0,
    "not authentic": 0,
    malformed: 0,
    limit: 0,
    "expired epoch": 0
  },
  framesWithoutRoom: 0,
  framesOfOtherLife: 0,
  contradictions: 0,
  violations: 0,
  answersSent: 0,
  lostSent: 0,
  lostLimited: 0,
  keyAgreements: 0,
  keyDerivations: 0,
  keyDerivationsLimited: 0,
  forgedPackets: 0,
  pathsChallenged: 0,
  pathsValidated: 0,
  pathsGivenUp: 0,
  recordsStored: 0,
  storeFailures: 0,
  halfRecordsDropped: 0,
  cursorsChanged: 0,
  runsBegun: 0,
  runsLive: 0,
  runsEvicted: 0,
  runsRestored: 0,
  memoFailures: 0,
  refusals: 0,
  eventsDropped: 0
})
