import type { Network } from "@pure-link/virtual-net"
import type { Address, Bytes, Micros } from "@pure-link/wire"
import type { SimOptions } from "./options.ts"

/**
 * The path of a run: every flow's own way to the receiver's host, all of them through one bottleneck forward, and what
 * befalls them over time. The way back has no bottleneck: answers do not queue behind data.
 */

export const bottleneck = "bottleneck"
export const receiverAddress: Address = { host: "receiver", port: 4_600 }

export const senderHost = (flow: number): string => `sender-${flow + 1}`
export const tcpAddress = (flow: number): Address => ({ host: `tcp-${flow + 1}`, port: 5_001 })
export const tcpReceiverAddress = (flow: number): Address => ({ host: receiverAddress.host, port: 5_001 + flow })

export class Path {
  readonly #network: Network
  readonly #options: SimOptions
  readonly #hosts: ReadonlyArray<string>

  constructor(network: Network, options: SimOptions) {
    this.#network = network
    this.#options = options
    const { flows, queueBytes, rateBitsPerSecond, tcpFlows } = options
    network.bottleneck(bottleneck, { rateBitsPerSecond, queueBytes })
    const senders = Array.from({ length: flows }, (_, flow) => senderHost(flow))
    this.#hosts = [...senders, ...Array.from({ length: tcpFlows }, (_, flow) => tcpAddress(flow).host)]
    for (const host of this.#hosts) this.#lay(host)
    this.#schedule()
  }

  /** From now on larger UDP payloads vanish on their way forward. */
  openBlackHole(mtu: Bytes): void {
    for (const host of this.#hosts) this.#network.configure(host, receiverAddress.host, { mtu })
  }

  #lay(host: string): void {
    const { answerLoss, burstLoss, corrupt, displace, duplicate, jitterMicros, loss } = this.#options
    const both = { jitterMicros, duplicate, corrupt }
    this.#network.configure(host, receiverAddress.host, {
      ...both,
      bottleneck,
      loss,
      burstLoss,
      reorder: displace?.fraction ?? 0,
      reorderMicros: displace?.micros ?? 0
    })
    this.#network.configure(receiverAddress.host, host, { ...both, loss: answerLoss })
    this.#setRtt(host, this.#options.rttMicros)
  }

  #setRtt(host: string, rttMicros: Micros): void {
    const forward = Math.round(rttMicros / 2)
    this.#network.configure(host, receiverAddress.host, { delayMicros: forward })
    this.#network.configure(receiverAddress.host, host, { delayMicros: rttMicros - forward })
  }

  #schedule(): void {
    const { blackHole, blackout, delayStep, lossUntil, rttMicros } = this.#options
    this.#at(lossUntil, (host) => {
      this.#network.configure(host, receiverAddress.host, { loss: 0, burstLoss: undefined })
      this.#network.configure(receiverAddress.host, host, { loss: 0 })
    })
    if (delayStep !== undefined) {
      this.#at(delayStep.at, (host) => this.#setRtt(host, delayStep.rttMicros))
      this.#at(delayStep.at + delayStep.duration, (host) => this.#setRtt(host, rttMicros))
    }
    if (blackout !== undefined) {
      this.#at(blackout.at, (host) => this.#network.partition(host, receiverAddress.host))
      this.#at(blackout.at + blackout.duration, (host) => this.#network.heal(host, receiverAddress.host))
    }
    if (blackHole !== undefined && blackHole.at !== "growth") {
      this.#network.at(blackHole.at, () => this.openBlackHole(blackHole.mtu))
    }
  }

  #at(at: Micros, change: (host: string) => void): void {
    this.#network.at(at, () => this.#hosts.forEach(change))
  }
}
