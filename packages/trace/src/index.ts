export * from "./trace.ts"
export * from "./traceEvent.ts"
