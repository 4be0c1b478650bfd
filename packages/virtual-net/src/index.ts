export * from "./Sim.ts"
export { type LinkCounters, type LinkOptions, perfectLink } from "./VirtualLink.ts"
export { type Fate, type Network, type NetworkOptions, type Passage, VirtualNetwork } from "./VirtualNetwork.ts"
