/**
 * Packets that are read together mean what they mean apart (spec §10.1): two receivers of the same world get the same
 * datagrams, one in batches and one by one.
 */
import { assert, describe, it } from "@effect/vitest"
import { begun, content, ping, ScriptedPeer, World } from "../test/scriptedPeer.ts"

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
})
