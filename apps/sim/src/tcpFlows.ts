import type { Network } from "@pure-link/virtual-net"
import type { Bytes, Micros } from "@pure-link/wire"
import { startTcpFlow, type TcpFlow } from "@pure-link/virtual-net/tcp"
import type { SimOptions } from "./options.ts"
import { tcpAddress, tcpReceiverAddress } from "./path.ts"
import type { TimeSeries } from "./timeSeries.ts"

/** The TCP CUBIC flows beside ours, all from the same moment, and what they deliver in order over time. */

/** How often is looked. */
const every: Micros = 50_000

export class TcpFlows {
  readonly #network: Network
  readonly #series: TimeSeries
  readonly #flows: Array<TcpFlow> = []
  #noted: Bytes = 0
  #atSkip: Bytes = 0

  constructor(network: Network, { join, skip, tcpFlows }: SimOptions, series: TimeSeries) {
    this.#network = network
    this.#series = series
    if (tcpFlows === 0) return
    if (join === 0) this.#start(tcpFlows)
    else network.at(join, () => this.#start(tcpFlows))
    network.at(skip, () => {
      this.#atSkip = this.deliveredBytes
    })
    this.#look()
  }

  #start(count: number): void {
    for (let flow = 0; flow < count; flow++) {
      this.#flows.push(startTcpFlow(this.#network, { from: tcpAddress(flow), to: tcpReceiverAddress(flow) }))
    }
  }

  get deliveredBytes(): Bytes {
    return this.#flows.reduce((total, flow) => total + flow.deliveredBytes, 0)
  }

  /** Payload delivered since the part of the run that is skipped. */
  get countedBytes(): Bytes {
    return this.deliveredBytes - this.#atSkip
  }

  readonly #look = (): void => {
    const now = this.#network.now()
    const delivered = this.deliveredBytes
    this.#series.addTcpBytes(now, delivered - this.#noted)
    this.#noted = delivered
    this.#network.at(now + every, this.#look)
  }
}
