import type { Allocation } from "./allocationWatch.ts"
import { EndProcess, type StartOptions } from "./ends/endProcess.ts"
import type { EndReport, EndSetting } from "./ends/messages.ts"
import type { Window } from "./meter.ts"
import type { EndMeasurement } from "./sample.ts"
import { rounded } from "./verdict.ts"

/**
 * One measurement of two fresh processes: start both, let each measure itself, stop both, and put their figures together.
 */

/** What both ends cost together. */
export interface PairFigures {
  readonly records_per_s: number
  readonly cpu_us_per_record: number
  readonly send_us_per_record: number
  readonly receive_us_per_record: number
  /** Data packets that the sender sent within the window. */
  readonly packets: number
  readonly cpu_us_per_packet: number
  /** Datagrams per system call, sending and receiving; null where calls are not counted. */
  readonly gso: number | null
  readonly gro: number | null
  readonly packets_per_answer: number | null
  readonly bad: number
}

export interface PairRun extends PairFigures {
  readonly send: EndMeasurement
  readonly receive: EndMeasurement
  readonly send_allocation: Allocation | null
  readonly receive_allocation: Allocation | null
  readonly reports: { readonly send: EndReport; readonly receive: EndReport }
  readonly memory: { readonly send: ReadonlyArray<number>; readonly receive: ReadonlyArray<number> }
}

export interface PairSetting {
  readonly receiver: EndSetting["order"]
  readonly sender: (port: number) => EndSetting["order"]
  readonly window: Window
  readonly allocations?: boolean
  /** A folder for the profiles of both ends, and what they are called before `-send` and `-recv`. */
  readonly profile?: { readonly folder: string; readonly name: string } | undefined
  readonly environment?: NodeJS.ProcessEnv | undefined
}

const startMillis = 20_000
/** What a window may take beyond its warm-up and length; one of a count takes as long as it takes. */
const patienceMillis = 30_000
const countPatienceMillis = 600_000

export const runPair = async (setting: PairSetting): Promise<PairRun> => {
  const { allocations = false, profile, window } = setting
  const start = (name: string): StartOptions => ({
    profile: profile && { folder: profile.folder, name: `${profile.name}-${name}` },
    environment: setting.environment
  })
  const receiver = new EndProcess({ order: setting.receiver, window, allocations }, start("recv"))
  let sender: EndProcess | undefined
  try {
    const { port } = await receiver.next("ready", startMillis)
    sender = new EndProcess({ order: setting.sender(port), window, allocations }, start("send"))
    await sender.next("ready", startMillis)
    const within =
      (10 * window.warmUpSeconds + (window.seconds ?? 0)) * 1_000 +
      (window.count === undefined ? patienceMillis : countPatienceMillis)
    const [sent, received] = await Promise.all([sender.next("measured", within), receiver.next("measured", within)])
    const senderEnd = await sender.stop()
    const receiverEnd = await receiver.stop()
    return {
      ...figures(sent.measurement, received.measurement, receiverEnd.report.bad),
      send: sent.measurement,
      receive: received.measurement,
      send_allocation: sent.allocation,
      receive_allocation: received.allocation,
      reports: { send: senderEnd.report, receive: receiverEnd.report },
      memory: { send: senderEnd.memory_series, receive: receiverEnd.memory_series }
    }
  } finally {
    sender?.kill()
    receiver.kill()
  }
}

export const figures = (send: EndMeasurement, receive: EndMeasurement, bad: number): PairFigures => {
  const cpu = send.cpu_us_per_record + receive.cpu_us_per_record
  return {
    records_per_s: receive.records_per_s,
    cpu_us_per_record: rounded(cpu, 4),
    send_us_per_record: send.cpu_us_per_record,
    receive_us_per_record: receive.cpu_us_per_record,
    packets: send.datagrams_sent,
    cpu_us_per_packet: rounded((cpu * send.records) / send.datagrams_sent, 3),
    gso: send.per_send_call,
    gro: receive.per_receive_call,
    packets_per_answer: receive.answers === 0 ? null : rounded(receive.datagrams_received / receive.answers, 2),
    bad
  }
}
