/**
 * The process of one end: does what it was started for, measures itself, and ends when it is told to or nobody is left
 * to tell it.
 */
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Latch from "effect/Latch"
import { AllocationWatch } from "../allocationWatch.ts"
import { Meter } from "../meter.ts"
import type { ProcessWatch } from "../processWatch.ts"
import { memoryMib, noWork, peakMemoryMib, type Work } from "../sample.ts"
import type { EndEvent, EndReport, EndRequest, EndSetting } from "./messages.ts"

const setting = JSON.parse(process.argv[2]!) as EndSetting
const stop = Latch.makeUnsafe(false)
let appended = 0
let runPrefix = () => 0
let meter: Meter | undefined
let work: (() => Work) | undefined
let watch: ProcessWatch | undefined

const tell = (event: EndEvent): void => {
  if (process.connected) process.send!(event)
}

const ready = (port: number, workSoFar: () => Work, processWatch?: ProcessWatch): void => {
  work = workSoFar
  watch = processWatch
  let allocations: AllocationWatch | undefined
  meter =
    setting.window &&
    new Meter(setting.window, workSoFar, {
      opened: () => {
        if (setting.allocations) allocations = new AllocationWatch()
      },
      closed: (measurement) => tell({ event: "measured", measurement, allocation: allocations?.stop() ?? null })
    })
  tell({ event: "ready", port })
}

const tick = (records: number): void => meter?.tick(records)

const tellStatus = (): void => {
  const { datagramsDropped, datagramsReceived, records } = work?.() ?? noWork
  tell({
    event: "status",
    at: performance.now(),
    records,
    appended,
    datagrams_received: datagramsReceived,
    datagrams_dropped: datagramsDropped,
    timer_late_ms: watch?.takeTimerLateness() ?? 0,
    rss_mib: memoryMib(),
    rss_max_mib: peakMemoryMib(),
    store_max_mib: watch?.usage.store_max_mib ?? 0,
    run_prefix: runPrefix()
  })
}

type Ending = Effect.Effect<
  { readonly report: EndReport; readonly memorySeries: ReadonlyArray<number> },
  { readonly message: string }
>

/** Each role loads what it needs only: the floor nothing of the link. */
const program = async (): Promise<Ending> => {
  const { order } = setting
  const until = stop.await
  switch (order.role) {
    case "recv": {
      const { receive } = await import("./receiveEnd.ts")
      return receive(order.options, { listening: ready, progress: tick, until })
    }
    case "send": {
      const { send } = await import("./sendEnd.ts")
      return send(order.options, {
        opened: (node, workSoFar, processWatch) => {
          runPrefix = () => node.seam.driver.senders[0]?.machine.runPrefix ?? 0
          ready(0, workSoFar, processWatch)
        },
        progress: (appendedNow, stored) => {
          appended = appendedNow
          tick(stored)
        },
        until
      })
    }
    case "floor-recv": {
      const { floorReceive } = await import("../floor/floorReceive.ts")
      return floorReceive(order.options, { ready, tick, until })
    }
    case "floor-send": {
      const { floorSend } = await import("../floor/floorSend.ts")
      return floorSend(order.options, { ready, tick, until })
    }
  }
}

process.on("message", (request: EndRequest) => {
  if (request === "stop") stop.openUnsafe()
  else tellStatus()
})
process.on("disconnect", () => void stop.openUnsafe())
process.on("SIGINT", () => {}) // the command hears it too, and tells what to do

const fiber = Effect.runFork(await program())
fiber.addObserver((exit) => {
  if (Exit.isSuccess(exit)) {
    const { memorySeries, report } = exit.value
    tell({ event: "ended", report, memory_series: memorySeries })
  } else {
    const error = Cause.squash(exit.cause)
    tell({ event: "failed", message: error instanceof Error ? error.message : String(error) })
    process.exitCode = 1
  }
  if (process.connected) process.disconnect?.() // or the command is gone already
})
