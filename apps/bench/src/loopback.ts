import type { ReceiveOptions } from "./ends/receiveEnd.ts"
import type { SendOptions } from "./ends/sendEnd.ts"
import type { Platform } from "./platform.ts"

/** The two ends of a measurement on one machine. */

const host = "127.0.0.1"

/** What the outbox holds: enough that it never runs dry. */
const outboxBytes = { memory: 33_554_432, sqlite: 268_435_456 }

export const loopbackReceiver = (platform: Platform, port = 0): ReceiveOptions => ({
  ...platform,
  listen: { host, port },
  strictness: "sampled",
  skipSeconds: 0
})

export const loopbackSender = (platform: Platform, port: number, size: number): SendOptions => ({
  ...platform,
  to: { host, port },
  size,
  limitBytes: outboxBytes[platform.store],
  drainSeconds: 10
})
