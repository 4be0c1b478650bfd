export * from "./Inbox.ts"
export * from "./Outbox.ts"
export * from "./records.ts"
