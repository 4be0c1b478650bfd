import type { ReceiverCounters } from "@pure-link/receiver"
import type { SenderCounters } from "@pure-link/sender"

/** What worlds went through, summed up: a check that never met its trouble proves nothing. */
export class Tally {
  readonly counts = new Map<string, number>()

  add(name: string, count = 1): void {
    this.counts.set(name, (this.counts.get(name) ?? 0) + count)
  }

  of(name: string): number {
    return this.counts.get(name) ?? 0
  }

  /** A machine ended, with what it counted. */
  addMachine(counters: Readonly<ReceiverCounters> | Readonly<SenderCounters>): void {
    const side = "answersSent" in counters ? "receiver" : "sender"
    for (const [name, count] of Object.entries(counters)) {
      if (typeof count === "number") this.add(`${side} ${name}`, count)
      else
        for (const [reason, dropped] of Object.entries(count)) this.add(`receiver dropped ${reason}`, Number(dropped))
    }
  }

  addAll(other: Tally): void {
    for (const [name, count] of other.counts) this.add(name, count)
  }

  /** The names of the floor that nothing was counted for. */
  missing(floor: ReadonlyArray<string>): ReadonlyArray<string> {
    return floor.filter((name) => this.of(name) === 0)
  }

  toString(): string {
    return [...this.counts]
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([name, count]) => `${name} ${count}`)
      .join("\n")
  }
}

/** What a thousand worlds must have gone through. */
export const floor: ReadonlyArray<string> = [
  "receiver packetsSeen",
  "receiver framesWithoutRoom",
  "receiver framesOfOtherLife",
  "receiver storeFailures",
  "receiver cursorsChanged",
  "receiver runsLive",
  "receiver refusals",
  "receiver dropped replayed",
  "receiver dropped not authentic",
  "receiver dropped unknown run",
  "sender probesSent",
  "sender questionsSent",
  "sender triesSent",
  "sender ignoredAnswers",
  "sender unopened",
  "sender replayed",
  "sender replyRunSwitches",
  "sender silentRecoveries",
  "sender refusals",
  "event Forked",
  "event InboxBehind",
  "event GenerationReplaced",
  "event RunEnded replaced",
  "event CursorChanged",
  ...[1, 2, 3, 4, 5, 6].map((reason) => `receiver refused for reason ${reason}`),
  ...[1, 2, 3, 5].map((reason) => `sender refused for reason ${reason}`),
  "receiver lostSent",
  "receiver lostLimited",
  "receiver runsRestored",
  "receiver pathsChallenged",
  "receiver pathsValidated",
  "receiver pathsGivenUp",
  "receiver memoFailures",
  "receiver forgedPackets",
  "sender runsLost",
  "sender lostIgnored",
  "sender pathsChanged",
  "sender epochsConfirmed",
  "sender episodesUndone",
  "event RunLost",
  "event RunRestored",
  "event PathValidated",
  "event PathChanged",
  "event MemoFailed",
  "event MemoWorks",
  ...["kept", "lost", "old", "foreign", "writes failed"].map((trouble) => `world memo ${trouble}`),
  "world outputs restarted together",
  "world rebinds",
  "world rebinds faster than the RTT",
  "world sender moves",
  "world receiver moves",
  "world sender suspended",
  "world receiver suspended",
  "world datagrams overflowed",
  "world disk full",
  "world packets forged",
  "world packets repeated",
  "world LOST forged",
  "world LOST repeated",
  "world epilogue",
  "world settled with several streams",
  "world settled after newGeneration",
  "world settled after outboxRestored",
  "world settled after outboxForked",
  "world settled after outboxCloned",
  "world settled after inboxRestored",
  "world settled after inboxRevised"
]
