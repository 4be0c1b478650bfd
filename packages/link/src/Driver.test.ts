import { assert, describe, it } from "@effect/vitest"
import { keyPair, nodeSuite, seededEntropy } from "@pure-link/keys"
import {
  Cryptography,
  DatagramSocket,
  Entropy,
  type OpenSocket,
  ReceivedDatagrams,
  SocketError
} from "@pure-link/ports"
import { Policies } from "@pure-link/recovery"
import { Sim, VirtualNetwork } from "@pure-link/virtual-net"
import { type Address, largestDatagram, type Micros, never } from "@pure-link/wire"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import { Driver, type DrivenReceiver, type DrivenSender, type ReceiverMachine, type SenderMachine } from "./Driver.ts"
import { LinkNode } from "./LinkNode.ts"

const place = (host: string): Address => ({ host, port: 1 })
const answer = (prefix: number, text = 0): Uint8Array =>
  Uint8Array.of(0x80, 0, 0, 0, 0, prefix >>> 24, prefix >>> 16, prefix >>> 8, prefix, text)
const data = (text = 0): Uint8Array => Uint8Array.of(0, 0, 0, 0, 0, 0, 0, 0, 0, text)

/** A socket that hands over what a test put in, and notes what was sent. */
class ScriptedSocket implements OpenSocket {
  readonly local = place("here")
  readonly counters = { sent: 0, received: 0, sendErrors: 0, receiveErrors: 0, receiveDrops: 0, rebinds: 0 }
  readonly errorCodes = new Map<string, number>()
  readonly buffers = { receive: 0, send: 0 }
  readonly dontFragment = true
  onReadable: (() => void) | undefined
  readonly died: Effect.Effect<never, SocketError>
  waiting: Array<{ readonly bytes: Uint8Array; readonly from: Address }> = []
  sent: Array<{ readonly to: string; readonly count: number; readonly bytes: ReadonlyArray<number> }> = []
  constructor(died: Effect.Effect<never, SocketError> = Effect.never) {
    this.died = died
  }
  send(slab: Uint8Array, stride: number, lengths: Uint32Array, count: number, to: Address): void {
    const bytes = Array.from({ length: count }, (_, i) => slab[i * stride + lengths[i]! - 1]!)
    this.sent.push({ to: to.host, count, bytes })
  }
  readonly #received = new ReceivedDatagrams(512, 65_536)
  receive(most: number): ReceivedDatagrams {
    this.#received.clear()
    for (const { bytes, from } of this.waiting.splice(0, most)) this.#received.add(bytes, from)
    this.#received.more = this.waiting.length > 0
    return this.#received
  }
}

/** A machine that has `backlog` datagrams to send and claims answers with `mine` as last byte. */
class ScriptedSender implements SenderMachine {
  runPrefix: number
  readonly claimed: Array<number> = []
  readonly timeouts: Array<Micros> = []
  backlog = 0
  at: Micros = never
  readonly #mine: number
  constructor(runPrefix: number, mine = 0) {
    this.runPrefix = runPrefix
    this.#mine = mine
  }
  handleDatagram(_now: Micros, bytes: Uint8Array, start: number): boolean {
    const text = bytes[start + 9]!
    if (text === this.#mine) this.claimed.push(text)
    return text === this.#mine
  }
  handleTimeout(now: Micros): void {
    this.timeouts.push(now)
    this.at = never
  }
  pollTrain(_now: Micros, slab: Uint8Array, stride: number, lengths: Uint32Array, most: number): number {
    let count = 0
    for (; count < most && this.backlog > 0; count++) {
      slab[count * stride + 9] = this.backlog--
      lengths[count] = 10
    }
    return count
  }
  deadline(): Micros {
    return this.at
  }
}

const driven = (machine: ScriptedSender, destination: Address | undefined = place("peer")): DrivenSender => ({
  machine,
  destination,
  name: { source: "s", input: "i" },
  counters: {},
  collect() {},
  settle() {},
  close() {}
})

/** A receiver that answers each datagram to where it came from, at the end of the batch. */
class ScriptedReceiver implements ReceiverMachine {
  target = place("nowhere")
  batches = 0
  due: Array<{ readonly text: number; readonly to: Address }> = []
  #waiting: Array<{ readonly text: number; readonly to: Address }> = []
  handleBatch(_now: Micros, { bytes, starts, from: sources }: ReceivedDatagrams, from: number, to: number): void {
    for (let i = from; i < to; i++) this.#waiting.push({ text: bytes[starts[i]! + 9]!, to: sources[i]! })
  }
  endBatch(): void {
    this.batches++
    this.due.push(...this.#waiting.splice(0))
  }
  handleTimeout(): void {}
  pollTransmit(_now: Micros, out: Uint8Array, offset: number): number {
    const next = this.due.shift()
    if (!next) return 0
    this.target = next.to
    out[offset + 9] = next.text
    return 10
  }
  deadline(): Micros {
    return never
  }
}

const receiverOf = (machine: ScriptedReceiver): DrivenReceiver => ({
  machine,
  counters: {},
  collect() {},
  settle() {},
  close() {}
})

const driverWith = (...senders: ReadonlyArray<DrivenSender>) => {
  const driver = new Driver()
  const socket = new ScriptedSocket()
  driver.socket = socket
  for (const sender of senders) driver.addSender(sender)
  return { driver, socket }
}

describe("Driver", () => {
  it("gives answers to the output whose run prefix they carry, trying equals in turn, and counts the rest", () => {
    const [a, b, c] = [new ScriptedSender(0xfffffffe, 1), new ScriptedSender(0xfffffffe, 2), new ScriptedSender(7, 1)]
    const { driver, socket } = driverWith(driven(a), driven(b), driven(c))
    const from = place("peer")
    const arrivals = [
      answer(0xfffffffe, 2),
      answer(7, 1),
      answer(0xfffffffe, 3),
      answer(8, 1),
      data(),
      Uint8Array.of(0x80)
    ]
    socket.waiting = arrivals.map((bytes) => ({ bytes, from }))
    driver.turn(0)
    assert.deepStrictEqual([a.claimed, b.claimed, c.claimed], [[], [2], [1]])
    assert.deepInclude(driver.counters, { answersUnclaimed: 2, dataUnclaimed: 1, runts: 1, datagramsReceived: 6 })
  })

  it("forgets an output that was removed, and only that one", () => {
    const [a, b] = [new ScriptedSender(5, 1), new ScriptedSender(5, 1)]
    const [first, second] = [driven(a), driven(b)]
    const { driver, socket } = driverWith(first, second)
    driver.removeSender(first)
    socket.waiting = [{ bytes: answer(5, 1), from: place("peer") }]
    driver.turn(0)
    assert.deepStrictEqual([a.claimed.length, b.claimed.length], [0, 1])
  })

  it("finds an output under the run prefix of its fresh run", () => {
    const machine = new ScriptedSender(5, 1)
    const { driver, socket } = driverWith(driven(machine))
    machine.pollTrain = (_now, _slab, _stride, lengths) => {
      if (machine.runPrefix === 6) return 0
      machine.runPrefix = 6
      lengths[0] = 10
      return 1
    }
    driver.turn(0)
    socket.waiting = [{ bytes: answer(6, 1), from: place("peer") }]
    driver.turn(1)
    assert.deepStrictEqual([machine.claimed.length, driver.counters.answersUnclaimed], [1, 0])
    socket.waiting = [{ bytes: answer(5, 1), from: place("peer") }]
    driver.turn(2)
    assert.deepStrictEqual([machine.claimed.length, driver.counters.answersUnclaimed], [1, 1])
  })

  it("gives LOST to the output it is about, and finds that under the prefix of the run that LOST began", () => {
    const [machine, other] = [new ScriptedSender(5, 1), new ScriptedSender(5, 2)]
    const { driver, socket } = driverWith(driven(other), driven(machine))
    const { handleDatagram } = machine
    machine.handleDatagram = (now, bytes, start) => {
      if (bytes[start] === 0xc0 && handleDatagram.call(machine, now, bytes, start)) machine.runPrefix = 6
      return handleDatagram.call(machine, now, bytes, start)
    }
    const from = place("peer")
    const lost = answer(5, 1)
    lost[0] = 0xc0
    socket.waiting = [lost, answer(6, 1), answer(5, 2)].map((bytes) => ({ bytes, from }))
    driver.turn(0)
    assert.deepStrictEqual([machine.claimed.length, other.claimed.length], [3, 1]) // LOST counts twice
    assert.strictEqual(driver.counters.answersUnclaimed, 0)
  })

  it("sends answers that go to two places in turn in as many calls as there are turns, and none twice", () => {
    const { driver, socket } = driverWith()
    const receiver = new ScriptedReceiver()
    driver.receiver = receiverOf(receiver)
    socket.waiting = Array.from({ length: 130 }, (_, i) => ({
      bytes: data(i),
      from: i < 6 && i % 2 === 1 ? place("challenged") : place("validated")
    }))
    driver.turn(0)
    assert.deepStrictEqual(
      socket.sent.flatMap(({ bytes }) => bytes),
      Array.from({ length: 130 }, (_, i) => i)
    )
    assert.deepStrictEqual(
      socket.sent.map(({ count }) => count),
      [1, 1, 1, 1, 1, 1, 64, 60]
    )
  })

  it("sends answers in order, those for one place together, once per batch", () => {
    const { driver, socket } = driverWith()
    const receiver = new ScriptedReceiver()
    driver.receiver = receiverOf(receiver)
    const hosts = ["x", "x", "y", "x", "y", "y"]
    socket.waiting = hosts.map((host, index) => ({ bytes: data(index + 1), from: place(host) }))
    driver.turn(0)
    assert.strictEqual(receiver.batches, 1)
    assert.deepStrictEqual(socket.sent, [
      { to: "x", count: 2, bytes: [1, 2] },
      { to: "y", count: 1, bytes: [3] },
      { to: "x", count: 1, bytes: [4] },
      { to: "y", count: 2, bytes: [5, 6] }
    ])
  })

  it("reads no more than its bound in one turn, and says that more waits", () => {
    const { driver, socket } = driverWith()
    const receiver = new ScriptedReceiver()
    driver.receiver = receiverOf(receiver)
    socket.waiting = Array.from({ length: 1_500 }, () => ({ bytes: data(), from: place("x") }))
    assert.isTrue(driver.turn(0))
    assert.strictEqual(driver.counters.datagramsReceived, 1_024)
    while (driver.turn(0));
    assert.strictEqual(driver.counters.datagramsReceived, 1_500)
    assert.strictEqual(
      socket.sent.reduce((sum, { count }) => sum + count, 0),
      1_500
    )
  })

  it("shares a turn fairly among outputs that could each fill it", () => {
    const machines = [0, 1, 2].map((prefix) => new ScriptedSender(prefix))
    for (const machine of machines) machine.backlog = 100_000
    const { driver, socket } = driverWith(...machines.map((machine) => driven(machine)))
    for (let turn = 0; turn < 30; turn++) assert.isTrue(driver.turn(0))
    const sent = machines.map(({ backlog }) => 100_000 - backlog)
    assert.isAtMost(Math.max(...sent) - Math.min(...sent), 64)
    assert.isTrue(socket.sent.every(({ count }) => count <= 64))
    assert.isAtMost(driver.counters.datagramsSent / 30, 1_024 + 64)
  })

  it("lets an output wait whose peer has no address yet", () => {
    const machine = new ScriptedSender(1)
    machine.backlog = 3
    machine.at = 5
    const sender = { ...driven(machine), destination: undefined as Address | undefined }
    const { driver, socket } = driverWith(sender)
    assert.isFalse(driver.turn(10))
    assert.strictEqual(driver.deadline(10), never)
    assert.deepStrictEqual([machine.timeouts.length, socket.sent.length], [0, 0])
    sender.destination = place("late")
    driver.turn(20)
    assert.deepStrictEqual([machine.timeouts, socket.sent.map(({ count }) => count)], [[20], [3]])
  })

  it("does not spin for a machine whose deadline never passes", () => {
    const machine = new ScriptedSender(1)
    machine.at = 5
    machine.handleTimeout = () => {}
    const { driver } = driverWith(driven(machine))
    driver.turn(10)
    assert.strictEqual(driver.deadline(10), 1_010)
  })

  it("asks for as many datagrams as its slab has slots, each for the largest one", () => {
    const machine = new ScriptedSender(1)
    let asked = 0
    machine.pollTrain = (_now, slab, stride, lengths, most) => {
      if (asked++ > 0) return 0
      assert.strictEqual(stride, largestDatagram)
      assert.isAtLeast(slab.length, most * stride)
      assert.isAtLeast(lengths.length, most)
      return 0
    }
    driverWith(driven(machine)).driver.turn(0)
    assert.strictEqual(asked, 1)
  })
})

const identity = keyPair(nodeSuite, seededEntropy(1))
const machinery = Layer.mergeAll(Cryptography.layerNode, Entropy.layerSeeded(1), Policies.layerDefault)
const settle = Effect.andThen(Effect.yieldNow, Effect.yieldNow)

describe("LinkNode", () => {
  it("takes a turn at every deadline, at its time, however deadlines move", () => {
    const exit = new Sim().run(
      Effect.gen(function* () {
        const { seam } = yield* LinkNode
        const machine = new ScriptedSender(1)
        seam.driver.addSender(driven(machine))
        let state = 7
        const asked: Array<Micros> = []
        for (let i = 0; i < 300; i++) {
          state = (state * 48_271) % 2_147_483_647
          machine.at = seam.now() + 1 + (state % 20_000)
          seam.wake()
          yield* settle
          if (i % 3 === 0) {
            // Moved to earlier before it came.
            machine.at = seam.now() + 1 + (state % 100)
            seam.wake()
          }
          asked.push(machine.at)
          yield* Effect.sleep(25)
        }
        assert.deepStrictEqual(machine.timeouts, asked)
      }).pipe(Effect.provide(nodeOn("alice")))
    )
    assert.isTrue(Exit.isSuccess(exit), String(exit))
  })

  it("rests between busy turns, as long as its socket has a timer that ends the rest", () => {
    const asked: Array<Micros> = []
    const socket = Object.assign(new ScriptedSocket(), { wakeAfter: (delay: Micros) => void asked.push(delay) })
    const node = LinkNode.layer({ identity, listen: { host: "0.0.0.0", port: 0 } }).pipe(
      Layer.provide(Layer.succeed(DatagramSocket, { open: () => Effect.succeed(socket) })),
      Layer.provide(machinery)
    )
    const exit = new Sim().run(
      Effect.gen(function* () {
        const { seam } = yield* LinkNode
        const { driver, wake } = seam
        const received = () => driver.counters.datagramsReceived
        const arrive = (count: number) => {
          for (let i = 0; i < count; i++) socket.waiting.push({ bytes: data(i), from: place("peer") })
          socket.onReadable!()
          return settle
        }
        yield* settle
        yield* arrive(63)
        yield* arrive(1)
        assert.deepStrictEqual([received(), asked], [64, []], "63 and 1 make no busy turn")
        yield* arrive(64)
        assert.deepStrictEqual([received(), asked], [128, [500]])
        yield* arrive(2)
        wake()
        yield* settle
        assert.strictEqual(received(), 128, "nobody ends the rest")
        yield* Effect.sleep(0.5)
        yield* arrive(0) // the timer
        assert.strictEqual(received(), 130)
        const machine = new ScriptedSender(1)
        driver.addSender(driven(machine))
        machine.at = seam.now() + 200
        yield* arrive(64)
        assert.deepStrictEqual([received(), asked], [194, [500, 200]], "a deadline ends it earlier")
        yield* Effect.sleep(0.2)
        yield* arrive(0)
        assert.strictEqual(machine.timeouts.length, 1)
        yield* arrive(64)
        driver.socket = undefined
        const { turns } = driver.counters
        wake()
        yield* settle
        assert.strictEqual(
          driver.counters.turns,
          turns + 1,
          "the rest is over with the socket whose timer would end it"
        )
      }).pipe(Effect.provide(node))
    )
    assert.isTrue(Exit.isSuccess(exit), String(exit))
  })

  it("opens its socket again when it died, at the same address, and reports both", () => {
    const sim = new Sim()
    const exit = sim.run(
      Effect.gen(function* () {
        const deaths = [yield* Deferred.make<never, SocketError>(), yield* Deferred.make<never, SocketError>()]
        const opened: Array<{ readonly at: Address; readonly time: Micros; readonly socket: ScriptedSocket }> = []
        let refusals = 0
        const error = new SocketError({ operation: "receive", address: place("here"), code: "EBADF", remedy: "wait" })
        const sockets = DatagramSocket.of({
          open: (at) =>
            Effect.suspend(() => {
              if (opened.length === 1 && refusals++ < 2) return Effect.fail(error)
              const socket = new ScriptedSocket(Deferred.await(deaths[opened.length]!))
              opened.push({ at, time: sim.now, socket })
              return Effect.succeed(socket)
            })
        })
        const node = LinkNode.layer({ identity, listen: { host: "0.0.0.0", port: 0 } }).pipe(
          Layer.provide(Layer.succeed(DatagramSocket, sockets)),
          Layer.provide(machinery)
        )
        yield* Effect.gen(function* () {
          const { counters, seam } = yield* LinkNode
          yield* Effect.sleep(1)
          yield* Deferred.fail(deaths[0]!, error)
          yield* Effect.sleep(1_000)
          assert.deepStrictEqual(
            opened.map(({ at }) => at),
            [{ host: "0.0.0.0", port: 0 }, place("here")]
          )
          assert.strictEqual(opened[1]!.time - opened[0]!.time, 301_000)
          const machine = new ScriptedSender(9, 4)
          seam.driver.addSender(driven(machine))
          opened[1]!.socket.waiting.push({ bytes: answer(9, 4), from: place("peer") })
          opened[1]!.socket.onReadable!()
          yield* settle
          assert.deepStrictEqual(machine.claimed, [4])
          const { driver, events } = yield* counters
          assert.strictEqual(driver.socketFailures, 1)
          assert.deepStrictEqual(events, { SocketFailed: 1, SocketReopened: 1 })
        }).pipe(Effect.provide(node))
      })
    )
    assert.isTrue(Exit.isSuccess(exit), String(exit))
  })

  it("fails to open, typed, when the first socket cannot be bound", () => {
    const layer = LinkNode.layer({ identity, listen: { host: "bob", port: 1 } }).pipe(
      Layer.provide(VirtualNetwork.host("alice")),
      Layer.provide(VirtualNetwork.layer({ seed: 1 })),
      Layer.provide(machinery)
    )
    const exit = new Sim().run(Effect.flip(Effect.provide(Effect.void, layer)))
    assert.isTrue(
      Exit.isSuccess(exit) && exit.value instanceof SocketError && exit.value.code === "EADDRNOTAVAIL",
      String(exit)
    )
  })
})

const nodeOn = (host: string) =>
  LinkNode.layer({ identity, listen: { host, port: 0 } }).pipe(
    Layer.provide(VirtualNetwork.host(host)),
    Layer.provide(VirtualNetwork.layer({ seed: 1 })),
    Layer.provide(machinery)
  )
