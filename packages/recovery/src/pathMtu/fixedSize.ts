import { type Bytes, never, type PacketNumber } from "@pure-link/wire"
import type { PathMtuDiscovery } from "./PathMtuDiscovery.ts"

/** One size, come what may: for paths whose MTU is known, and to compare with. */
export class FixedSize implements PathMtuDiscovery {
  readonly name = "fixed"
  readonly datagramSize: Bytes
  readonly probeSize: Bytes
  readonly probeAt = never
  readonly isSuspicious = false

  constructor(datagramSize: Bytes) {
    this.datagramSize = datagramSize
    this.probeSize = datagramSize
  }

  handleRoundTrip(): void {}

  handleProbeSent(): void {}

  handleAcknowledged(): void {}

  handleLost(): void {}

  handleTimeoutProbe(): void {}

  handleProbeTimeout(): void {}

  handleForgotten(): void {}

  startRun(): void {}

  restart(): void {}

  takeVanished(): PacketNumber {
    return never
  }
}
