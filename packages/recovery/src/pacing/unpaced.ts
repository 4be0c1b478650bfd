import { type Micros, never } from "@pure-link/wire"
import type { Pacer } from "./Pacer.ts"

/** Sends a window at once, as far as it is free: what pacing is measured against. */
export class Unpaced implements Pacer {
  readonly name = "unpaced"

  paceAt(now: Micros): Micros {
    return now
  }

  roomFor(): number {
    return Infinity
  }

  handleSent(): void {}

  rest(): void {}

  waitForRoom(): Micros {
    return never
  }

  setDatagramSize(): void {}

  restart(): void {}
}
