import { type Micros, readUint32 } from "@pure-link/wire"
import { Agenda, type Entry } from "../Agenda.ts"
import { largestSegmentDatagram } from "./segment.ts"
import { TcpReceiver } from "./TcpReceiver.ts"
import { type SenderOptions, TcpSender } from "./TcpSender.ts"

/**
 * Both machines of the reference flow with nothing between them but a function, which says after how long a datagram
 * arrives, once or more often or never: for tests of the machines alone.
 */

export interface Passing {
  readonly at: Micros
  readonly isData: boolean
  /** The segment's number, or the first that is missing in an acknowledgement. */
  readonly number: number
  /** Of all that passed in this direction, from 0. */
  readonly order: number
}

interface UnderWay extends Entry {
  readonly bytes: Uint8Array
  readonly isData: boolean
}

export class ToyPath {
  now: Micros = 0
  readonly sender: TcpSender
  readonly receiver: TcpReceiver
  readonly #delays: (passing: Passing) => ReadonlyArray<Micros>
  readonly #agenda = new Agenda<UnderWay>()
  readonly #out = new Uint8Array(largestSegmentDatagram)
  #data = 0
  #acknowledgements = 0

  constructor(options: SenderOptions, delays: (passing: Passing) => ReadonlyArray<Micros>) {
    this.sender = new TcpSender(options)
    this.receiver = new TcpReceiver({ window: options.largestWindow })
    this.#delays = delays
  }

  /** Until then, or until everything is delivered and acknowledged. */
  run(until: Micros): void {
    this.#drive()
    for (;;) {
      const due = this.#agenda.first()
      const next = Math.min(due?.at ?? Infinity, this.sender.deadline(), this.receiver.deadline())
      if (this.sender.isComplete && due === undefined) return
      if (next > until) {
        this.now = until
        return
      }
      this.now = Math.max(this.now, next)
      if (due !== undefined && due.at <= this.now) this.#arrive(this.#agenda.takeFirst()!)
      this.#drive()
    }
  }

  #arrive({ bytes, isData }: UnderWay): void {
    if (isData) this.receiver.handleSegment(this.now, bytes)
    else this.sender.handleSegment(this.now, bytes)
  }

  #drive(): void {
    for (let length = this.sender.poll(this.now, this.#out); length > 0;) {
      this.#pass(this.#out.slice(0, length), true, this.#data++)
      length = this.sender.poll(this.now, this.#out)
    }
    const length = this.receiver.poll(this.now, this.#out)
    if (length > 0) this.#pass(this.#out.slice(0, length), false, this.#acknowledgements++)
  }

  #pass(bytes: Uint8Array, isData: boolean, order: number): void {
    for (const delay of this.#delays({ at: this.now, isData, number: readUint32(bytes, 16), order })) {
      this.#agenda.add({ at: this.now + delay, order: this.#agenda.nextOrder(), bytes, isData })
    }
  }
}
