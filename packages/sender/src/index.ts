export * from "./events.ts"
export { type SenderCounters, SenderLink, type SenderOptions } from "./link.ts"
