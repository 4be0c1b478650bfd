import { assert, describe, it } from "@effect/vitest"
import { answerKey, dataKey, lostKey, nobleSuite, nodeSuite, type PacketKey } from "@pure-link/keys"
import {
  decodeFrame,
  epochBitsOf,
  expandPacketNumber,
  type Frame,
  Kind,
  lostLength,
  PacketHeader,
  runPrefixOf,
  smallestEpochPacket,
  tagLength,
  validateBody
} from "@pure-link/wire"
import keys from "./keys.json" with { type: "json" }
import document from "./packets.json" with { type: "json" }

/** The frozen whole packets (spec §3, §4, §19): read, opened, decoded, and sealed again to the same bytes. */

interface PacketVector {
  readonly name: string
  readonly kind: string
  readonly epoch: number
  readonly number: number
  /** The largest number opened before, where a short number is to be expanded (spec §3.6). */
  readonly largestOpened?: number
  /** The reply run, where it is not that of keys.json. */
  readonly replyRun?: string
  /** The name of the packet that drew this LOST. */
  readonly cause?: string
  readonly material: string
  readonly header: string
  readonly body: string
  readonly packet: string
  readonly frames: ReadonlyArray<unknown>
}

const bytesOf = (hex: string): Uint8Array => new Uint8Array(Buffer.from(hex, "hex"))
const hexOf = (bytes: Uint8Array): string => Buffer.from(bytes).toString("hex")
const idOf = (hex: string): bigint => BigInt(`0x${hex}`)

const packets: ReadonlyArray<PacketVector> = document.packets
const kinds: Record<string, number> = {
  "short data": Kind.shortData,
  "long data": Kind.longData,
  answer: Kind.answer,
  LOST: Kind.lost
}
const pair = { sender: bytesOf(keys.sender.publicKey), receiver: bytesOf(keys.receiver.publicKey) }
const run = idOf(keys.run)
const replyRunOf = (vector: PacketVector): bigint => idOf(vector.replyRun ?? keys.replyRun)

/** The key that the schedule gives for a packet (spec §6.4). */
const scheduledKey = (vector: PacketVector): PacketKey => {
  const { epoch } = vector
  const secret = bytesOf(epoch === 0 ? keys.epoch0.secret : keys.epochs.find((e) => e.epoch === epoch)!.secret)
  switch (kinds[vector.kind]) {
    case Kind.lost:
      return lostKey(nodeSuite, secret, pair, replyRunOf(vector))
    case Kind.answer:
      return answerKey(nodeSuite, secret, pair, run, epoch, replyRunOf(vector))
    default:
      return dataKey(nodeSuite, secret, pair, run, epoch)
  }
}

/** A frame as packets.json writes it: ids and bytes in hex. */
const plain = (frame: Frame): unknown =>
  JSON.parse(
    JSON.stringify(frame, (_key, value: unknown) =>
      typeof value === "bigint"
        ? value.toString(16).padStart(16, "0")
        : value instanceof Uint8Array
          ? hexOf(value)
          : value
    )
  )

const framesOf = (body: Uint8Array): ReadonlyArray<unknown> => {
  const frames: Array<unknown> = []
  for (let offset = 0; offset < body.length;) {
    const decoded = decodeFrame(body, offset, body.length)
    assert.isDefined(decoded)
    frames.push(plain(decoded.frame))
    offset = decoded.next
  }
  return frames
}

describe("packets.json", () => {
  it("holds every kind of packet", () => {
    assert.deepStrictEqual(new Set(packets.map((vector) => vector.kind)), new Set(Object.keys(kinds)))
  })

  for (const vector of packets) {
    describe(vector.name, () => {
      const packet = bytesOf(vector.packet)
      const bodyStart = vector.header.length / 2
      const bodyEnd = packet.length - tagLength

      it("has the header that it says", () => {
        const header = new PacketHeader()
        assert.isTrue(header.read(packet, 0, packet.length))
        assert.strictEqual(header.kind, kinds[vector.kind])
        assert.strictEqual(header.length, bodyStart)
        assert.strictEqual(header.epochBits, epochBitsOf(vector.epoch))
        assert.strictEqual(header.keyId, Number.parseInt(keys.sender.keyId, 16))
        assert.strictEqual(header.runPrefix, runPrefixOf(run))
        if (header.kind === Kind.longData) assert.strictEqual(header.run, run)
        if (header.kind === Kind.answer || header.kind === Kind.lost) {
          assert.strictEqual(header.replyRun, replyRunOf(vector))
        }
        const number =
          header.kind === Kind.shortData ? expandPacketNumber(header.number, vector.largestOpened!) : header.number
        assert.strictEqual(number, vector.number)
      })

      it("opens with its key and with the scheduled one, in both suites, and seals to the same bytes", () => {
        const material = bytesOf(vector.material)
        for (const key of [nodeSuite.packetKey(material), nobleSuite.packetKey(material), scheduledKey(vector)]) {
          const bytes = packet.slice()
          assert.isTrue(key.open(bytes, 0, bodyStart, bytes.length, vector.number))
          assert.strictEqual(hexOf(bytes.subarray(0, bodyEnd)), vector.header + vector.body)
          bytes.fill(0, bodyEnd)
          key.seal(bytes, 0, bodyStart, bodyEnd, vector.number)
          assert.strictEqual(hexOf(bytes), vector.packet)
        }
      })

      if (vector.cause === undefined) {
        it("means the frames that it says", () => {
          const body = bytesOf(vector.body)
          const direction = vector.kind === "answer" ? "answer" : "data"
          assert.isTrue(validateBody(body, 0, body.length, direction))
          assert.deepStrictEqual(framesOf(body), vector.frames)
        })
      } else {
        it("echoes its cause (spec §12.2)", () => {
          const cause = packets.find((other) => other.name === vector.cause)!
          const causeBytes = bytesOf(cause.packet)
          const number = cause.number % 2 ** 24
          const echo = [causeBytes[0]!, number >>> 16, (number >>> 8) & 0xff, number & 0xff, ...causeBytes.slice(-8)]
          assert.strictEqual(vector.body, hexOf(Uint8Array.from(echo)))
          assert.strictEqual(packet.length, lostLength)
          assert.isBelow(lostLength, causeBytes.length)
        })
      }

      if (vector.epoch > 0 && vector.kind.endsWith("data")) {
        it("is long enough for its epoch (spec §3.8)", () => assert.isAtLeast(packet.length, smallestEpochPacket))
      }
    })
  }
})
