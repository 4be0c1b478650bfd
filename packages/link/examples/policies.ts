import { CongestionControl, Policies, TailRedundancy } from "@pure-link/recovery"
import * as Layer from "effect/Layer"

/** For alarms, not archives: a packet goes once more while the application leaves the window unused. */
export const forAlarms = Layer.merge(Policies.layerDefault, TailRedundancy.layerOnce)

/** Two datagrams in the air, whatever happens: a controller of one's own. */
const twoAtOnce = Layer.succeed(CongestionControl, {
  make: ({ datagramSize }) => ({
    name: "two at once",
    window: 2 * datagramSize,
    inSlowStart: false,
    handleSent: () => {},
    handleAcknowledged: () => {},
    handleLate: () => {},
    handleCongestion: () => undefined,
    undo: () => {},
    handlePersistentCongestion: () => {},
    setDatagramSize: () => {},
    restart: () => {}
  })
})
export const forTrickles = Layer.mergeAll(Policies.layerDefault, twoAtOnce)
