/**
 * What a machine gives to a link: the native path or why not, the kernel's abilities, its buffers and limits, and what an
 * operator can do about each. Whether a link can work is tried, not guessed: a sealed datagram goes to this very process.
 */
import { Cryptography, DatagramSocket, type OpenSocket } from "@pure-link/ports"
import { type Capabilities, capabilities, type Missing } from "@pure-link/udp"
import * as Effect from "effect/Effect"
import { readFileSync } from "node:fs"
import { release } from "node:os"
import { badNetwork, type Failure, toFailure } from "./failure.ts"
import { grouped } from "./output.ts"

export interface Diagnosis extends Capabilities {
  readonly node: string
  readonly kernel: string
  /** What the system granted to a socket that asked for `wantedBuffer`. */
  readonly buffers: OpenSocket["buffers"]
  /** The system's limits for them; undefined where it has none to read. */
  readonly limits: { readonly receive: number | undefined; readonly send: number | undefined }
  readonly remedies: ReadonlyArray<string>
}

/** A buffer that holds a burst of a fast path until this process is scheduled. */
const wantedBuffer = 4_194_304

/** Fails if no link can work here. */
export const diagnose: Effect.Effect<Diagnosis, Failure, DatagramSocket | Cryptography> = Effect.gen(function* () {
  const found = {
    node: process.versions.node,
    kernel: `${process.platform} ${release()} ${process.arch}`,
    ...capabilities(),
    buffers: yield* tryOut,
    limits: { receive: limitOf("rmem_max"), send: limitOf("wmem_max") }
  }
  return { ...found, remedies: remediesOf(found) }
})

const limitOf = (name: string): number | undefined => {
  try {
    return Number(readFileSync(`/proc/sys/net/core/${name}`, "utf8"))
  } catch {
    return undefined
  }
}

/** What could be better, and how; nothing for a machine that has all of it. */
export const remediesOf = (found: Omit<Diagnosis, "remedies">): ReadonlyArray<string> => {
  const { addon, aead, buffers, sockets } = found
  const remedies: Array<string> = []
  const missing = (what: string, part: object) => {
    if (isMissing(part)) remedies.push(`${what}: ${part.reason}`)
  }
  if (isMissing(addon)) missing("no native path, so packets cost several times the CPU", addon)
  else {
    missing("no native encryption, so packets cost several times the CPU", aead)
    missing("no native sockets, so packets cost several times the CPU", sockets)
  }
  if (!isMissing(sockets) && sockets.segments === 0) {
    remedies.push("no GSO, so each datagram is sent for itself: Linux has it from 4.18 on, on most devices")
  }
  const small = (what: string, granted: number, limit: string) => {
    if (granted >= wantedBuffer) return
    remedies.push(
      `a ${what} buffer of ${grouped(granted)} B drops bursts: \`sysctl -w net.core.${limit}=${wantedBuffer}\`` +
        ` (and in /etc/sysctl.d), or give the process CAP_NET_ADMIN`
    )
  }
  small("receive", buffers.receive, "rmem_max")
  small("send", buffers.send, "wmem_max")
  return remedies
}

export const isMissing = (part: object): part is Missing => "reason" in part

const material = new Uint8Array(28)
const headerLength = 12
const bodyLength = 100
const length = headerLength + bodyLength + 16

/** Sends sealed datagrams over the loopback and opens what comes; gives the socket's buffers. */
const tryOut = Effect.gen(function* () {
  const suite = yield* Cryptography
  const { open } = yield* DatagramSocket
  const socket = yield* open({ host: "127.0.0.1", port: 0 })
  const key = suite.packetKey(material)
  const slab = new Uint8Array(2 * length)
  const lengths = Uint32Array.of(length, length)
  key.sealTrain(slab, length, lengths, 0, 2, headerLength, 1)
  socket.send(slab, length, lengths, 2, socket.local)
  yield* Effect.timeoutOrElse(waitFor(socket), {
    duration: "2 seconds",
    orElse: () =>
      Effect.fail(badNetwork("datagrams to 127.0.0.1 do not arrive within 2 s; does a firewall drop what lo carries?"))
  })
  const { bytes, ends, starts } = socket.receive(1)
  const [start, end] = [starts[0]!, ends[0]!]
  const opens = [1, 2].some((number) => key.open(bytes, start, start + headerLength, end, number))
  if (!opens) return yield* Effect.fail(badNetwork("a sealed datagram to 127.0.0.1 came back changed"))
  return socket.buffers
}).pipe(Effect.scoped, Effect.mapError(toFailure))

const waitFor = (socket: OpenSocket): Effect.Effect<void> =>
  Effect.callback<void>((resume) => {
    socket.onReadable = () => {
      socket.onReadable = undefined
      resume(Effect.void)
    }
  })
