import type { Trace, WindowCause } from "@pure-link/trace"
import type { Bytes, Micros, PacketNumber } from "@pure-link/wire"
import type { CongestionController } from "./congestion/CongestionController.ts"
import type { RoundTripTime } from "./roundTripTime.ts"

/** What recovery tells of itself. Events of single packets are built only for a trace that wants them. */
export class RecoveryTrace {
  readonly #trace: Trace

  constructor(trace: Trace) {
    this.#trace = trace
  }

  lost(at: Micros, number: PacketNumber, bytes: Bytes, sentAt: Micros): void {
    if (this.#trace.packets) this.#trace.emit({ _tag: "FlightLost", at, number, bytes, sentAt })
  }

  late(at: Micros, number: PacketNumber, sentAt: Micros): void {
    if (this.#trace.packets) this.#trace.emit({ _tag: "FlightLate", at, number, sentAt })
  }

  givenUp(at: Micros, number: PacketNumber): void {
    if (this.#trace.packets) this.#trace.emit({ _tag: "FlightGivenUp", at, number })
  }

  answer(at: Micros, controller: CongestionController, inFlightBytes: Bytes, smoothed: Micros): void {
    if (!this.#trace.packets) return
    const { window, inSlowStart: slowStart } = controller
    this.#trace.emit({ _tag: "AnswerTaken", at, window, inFlightBytes, smoothed, slowStart })
  }

  measured(at: Micros, { latest, minimum, smoothed, variance }: RoundTripTime): void {
    if (this.#trace.packets) this.#trace.emit({ _tag: "RoundTripMeasured", at, latest, smoothed, variance, minimum })
  }

  expired(at: Micros, count: number, inFlightBytes: Bytes): void {
    this.#trace.emit({ _tag: "ProbeTimeoutExpired", at, count, inFlightBytes })
  }

  reduced(at: Micros, cause: WindowCause, window: Bytes, inFlightBytes: Bytes): void {
    this.#trace.emit({ _tag: "WindowReduced", at, cause, window, inFlightBytes })
  }

  undone(at: Micros, window: Bytes): void {
    this.#trace.emit({ _tag: "EpisodeUndone", at, window })
  }

  sized(at: Micros, bytes: Bytes, grows: boolean): void {
    const cause = grows ? "probe acknowledged" : "black hole"
    this.#trace.emit({ _tag: "DatagramSizeChanged", at, bytes, cause })
  }
}
