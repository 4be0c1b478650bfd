import { CongestionControl, LossResponse, Policies, TailRedundancy } from "@pure-link/recovery"
import * as Layer from "effect/Layer"

/** For alarms, not archives: a packet goes once more while the application leaves the window unused. */
export const forAlarms = Layer.merge(Policies.layerDefault, TailRedundancy.layerOnce)

/** NewReno, and a policy of one's own: without a queue, a loss is worth half of a reduction. */
const ownResponse = Layer.succeed(LossResponse, {
  make: () => ({ name: "half without a queue", partOf: (rtt) => (rtt.latest > 1.1 * rtt.minimum ? 1 : 0.5) })
})
export const ownChoice = Layer.mergeAll(Policies.layerDefault, CongestionControl.layerNewReno, ownResponse)
