import { readFileSync, readlinkSync } from "node:fs"

/** What the kernel counts in the network namespace of a process. */

const ownNamespace = readlinkSync("/proc/self/ns/net")

/** UDP datagrams sent from there; 0 while the process is still in ours. */
export const datagramsSentFrom = (pid: number): number => {
  try {
    if (readlinkSync(`/proc/${pid}/ns/net`) === ownNamespace) return 0
    return udpCounter(readFileSync(`/proc/${pid}/net/snmp`, "utf8"), "OutDatagrams")
  } catch {
    return 0
  }
}

/** A value of the two lines that begin with `Udp:`, names and values; NaN when there is none. */
export const udpCounter = (snmp: string, name: string): number => {
  const [names, values] = snmp.split("\n").filter((line) => line.startsWith("Udp: "))
  const column = names?.split(" ").indexOf(name) ?? -1
  return column < 0 ? Number.NaN : Number(values?.split(" ")[column])
}
