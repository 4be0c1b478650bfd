/** What happened on a sender link since it began; counts of packets unless named otherwise. */
export interface SenderCounters {
  packetsSent: number
  recordPacketsSent: number
  bytesSent: number
  recordBytesSent: number
  /** Packets that tail redundancy sent once more. */
  copiesSent: number
  probesSent: number
  questionsSent: number
  triesSent: number
  answers: number
  /** Answers of a reply run that is not, or not yet, current. */
  ignoredAnswers: number
  /** Datagrams for this run that did not open, were replayed, or came while strangers used up their tokens. */
  unopened: number
  replayed: number
  limited: number
  violations: number
  replyRunSwitches: number
  silentRecoveries: number
  refusals: number
  /** LOST that started a fresh run, and those that did not: of no packet in flight, not authentic, or too soon. */
  runsLost: number
  lostIgnored: number
  /** X25519 agreements computed, static and ephemeral. */
  keyAgreements: number
  /** Epochs under which an answer came. */
  epochsConfirmed: number
  /** Times that window, round trip and path MTU started again because an IP changed. */
  pathsChanged: number
}

export const noCounts = (): SenderCounters => ({
  packetsSent: 0,
  recordPacketsSent: 0,
  bytesSent: 0,
  recordBytesSent: 0,
  copiesSent: 0,
  probesSent: 0,
  questionsSent: 0,
  triesSent: 0,
  answers: 0,
  ignoredAnswers: 0,
  unopened: 0,
  replayed: 0,
  limited: 0,
  violations: 0,
  replyRunSwitches: 0,
  silentRecoveries: 0,
  refusals: 0,
  runsLost: 0,
  lostIgnored: 0,
  keyAgreements: 0,
  epochsConfirmed: 0,
  pathsChanged: 0
})
