import { content, ping, ScriptedPeer } from "../../packages/receiver/test/scriptedPeer.ts"
import { type KeyPair, keyPair, nodeSuite } from "@pure-link/keys"
import { type Address, type Frame, type Life, writeUint16, writeUint32 } from "@pure-link/wire"
import { follow, type Stage } from "./stage.ts"

/**
 * What a peer that is allowed may try against a receiver (spec §15.3): each attack is an endless row of packets that are
 * sealed with valid keys. One row serves the tests, which look at what it does, and the command, which looks at what it costs.
 */

/** An allowed peer that writes what it likes. */
export class Hostile {
  readonly stage: Stage
  readonly identity: KeyPair
  readonly from: Address = { host: "203.0.113.66", port: 666 }

  constructor(stage: Stage) {
    this.stage = stage
    this.identity = keyPair(nodeSuite, stage.entropy)
    stage.receiver.allow({ publicKey: this.identity.publicKey, sources: "any" })
  }

  /** A run of it, of a stream of its own unless told otherwise. */
  peer(options: ConstructorParameters<typeof ScriptedPeer>[1] = {}): ScriptedPeer {
    return new ScriptedPeer(this.stage, { source: "hostile", identity: this.identity, from: this.from, ...options })
  }

  /** A run that is live. */
  live(options: ConstructorParameters<typeof ScriptedPeer>[1] = {}): ScriptedPeer {
    const peer = this.peer(options)
    const { stage } = this
    stage.hit([peer.seal([peer.stream, peer.offer()], { long: true })], this.from)
    // `hit` let the answer go; another packet draws the ACCEPT again.
    const bytes = peer.seal([peer.stream, peer.offer()], { long: true })
    stage.receiver.handleDatagram(stage.now, bytes, 0, bytes.length, this.from)
    follow(stage, peer)
    stage.hit([peer.seal([peer.stream, ping])], this.from)
    return peer
  }
}

export interface DataAttack {
  readonly name: string
  /** The packets, one by one; never ends. */
  readonly packets: (hostile: Hostile) => Generator<Uint8Array>
  /** Whether every packet should be a violation. */
  readonly isViolation?: boolean
}

const attack = (name: string, packets: DataAttack["packets"], isViolation = false): DataAttack => ({
  name,
  packets,
  isViolation
})

/** A PART frame without the rules of its writer. */
const rawPart = (delta: number, offset: number, length: number, bytes: number): Uint8Array => {
  const body = new Uint8Array(11 + bytes)
  body[0] = 0x40
  writeUint16(body, writeUint32(body, writeUint32(body, 1, delta), offset), length)
  return body
}

const life = (number: number): Life => ({ life: BigInt(0x1000 + number), first: number })

/** Each byte as the type of a frame with 40 B after it. */
const bodyOfType = (type: number): Uint8Array => {
  const body = new Uint8Array(41).fill(1)
  body[0] = type
  return body
}

const unknownTypes = Array.from({ length: 0x80 }, (_, i) => i).filter(
  (type) => (type > 0x04 && type < 0x10) || (type > 0x19 && type < 0x40) || type > 0x41
)
const answerFrames: ReadonlyArray<Frame> = [
  { _tag: "Ack", delay: 0, ranges: [{ low: 0, high: 5 }] },
  { _tag: "Seen", delay: 0, ranges: [{ low: 0, high: 5 }] },
  { _tag: "AckMap", largest: 9, delay: 0, bits: Uint8Array.of(1) },
  { _tag: "Stored", n: 5, life: 7n, creditRecords: 1, creditBytes: 1 },
  { _tag: "Accept", epoch: 1, echo: 1, publicKey: new Uint8Array(32).fill(9) },
  { _tag: "Challenge", ipChanged: true, token: 4n },
  { _tag: "Refused", reason: 1 },
  { _tag: "Name" },
  { _tag: "Ecn", ect0: 1, ect1: 2, ce: 3 }
]

export const dataAttacks: ReadonlyArray<DataAttack> = [
  attack("records in order, as honest senders send them", function* (hostile) {
    const peer = hostile.live()
    for (let number = 1; ; number++) yield peer.seal([peer.records(number, content(number, 1_000))])
  }),
  attack("gapped parts of many 16 MiB records, newest first", function* (hostile) {
    const peers = Array.from({ length: 24 }, (_, i) => hostile.live({ source: `hostile ${i}` }))
    for (let turn = 0; ; turn++) {
      const peer = peers[turn % peers.length]!
      const step = Math.floor(turn / peers.length)
      const offset = 16_777_216 - 1_000 - ((step * 2_000) % 16_000_000)
      yield peer.seal([peer.part(2 + (step % 7), offset, content(1, 1_000), step % 7000 === 0)])
    }
  }),
  attack("the first record in gapped parts, newest first", function* (hostile) {
    const peers = Array.from({ length: 24 }, (_, i) => hostile.live({ source: `hostile ${i}` }))
    for (let turn = 0; ; turn++) {
      const peer = peers[turn % peers.length]!
      const offset = 16_777_216 - 1_000 - ((Math.floor(turn / peers.length) * 2_000) % 16_000_000)
      yield peer.seal([peer.part(1, offset, content(1, 1_000), false)])
    }
  }),
  attack("overlapping and contradictory ranges", function* (hostile) {
    const peer = hostile.live()
    for (let turn = 0; ; turn++) {
      const offset = (turn * 37) % 50_000
      yield peer.seal([peer.part(1 + (turn % 3), offset, content(turn, 1 + ((turn * 13) % 900)), turn % 5 === 0)])
    }
  }),
  attack("single bytes with gaps", function* (hostile) {
    const peer = hostile.live()
    for (let turn = 0; ; turn++) yield peer.seal([peer.part(2, (2 * turn + 1) % 16_000_000, Uint8Array.of(1), false)])
  }),
  attack("single bytes with gaps, newest first", function* (hostile) {
    const peer = hostile.live()
    for (let turn = 0; ; turn++)
      yield peer.seal([peer.part(2, 60_000 - ((2 * turn) % 60_000), Uint8Array.of(1), false)])
  }),
  attack("a record that grows by a byte a packet", function* (hostile) {
    const peer = hostile.live()
    for (let turn = 1; ; turn++) yield peer.seal([peer.part(2, turn % 60_000, Uint8Array.of(1), false)])
  }),
  attack("records of one byte far ahead, and never the first", function* (hostile) {
    const peers = Array.from({ length: 8 }, (_, i) => hostile.live({ source: `hostile ${i}` }))
    const parts = Array.from({ length: 32 }, () => Uint8Array.of(1))
    for (let turn = 0; ; turn++) {
      const peer = peers[turn % peers.length]!
      yield peer.seal([peer.records(2 + ((Math.floor(turn / peers.length) * 32) % 65_504), ...parts)])
    }
  }),
  attack("empty records far ahead, and never the first", function* (hostile) {
    const peers = Array.from({ length: 8 }, (_, i) => hostile.live({ source: `hostile ${i}` }))
    const parts = Array.from({ length: 32 }, () => new Uint8Array(0))
    for (let turn = 0; ; turn++) {
      const peer = peers[turn % peers.length]!
      const first = 2 + ((Math.floor(turn / peers.length) * 32 * 30) % 64_500)
      yield peer.seal(Array.from({ length: 30 }, (_, i) => peer.records(first + 32 * i, ...parts)))
    }
  }),
  attack(
    "parts beyond the longest record",
    function* (hostile) {
      const peer = hostile.live()
      for (let turn = 0; ; turn++) yield peer.sealBody(rawPart(turn, 16_777_216 - (turn % 40), 41, 41))
    },
    true
  ),
  attack(
    "parts that claim more than the packet has",
    function* (hostile) {
      const peer = hostile.live()
      for (let turn = 0; ; turn++) yield peer.sealBody(rawPart(0, turn * 1_000, 60_000, 900))
    },
    true
  ),
  attack("record numbers beyond the credit and beyond 2^53", function* (hostile) {
    const peer = hostile.live({ base: 2 ** 53 - 5, lowestHeld: 1, lives: [{ life: 9n, first: 1 }] })
    for (let turn = 0; ; turn++)
      yield peer.seal([peer.records(peer.stream.base + ((turn * 7919) % 2 ** 32), content(1, 40))])
  }),
  attack(
    "unknown frame types",
    function* (hostile) {
      const peer = hostile.live()
      for (let turn = 0; ; turn++) yield peer.sealBody(bodyOfType(unknownTypes[turn % unknownTypes.length]!))
    },
    true
  ),
  attack(
    "frames of the wrong direction",
    function* (hostile) {
      const peer = hostile.live()
      for (let turn = 0; ; turn++)
        yield peer.seal([peer.records(1, content(1, 9)), answerFrames[turn % answerFrames.length]!])
    },
    true
  ),
  attack("nothing, and padding only", function* (hostile) {
    const peer = hostile.live()
    for (let turn = 0; ; turn++) yield peer.sealBody(new Uint8Array(turn % 2 === 0 ? 0 : 1_400))
  }),
  attack("PING", function* (hostile) {
    const peer = hostile.live()
    for (;;) yield peer.seal([ping])
  }),
  attack("a thousand PINGs in a packet", function* (hostile) {
    const peer = hostile.live()
    const body = new Uint8Array(1_400).fill(1)
    for (;;) yield peer.sealBody(body)
  }),
  attack("STREAM with ever new lives", function* (hostile) {
    const peer = hostile.live()
    for (let turn = 2; ; turn++) yield peer.seal([{ ...peer.stream, lives: [life(turn), life(turn + 1)] }])
  }),
  attack("STREAM with lives that contradict, on and off", function* (hostile) {
    const peer = hostile.live({ lives: [life(1)] })
    for (let turn = 0; ; turn++) {
      yield peer.seal([{ ...peer.stream, lives: [turn % 2 === 0 ? { life: 5n, first: 1 } : life(1)] }, ping])
    }
  }),
  attack(
    "STREAM of ever another stream",
    function* (hostile) {
      const peer = hostile.live()
      for (let turn = 0; ; turn++) yield peer.seal([{ ...peer.stream, input: `input ${turn}` }])
    },
    true
  ),
  attack("ten STREAMs in a packet", function* (hostile) {
    const peer = hostile.live({ lives: Array.from({ length: 8 }, (_, i) => life(i + 1)) })
    for (;;) yield peer.seal(Array.from({ length: 6 }, () => peer.stream))
  }),
  attack("OFFER with ever new epochs", function* (hostile) {
    const peer = hostile.live()
    for (let turn = 2; ; turn++)
      yield peer.seal([{ _tag: "Offer", epoch: turn, publicKey: new Uint8Array(32).fill((turn % 100) + 2) }])
  }),
  attack("OFFER with ever new epochs, in epoch 0", function* (hostile) {
    const peer = hostile.live()
    for (let turn = 2; ; turn++) {
      yield peer.seal([{ _tag: "Offer", epoch: turn, publicKey: new Uint8Array(32).fill((turn % 100) + 2) }], {
        epoch: 0,
        long: true
      })
    }
  }),
  attack("thirty OFFERs in a packet", function* (hostile) {
    const peer = hostile.live()
    for (let turn = 1; ; turn++) {
      yield peer.seal(
        Array.from({ length: 30 }, (_, i): Frame => ({
          _tag: "Offer",
          epoch: 30 * turn + i,
          publicKey: new Uint8Array(32).fill(i + 2)
        }))
      )
    }
  }),
  attack("OFFER with keys of low order", function* (hostile) {
    const peer = hostile.live()
    for (let turn = 2; ; turn++)
      yield peer.seal([{ _tag: "Offer", epoch: turn, publicKey: Uint8Array.of(1, ...new Uint8Array(31)) }])
  }),
  attack("RESPONSE with wrong tokens", function* (hostile) {
    const peer = hostile.live()
    for (let turn = 1; ; turn++) yield peer.seal([{ _tag: "Response", token: BigInt(turn) }])
  }),
  attack("every other packet number, ACK and SEEN in turn", function* (hostile) {
    const peer = hostile.live()
    for (let turn = 0; ; turn++) {
      const frame = turn % 2 === 0 ? ping : peer.part(70_000, 0, Uint8Array.of(1), false)
      yield peer.seal([frame], { number: peer.number + 1 + (turn % 3) })
    }
  }),
  attack("packet numbers that jump by powers of two", function* (hostile) {
    const peer = hostile.live()
    for (let turn = 0; ; turn++) {
      const jump = peer.number + 2 ** (turn % 40)
      yield peer.seal([ping], { number: Math.min(jump, Number.MAX_SAFE_INTEGER - 1 - (turn % 50)), long: true })
    }
  }),
  attack("packet numbers from the top down", function* (hostile) {
    const peer = hostile.live()
    for (let turn = 0; ; turn++)
      yield peer.seal([ping], { number: Number.MAX_SAFE_INTEGER - (turn % 20_000), long: true })
  }),
  attack("a new run with every packet", function* (hostile) {
    for (let turn = 0; ; turn++) {
      const peer = hostile.peer({ source: `hostile ${turn % 300}` })
      yield peer.seal([peer.stream, peer.offer(), peer.records(1, content(1, 500))], { long: true })
    }
  }),
  attack("a new generation with every packet, in epoch 0", function* (hostile) {
    for (let turn = 0; ; turn++) {
      const peer = hostile.peer({ generation: BigInt(5_000 + turn) })
      yield peer.seal([peer.stream, peer.offer(), peer.records(1, content(1, 500))], { long: true })
    }
  })
]
