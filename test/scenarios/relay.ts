/**
 * A wire between processes with a fixed delay each way: it forwards datagrams of one sender to a receiver (or to each of
 * several) and back, keeps the times at which they came to the receiver's socket, and counts what can be seen in the clear
 * (spec §3.2).
 */
import { createSocket, type Socket } from "node:dgram"
import { once } from "node:events"

/** Microseconds of the machine's monotonic clock, which all its processes share. */
export const monotonicMicros = (): number => Math.floor(Number(process.hrtime.bigint()) / 1_000)

/** What is on its way in one direction, in order. */
class Way<A> {
  readonly #delayMillis: number
  readonly #deliver: (what: A) => void
  readonly #queue: Array<{ readonly at: number; readonly what: A }> = []
  #timer: NodeJS.Timeout | undefined

  constructor(delayMillis: number, deliver: (what: A) => void) {
    this.#delayMillis = delayMillis
    this.#deliver = deliver
  }

  take(what: A): void {
    this.#queue.push({ at: performance.now() + this.#delayMillis, what })
    this.#arm()
  }

  #arm(): void {
    const next = this.#queue[0]
    if (next === undefined || this.#timer !== undefined) return
    this.#timer = setTimeout(
      () => {
        this.#timer = undefined
        while (this.#queue.length > 0 && this.#queue[0]!.at <= performance.now()) {
          this.#deliver(this.#queue.shift()!.what)
        }
        this.#arm()
      },
      Math.max(0, next.at - performance.now())
    )
  }

  close(): void {
    clearTimeout(this.#timer)
    this.#queue.length = 0
  }
}

const answerKind = 2
const lostKind = 3
const epochBits = 0x0f
/** A packet of the sender that is longer than this has records in it. */
const longestWithout = 300
/** Of several receivers each in turn is the first to get a datagram; the others get it so much later. */
const betweenReceiversMillis = 5

export class Relay {
  /** When datagrams of the sender were handed to the receiver's address, whether or not somebody listened there. */
  readonly delivered: Array<number> = []
  /** Datagrams of the receiver that came here: LOST, and all. */
  lost = 0
  answers = 0
  /** Answers of an epoch after the first that were handed to the sender: its run is confirmed. */
  confirmed = 0
  /** What waits for the next records to be on their way. */
  readonly #departures: Array<() => void> = []
  readonly #near: Socket
  readonly #fars: Array<Socket> = []
  readonly #back: Way<Uint8Array>
  readonly #ways: ReadonlyArray<{ readonly close: () => void }>

  /** A wire to the receiver that listens on a port. */
  static async open(port: number, delayMillis: number): Promise<Relay> {
    const near = createSocket("udp4")
    near.bind(0, "127.0.0.1")
    await once(near, "listening")
    const relay = new Relay(near, delayMillis)
    await relay.join(port)
    return relay
  }

  private constructor(near: Socket, delayMillis: number) {
    this.#near = near
    let sender: { readonly address: string; readonly port: number } | undefined
    const fars = this.#fars
    const later = new Way<{ readonly datagram: Uint8Array; readonly to: ReadonlyArray<Socket> }>(
      betweenReceiversMillis,
      ({ datagram, to }) => {
        for (const far of to) far.send(datagram)
      }
    )
    const there = new Way<Uint8Array>(delayMillis, (datagram) => {
      this.delivered.push(monotonicMicros())
      const first = this.delivered.length % fars.length
      fars[first]!.send(datagram)
      if (fars.length > 1) later.take({ datagram, to: fars.filter((_, index) => index !== first) })
    })
    const back = new Way<Uint8Array>(delayMillis, (datagram) => {
      if (datagram[0]! >>> 6 === answerKind && (datagram[0]! & epochBits) !== 0) this.confirmed += 1
      if (sender !== undefined) near.send(datagram, sender.port, sender.address)
    })
    this.#back = back
    this.#ways = [there, back, later]
    near.on("message", (datagram, from) => {
      sender = from
      there.take(datagram)
      if (datagram.length > longestWithout) for (const departs of this.#departures.splice(0)) departs()
    })
    near.on("error", () => {})
  }

  /** From now on the receiver on another port gets all datagrams too. */
  async join(port: number): Promise<void> {
    const far = createSocket("udp4")
    far.connect(port, "127.0.0.1")
    await once(far, "connect")
    far.on("message", (datagram) => {
      this.answers += 1
      if (datagram[0]! >> 6 === lostKind) this.lost += 1
      this.#back.take(datagram)
    })
    // While nobody listens there, the system says so with each datagram.
    far.on("error", () => {})
    this.#fars.push(far)
  }

  /** Resolves as soon as records are on their way. */
  departure(): Promise<void> {
    return new Promise((resolve) => this.#departures.push(resolve))
  }

  /** Where the sender is to send to. */
  get address(): string {
    return `127.0.0.1:${this.#near.address().port}`
  }

  close(): void {
    for (const way of this.#ways) way.close()
    this.#near.close()
    for (const far of this.#fars) far.close()
  }
}
