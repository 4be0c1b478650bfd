import { readFileSync } from "node:fs"

/** What the kernel counts in the network namespace of a process. */

/** Packets that left by a device; 0 while the process, or its namespace, has none of that name. */
export const packetsSentBy = (device: string, pid: number): number => {
  try {
    return sentPackets(readFileSync(`/proc/${pid}/net/dev`, "utf8"), device)
  } catch {
    return 0
  }
}

/** The column behind the bytes sent, of a table with eight columns of what was received before them. */
export const sentPackets = (table: string, device: string): number => {
  const line = table.split("\n").find((line) => line.trimStart().startsWith(`${device}:`))
  return Number(line?.split(":")[1]!.trim().split(/\s+/)[9] ?? 0)
}
