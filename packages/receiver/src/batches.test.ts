/**
 * Packets that are read together mean what they mean apart (spec §10.1): two receivers of the same world get the same
 * datagrams, one in batches and one by one.
 */
import { assert, describe, it } from "@effect/vitest"
import { keyPair } from "@pure-link/keys"
import {
  begun,
  content,
  frameOf,
  lifeA,
  lifeB,
  ping,
  ScriptedPeer,
  storedContents,
  World
} from "../test/scriptedPeer.ts"

/** Numbers of a seed, both bounds included (mulberry32). */
const between = (seed: number) => {
  let state = seed
  return (low: number, high: number): number => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return low + (((mixed ^ (mixed >>> 14)) >>> 0) % (high - low + 1))
  }
}

interface Datagram {
  readonly bytes: Uint8Array
  readonly peer: ScriptedPeer
}

/** Two peers whose runs are live; the same in every world of a seed. */
const world = () => {
  const made = new World({}, 7)
  const peers = [0, 1].map((i) => new ScriptedPeer(made, { source: `till ${i}` }).allowed())
  for (const peer of peers) peer.start()
  return { made, peers }
}

/** Packets as a bad network hands them over: reordered, doubled, damaged, of two peers, with a violation now and then. */
const traffic = (seed: number, peers: ReadonlyArray<ScriptedPeer>): ReadonlyArray<Datagram> => {
  const any = between(seed)
  const next = peers.map(() => 1)
  const datagrams: Array<Datagram> = []
  for (let i = 0; i < 60; i++) {
    const who = any(0, 9) < 8 ? 0 : 1
    const peer = peers[who]!
    const frames = any(0, 9) === 0 ? [ping] : [peer.records(next[who]!++, content(i, any(0, 300)))]
    const kind = any(0, 30)
    const bytes =
      kind === 0 ? peer.sealBody(Uint8Array.of(0x7f)) : peer.seal(kind === 1 ? [peer.stream, ...frames] : frames)
    const copies = any(0, 7) === 0 ? 2 : 1
    for (let copy = 0; copy < copies; copy++) datagrams.push({ bytes, peer })
    if (any(0, 7) === 0) {
      const damaged = bytes.slice()
      damaged[any(0, bytes.length - 1)]! ^= 1 << any(0, 7)
      datagrams.push({ bytes: damaged, peer })
    }
    if (any(0, 5) === 0) datagrams.splice(any(0, datagrams.length - 1), 0, datagrams.pop()!)
  }
  return datagrams
}

const columns = (datagrams: ReadonlyArray<Datagram>) => {
  const ends = new Uint32Array(datagrams.length)
  const starts = new Uint32Array(datagrams.length)
  let end = 5
  for (const [i, { bytes }] of datagrams.entries()) {
    starts[i] = end
    ends[i] = end += bytes.length
  }
  const bytes = new Uint8Array(end)
  for (const [i, datagram] of datagrams.entries()) bytes.set(datagram.bytes, starts[i]!)
  return { bytes, starts, ends, from: datagrams.map(({ peer }) => peer.from) }
}

/** Two live runs of one peer whose packets look alike. */
const runsOfEqualPrefix = () => {
  const made = new World({}, 3)
  const identity = keyPair(made.suite, made.entropy)
  const runs = [
    new ScriptedPeer(made, { source: "a", identity, run: 0x1234567800000001n }).allowed(),
    new ScriptedPeer(made, { source: "b", identity, run: 0x1234567800000002n })
  ] as const
  for (const run of runs) run.start()
  return { made, runs }
}

/** What can be seen of a receiver: counters, events, what is stored, and what it sends. */
const seen = (made: World) => {
  made.store()
  return { sent: made.transmit(), counters: made.receiver.counters, events: made.events(), stored: made.inbox }
}

describe("a batch of packets (spec §10.1)", () => {
  it("has the effect of its packets one by one, whatever their order, copies and damage", () => {
    for (let seed = 1; seed <= 60; seed++) {
      const [apart, together] = [world(), world()]
      const datagrams = traffic(seed, apart.peers)
      traffic(seed, together.peers) // so that both worlds have drawn the same random numbers
      const any = between(seed)
      for (let from = 0; from < datagrams.length;) {
        const to = Math.min(datagrams.length, from + any(1, 20))
        const batch = datagrams.slice(from, to)
        let opened = 0
        for (const { bytes, peer } of batch) {
          const copy = bytes.slice()
          if (apart.made.receiver.handleDatagram(apart.made.now, copy, 0, copy.length, peer.from)) opened++
        }
        const also = together.made.receiver.handleBatch(together.made.now, columns(batch), 0, batch.length)
        assert.strictEqual(also, opened, `seed ${seed}, datagrams ${from} to ${to}`)
        assert.deepStrictEqual(seen(together.made), seen(apart.made), `seed ${seed}, datagrams ${from} to ${to}`)
        from = to
      }
      assert.isAbove(together.made.receiver.counters.packetsOpened, 30)
    }
  })

  it("opens packets in a row in one call, and tries alone what does not open", () => {
    const { made, peers } = world()
    const [peer] = peers
    let calls = 0
    let tried = 0
    const key = peer!.epochs.sealingKey(1)
    const proto = Object.getPrototypeOf(Object.getPrototypeOf(key)) as { openAll: typeof key.openAll }
    const { openAll } = proto
    proto.openAll = function (this: typeof key, bytes, packets, from, to, headerLength) {
      calls++
      tried += to - from
      openAll.call(this, bytes, packets, from, to, headerLength)
    }
    try {
      const packets = Array.from({ length: 20 }, (_, i) => peer!.seal([peer!.records(1 + i, content(i, 40))]))
      packets[9]![30]! ^= 1
      const batch = columns(packets.map((bytes) => ({ bytes, peer: peer! })))
      assert.strictEqual(made.receiver.handleBatch(made.now, batch, 0, 20), 19)
      assert.deepStrictEqual([calls, tried], [1, 19]) // the first is alone: nothing was followed before
      assert.strictEqual(made.receiver.counters.forgedPackets, 1)
    } finally {
      proto.openAll = openAll
    }
  })

  it("does not follow a run that ended", () => {
    const { world: made, peer } = begun()
    const packets = [1, 2, 3].map((number) => peer.seal([peer.records(number, content(number, 10))]))
    const batch = columns(packets.map((bytes) => ({ bytes, peer })))
    made.receiver.handleBatch(made.now, batch, 0, 2)
    made.receiver.revoke(peer.identity.publicKey)
    assert.strictEqual(made.receiver.handleBatch(made.now, batch, 2, 3), 0)
  })

  it("leaves packets to the run that opened them when one of a run with equal prefix is among them", () => {
    const { made, runs } = runsOfEqualPrefix()
    const [a, b] = runs
    const packets = [
      a.seal([a.records(1, content(1, 20))]),
      a.seal([a.records(2, content(2, 20))]),
      b.seal([b.records(1, content(101, 20), content(102, 20))], { number: 3 }),
      a.seal([a.records(3, content(3, 20))]),
      a.seal([a.records(4, content(4, 20))])
    ]
    const batch = columns(packets.map((bytes) => ({ bytes, peer: a })))
    assert.strictEqual(made.receiver.handleBatch(made.now, batch, 0, packets.length), 5)
    made.store()
    const ofSource = (name: string) => made.inbox.records.filter((record) => record.name === name)
    assert.deepStrictEqual(
      ofSource("a>orders").map(({ bytes }) => bytes),
      [1, 2, 3, 4].map((number) => content(number, 20))
    )
    assert.deepStrictEqual(
      ofSource("b>orders").map(({ bytes }) => bytes),
      [101, 102].map((number) => content(number, 20))
    )
  })

  it("asks no run for an epoch of another whose bits are the same", () => {
    const { made, runs } = runsOfEqualPrefix()
    const [a, b] = runs
    while (a.epochs.epoch < 16) {
      made.now += 20_000_000
      a.send([a.offer()])
      const { epoch, echo, publicKey } = frameOf(a.answers().at(-1)!, "Accept")!
      assert.isTrue(a.epochs.handleAccept(made.now, epoch, echo, publicKey))
      a.send([ping])
      a.answers()
    }
    const packets = [1, 2, 3].map((number) => a.seal([a.records(number, content(number, 20))]))
    packets.splice(2, 0, b.seal([b.records(1, content(101, 20))], { number: 60 }))
    const batch = columns(packets.map((bytes) => ({ bytes, peer: a })))
    assert.strictEqual(made.receiver.handleBatch(made.now, batch, 0, packets.length), 4)
    made.store()
    assert.strictEqual(made.inbox.records.length, 4)
  })

  it("finds the fork in a record that goes on where another run's list ended (spec §8.4)", () => {
    const made = new World()
    const lives = (first: number) => [
      { life: lifeA, first: 1 },
      { life: lifeB, first }
    ]
    const honest = new ScriptedPeer(made, { lives: lives(5) }).allowed()
    const forked = new ScriptedPeer(made, { lives: lives(3) }).allowed()
    honest.start()
    honest.send([honest.records(1, content(1, 9), content(2, 9))])
    made.store()
    forked.start()
    honest.send([honest.records(3, content(3, 9), content(4, 9))])
    made.store()
    honest.send([honest.records(5, content(5, 9))])
    made.transmit()
    const packets = [[ping], [ping], [forked.records(6, content(6, 9))]].map((frames) => forked.seal(frames))
    const batch = columns(packets.map((bytes) => ({ bytes, peer: forked })))
    made.receiver.handleBatch(made.now, batch, 0, packets.length)
    made.store()
    assert.strictEqual(storedContents(made).length, 5)
  })
})
