import type { Allocation } from "../allocationWatch.ts"
import { type Command, ExitCode, printLine } from "../command.ts"
import { loopbackReceiver, loopbackSender } from "../loopback.ts"
import { type PairRun, runPair } from "../pairRun.ts"
import type { Platform } from "../platform.ts"
import { type PairOptions, pairFlags, readPair, withFolder } from "../sharedFlags.ts"
import { rounded } from "../verdict.ts"

/** How much each end allocates for a packet in the steady state. */

const flags = pairFlags(3, "measured for so long")

export const allocations: Command = {
  summary: "bytes that each end allocates for a packet in the steady state",
  flags,
  notes:
    "What the JavaScript heap grew between garbage collections, by packets sent or received. External bytes are array\n" +
    "buffers, those of the records among them; what comes and goes between two collections does not show there.",
  prepare: (given) => {
    const options = readPair(given, 3)
    return () => withFolder(options.platform, (platform) => run(options, platform))
  }
}

const run = async ({ seconds, size }: PairOptions, platform: Platform): Promise<number> => {
  const pair = await runPair({
    receiver: { role: "recv", options: loopbackReceiver(platform) },
    sender: (port) => ({ role: "send", options: loopbackSender(platform, port, size) }),
    window: { warmUpSeconds: 3, warmUpRecords: Math.ceil(134_217_728 / Math.max(size, 61)), seconds },
    allocations: true
  })
  printLine({ event: "allocations", size, ...ends(pair), records_per_s: pair.records_per_s, bad: pair.bad })
  return pair.bad > 0 ? ExitCode.failed : ExitCode.done
}

const ends = ({ receive, receive_allocation, send, send_allocation }: PairRun) => ({
  send: perPacket(send_allocation!, send.datagrams_sent),
  receive: perPacket(receive_allocation!, receive.datagrams_received)
})

export const perPacket = ({ collections, external_bytes, heap_bytes }: Allocation, packets: number) => ({
  packets,
  heap_bytes_per_packet: rounded(heap_bytes / packets, 1),
  external_bytes_per_packet: rounded(external_bytes / packets, 1),
  collections
})
