export type { SenderCounters } from "./counters.ts"
export * from "./events.ts"
export { type SenderFaults, SenderLink, type SenderOptions, type SenderStatus, type WantedRecords } from "./sender.ts"
