import { Bench, list, makeRecords, stored } from "../../packages/sender/test/scriptedPeer.ts"
import type { Frame } from "@pure-link/wire"

/**
 * What a receiver that a sender trusts may try against it (spec §9.4, §15.3): each attack is an endless row of answers, sealed with
 * valid keys. One row serves the tests and the command that measures.
 */

const recordCount = 400

/** A real sender with records, whose peer answers what an attack says. */
export class Besieged {
  readonly bench: Bench
  readonly total = recordCount
  /** Numbers of packets that the peer opened and did not report yet. */
  readonly heard: Array<number> = []

  constructor() {
    this.bench = new Bench({ records: makeRecords(Array.from({ length: recordCount }, (_, i) => (i * 37) % 3_000)) })
    this.bench.send()
    this.advance(10_000)
    this.bench.answer(list("Ack", ...this.heard.splice(0)), stored(0))
    this.bench.send()
    this.advance(1)
  }

  get next(): number {
    return this.bench.peer.packets.at(-1)!.number + 1
  }

  seal(...frames: ReadonlyArray<Frame>): Uint8Array {
    return this.bench.peer.answer(frames)
  }

  sealBody(body: Uint8Array): Uint8Array {
    return this.bench.peer.answer([], { body })
  }

  /** Answers arrive, and what the sender has to say to them leaves; it reaches the peer with the next `advance`. */
  hit(answers: Iterable<Uint8Array>): void {
    for (const answer of answers) {
      this.bench.hear(answer.slice())
      this.bench.send()
    }
  }

  advance(time: number): void {
    const { bench } = this
    bench.runUntil(bench.now + time)
    this.open(bench.datagrams.splice(0))
    bench.events.length = 0
  }

  private open(datagrams: ReadonlyArray<Uint8Array>): void {
    for (const datagram of datagrams) {
      const packet = this.bench.peer.open(this.bench.now, datagram)
      if (packet !== undefined) this.heard.push(packet.number)
    }
    const { packets } = this.bench.peer
    if (packets.length > 2_000) packets.splice(0, packets.length - 1_000)
  }
}

export interface AnswerAttack {
  readonly name: string
  readonly answers: (besieged: Besieged) => Generator<Uint8Array>
  readonly isViolation?: boolean
  /** The sender stops for good with the typed error of a fork (spec §8.5). */
  readonly forks?: boolean
}

const attack = (name: string, answers: AnswerAttack["answers"], more: Partial<AnswerAttack> = {}): AnswerAttack => ({
  name,
  answers,
  ...more
})

const ownLife = 0x11n
const dataFrames: ReadonlyArray<Frame> = [
  { _tag: "Ping" },
  { _tag: "Response", token: 5n },
  { _tag: "Offer", epoch: 4, publicKey: new Uint8Array(32).fill(9) },
  { _tag: "Records", firstDelta: 0, partOffset: 0, endsRecord: true, parts: [Uint8Array.of(1)] },
  { _tag: "Part", delta: 0, partOffset: 0, endsRecord: true, bytes: Uint8Array.of(1) }
]
const rawStored = (records: number, bytes: number): Uint8Array => {
  const body = Buffer.alloc(25)
  body[0] = 0x14
  body.writeBigUInt64BE(1n, 1)
  body.writeBigUInt64BE(ownLife, 9)
  body.writeUInt32BE(records, 17)
  body.writeUInt32BE(bytes, 21)
  return body
}
const violation = { isViolation: true }

export const answerAttacks: ReadonlyArray<AnswerAttack> = [
  attack("acknowledgements of what came, as honest receivers send them", function* (besieged) {
    for (;;) {
      const heard = besieged.heard.splice(0)
      yield besieged.seal(list("Ack", ...(heard.length > 0 ? heard : [0])), stored(0))
    }
  }),
  attack(
    "acknowledgements of packets never sent",
    function* (besieged) {
      for (let turn = 0; ; turn++) yield besieged.seal(list("Ack", besieged.next + 1 + turn), stored(5, {}, ownLife))
    },
    violation
  ),
  attack(
    "acknowledgements of the largest number there is",
    function* (besieged) {
      for (;;) yield besieged.seal({ _tag: "Ack", delay: 2 ** 53 - 1, ranges: [{ low: 0, high: 2 ** 53 - 1 }] })
    },
    violation
  ),
  attack("acknowledgements of packets that did not come", function* (besieged) {
    for (;;) yield besieged.seal({ _tag: "Ack", delay: 0, ranges: [{ low: 0, high: besieged.next - 1 }] }, stored(0))
  }),
  attack("everything acknowledged a hundred times in a packet", function* (besieged) {
    for (;;) {
      const high = besieged.next - 1
      yield besieged.seal(
        ...Array.from({ length: 90 }, (): Frame => ({ _tag: "Ack", delay: 0, ranges: [{ low: 0, high }] }))
      )
    }
  }),
  attack("ACK and SEEN of the same packets", function* (besieged) {
    for (let turn = 0; ; turn++) {
      const ranges: Extract<Frame, { _tag: "Ack" }>["ranges"] = [{ low: 0, high: besieged.next - 1 }]
      const both: ReadonlyArray<Frame> = [
        { _tag: "Ack", delay: 0, ranges },
        { _tag: "Seen", delay: 0, ranges }
      ]
      yield besieged.seal(...(turn % 2 === 0 ? both : both.toReversed()))
    }
  }),
  attack("every other number, in ranges and maps", function* (besieged) {
    const bits = new Uint8Array(1_000).fill(0x55)
    for (;;) {
      const largest = besieged.next - 1
      const byteCount = Math.min(1_000, Math.max(1, largest >>> 3))
      yield besieged.seal({ _tag: "SeenMap", largest, delay: 0, bits: bits.slice(0, byteCount) })
    }
  }),
  attack("everything is SEEN", function* (besieged) {
    for (;;) {
      const heard = besieged.heard.splice(0)
      yield besieged.seal(list("Seen", ...(heard.length > 0 ? heard : [0])), stored(0))
    }
  }),
  attack("delays beyond all measure", function* (besieged) {
    for (let turn = 0; ; turn++) {
      const frame = list("Ack", ...(besieged.heard.length > 0 ? besieged.heard.splice(0) : [0])) as Extract<
        Frame,
        { _tag: "Ack" }
      >
      yield besieged.seal({ ...frame, delay: turn % 2 === 0 ? 2 ** 53 - 1 : turn })
    }
  }),
  attack(
    "credit beyond bounds",
    function* (besieged) {
      for (let turn = 0; ; turn++) yield besieged.sealBody(rawStored(65_537 + turn, 2 ** 32 - 1))
    },
    violation
  ),
  attack("credit 0 for ever", function* (besieged) {
    for (;;) {
      const heard = besieged.heard.splice(0)
      yield besieged.seal(
        list("Ack", ...(heard.length > 0 ? heard : [0])),
        stored(0, { creditRecords: 0, creditBytes: 0 })
      )
    }
  }),
  attack("credit that opens and closes", function* (besieged) {
    for (let turn = 0; ; turn++) {
      const heard = besieged.heard.splice(0)
      const acked = list(turn % 3 === 0 ? "Ack" : "Seen", ...(heard.length > 0 ? heard : [0]))
      yield besieged.seal(acked, stored(0, { creditRecords: turn % 2, creditBytes: turn % 5 }))
    }
  }),
  attack("n that falls", function* (besieged) {
    for (let turn = 0; ; turn++) yield besieged.seal(stored(turn % 2 === 0 ? 9 : 3, {}, ownLife))
  }),
  attack(
    "n beyond the last record",
    function* (besieged) {
      for (let turn = 0; ; turn++) yield besieged.seal(stored(besieged.total + 1 + turn, {}, ownLife))
    },
    { forks: true }
  ),
  attack(
    "n of another life",
    function* (besieged) {
      for (;;) yield besieged.seal(stored(3, {}, 0x666n))
    },
    { forks: true }
  ),
  attack("n of records that were never sent", function* (besieged) {
    for (let turn = 0; ; turn++) yield besieged.seal(stored(Math.min(besieged.total - 1, 200 + turn), {}, ownLife))
  }),
  attack("several STORED in a packet that differ", function* (besieged) {
    for (let turn = 0; ; turn++) yield besieged.seal(stored(9, {}, ownLife), stored(turn % 9, {}, ownLife), stored(0))
  }),
  attack(
    "frames of the wrong direction",
    function* (besieged) {
      for (let turn = 0; ; turn++) yield besieged.seal(stored(9, {}, ownLife), dataFrames[turn % dataFrames.length]!)
    },
    violation
  ),
  attack(
    "unknown frame types",
    function* (besieged) {
      for (let turn = 0; ; turn++) {
        const body = new Uint8Array(60).fill(0x18)
        body[0] = 0x1a + (turn % 38)
        yield besieged.sealBody(body)
      }
    },
    violation
  ),
  attack("CHALLENGE", function* (besieged) {
    for (let turn = 1; ; turn++)
      yield besieged.seal({ _tag: "Challenge", ipChanged: turn % 2 === 0, token: BigInt(turn) })
  }),
  attack("ACCEPT of what was not offered", function* (besieged) {
    for (let turn = 1; ; turn++)
      yield besieged.seal({ _tag: "Accept", epoch: turn, echo: turn, publicKey: new Uint8Array(32).fill(9) })
  }),
  attack("NAME", function* (besieged) {
    for (;;)
      yield besieged.seal(list("Ack", ...(besieged.heard.length > 0 ? besieged.heard.splice(0) : [0])), {
        _tag: "Name"
      })
  }),
  attack("REFUSED with ever another reason", function* (besieged) {
    for (let turn = 0; ; turn++) yield besieged.seal({ _tag: "Refused", reason: ((turn % 7) + 1) as 1 })
  }),
  attack("REFUSED, on and off", function* (besieged) {
    for (let turn = 0; ; turn++) {
      yield besieged.seal(
        list("Ack", ...(besieged.heard.length > 0 ? besieged.heard.splice(0) : [0])),
        ...(turn % 2 === 0
          ? [{ _tag: "Refused", reason: 1 } as const]
          : [stored(Math.min(besieged.total - 2, turn >>> 4), {}, ownLife)])
      )
    }
  }),
  attack("ECN", function* (besieged) {
    for (let turn = 0; ; turn++) yield besieged.seal({ _tag: "Ecn", ect0: turn, ect1: 2 ** 53 - 1, ce: turn })
  }),
  attack("a fresh reply run with every answer", function* (besieged) {
    for (;;) {
      besieged.bench.peer.freshReplyRun()
      yield besieged.seal(list("Ack", besieged.next - 1), stored(0))
    }
  }),
  attack("two reply runs in turn", function* (besieged) {
    const { peer } = besieged.bench
    for (let turn = 0; ; turn++) {
      yield peer.answer([list("Ack", besieged.next - 1), stored(0)], {
        replyRun: BigInt(0xa1 + (turn % 2)),
        number: 100 + turn
      })
    }
  }),
  attack("answer numbers that jump", function* (besieged) {
    const { peer } = besieged.bench
    for (let turn = 0; ; turn++)
      yield peer.answer([stored(1, {}, ownLife)], { number: Number.MAX_SAFE_INTEGER - 4_000 + (turn % 4_000) })
  })
]
