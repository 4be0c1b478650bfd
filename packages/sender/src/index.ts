export type { SenderCounters } from "./counters.ts"
export * from "./events.ts"
export { SenderLink, type SenderOptions, type SenderStatus, type WantedRecords } from "./link.ts"
