import { readFileSync } from "node:fs"
import type { NodeCounters } from "@pure-link/link"
import type { Bytes } from "@pure-link/wire"
import { rounded } from "./verdict.ts"

/**
 * What an end has used and done up to a moment. The difference of two samples is a measurement.
 */

export interface Work {
  readonly records: number
  readonly bytes: Bytes
  /** Data packets and answers, at either end. */
  readonly datagramsSent: number
  readonly datagramsReceived: number
  /** Datagrams that came while the system's buffer was full, where known. */
  readonly datagramsDropped: number
  /** System calls that carried them; 0 where the socket does not count them. */
  readonly sendCalls: number
  readonly receiveCalls: number
  readonly turns: number
  /** Packets that acknowledged. */
  readonly answers: number
}

export interface Sample extends Work {
  /** Milliseconds of the monotonic clock. */
  readonly at: number
  readonly userMicros: number
  readonly systemMicros: number
  /** Times that the system took the processor away. */
  readonly preemptions: number
}

export const sampleNow = (work: Work): Sample => {
  const { involuntaryContextSwitches, systemCPUTime, userCPUTime } = process.resourceUsage()
  return {
    ...work,
    at: performance.now(),
    userMicros: userCPUTime,
    systemMicros: systemCPUTime,
    preemptions: involuntaryContextSwitches
  }
}

export const noWork: Work = {
  records: 0,
  bytes: 0,
  datagramsSent: 0,
  datagramsReceived: 0,
  datagramsDropped: 0,
  sendCalls: 0,
  receiveCalls: 0,
  turns: 0,
  answers: 0
}

/** What a node's counters say of its work. */
export const workOf = (counters: NodeCounters, records: number, bytes: Bytes): Work => {
  const { driver, outputs, receiver, socket } = counters
  const calls = socket as Readonly<Record<string, number>>
  return {
    records,
    bytes,
    datagramsSent: driver.datagramsSent,
    datagramsReceived: driver.datagramsReceived,
    datagramsDropped: socket.receiveDrops,
    sendCalls: calls["sendCalls"] ?? 0,
    receiveCalls: calls["receiveCalls"] ?? 0,
    turns: driver.turns,
    answers: receiver?.["answersSent"] ?? outputs.reduce((sum, output) => sum + (output.counters["answers"] ?? 0), 0)
  }
}

/** One end between two samples. */
export interface EndMeasurement {
  readonly seconds: number
  readonly records: number
  readonly bytes: Bytes
  readonly records_per_s: number
  readonly user_s: number
  readonly sys_s: number
  readonly cpu_us_per_record: number
  /** The share of the time that it used a processor, all threads together; below 1 it waited. */
  readonly busy: number
  /** How often others took the processor: many say that the machine is busy. */
  readonly preemptions: number
  readonly datagrams_sent: number
  readonly datagrams_received: number
  /** Datagrams for each system call; null where the socket does not count calls. */
  readonly per_send_call: number | null
  readonly per_receive_call: number | null
  readonly turns: number
  readonly answers: number
}

export const measured = (from: Sample, to: Sample): EndMeasurement => {
  const seconds = (to.at - from.at) / 1_000
  const records = to.records - from.records
  const micros = to.userMicros - from.userMicros + to.systemMicros - from.systemMicros
  const sent = to.datagramsSent - from.datagramsSent
  const received = to.datagramsReceived - from.datagramsReceived
  return {
    seconds: rounded(seconds, 3),
    records,
    bytes: to.bytes - from.bytes,
    records_per_s: Math.round(records / seconds),
    user_s: rounded((to.userMicros - from.userMicros) / 1e6, 3),
    sys_s: rounded((to.systemMicros - from.systemMicros) / 1e6, 3),
    cpu_us_per_record: rounded(micros / records, 4),
    busy: rounded(micros / 1e6 / seconds, 3),
    preemptions: to.preemptions - from.preemptions,
    datagrams_sent: sent,
    datagrams_received: received,
    per_send_call: perCall(sent, to.sendCalls - from.sendCalls),
    per_receive_call: perCall(received, to.receiveCalls - from.receiveCalls),
    turns: to.turns - from.turns,
    answers: to.answers - from.answers
  }
}

const perCall = (datagrams: number, calls: number): number | null => (calls > 0 ? rounded(datagrams / calls, 2) : null)

/** The most memory that this process has held at once, MiB. */
export const peakMemoryMib = (): number => statusMib("VmHWM")
export const memoryMib = (): number => statusMib("VmRSS")

const statusMib = (field: string): number => {
  const match = new RegExp(`^${field}:\\s+(\\d+) kB`, "m").exec(readFileSync("/proc/self/status", "utf8"))
  return match === null ? Number.NaN : rounded(Number(match[1]) / 1_024, 1)
}
