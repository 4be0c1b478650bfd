import { type MemoCounters, memoSideRuns } from "@pure-link/ports"
import type { Id64, MemoPeer, MemoRun, ReceiverMemo } from "@pure-link/wire"
import { FreePlaces } from "./freePlaces.ts"
import * as slots from "./slot.ts"
import { hasLiveRun, type IndexedPeer, type IndexedSide, keyOf, readIndex } from "./slotIndex.ts"
import { firstPeerPlace, type SlotStorage } from "./storage.ts"

/**
 * The rules of a memo (spec §12.1) over slots that lie somewhere: who gets which slot, who gives way, and what is
 * forgotten with what. In memory it keeps an index only; secrets are read when they are recalled, and erased from its
 * buffers at once.
 */

export interface TableOptions {
  /** Peers at most. */
  readonly peers: number
  /** Whose memo it is; slots of another are not read. */
  readonly owner: Uint8Array
  /** Fewer side slots than usual, for tests. */
  readonly sideRuns?: number | undefined
}

export class SlotTable implements ReceiverMemo {
  /** Peers that were forgotten when the memo was opened, because it has room for fewer now. */
  readonly forgotten: number
  readonly #storage: SlotStorage
  readonly #seal: slots.SlotSeal
  /** In the order of keeping. */
  readonly #peers: Map<string, IndexedPeer>
  readonly #sides = new Set<IndexedSide>()
  readonly #freePeers: FreePlaces
  readonly #freeSides: FreePlaces
  readonly #slot = new Uint8Array(slots.slotLength)
  readonly #other = new Uint8Array(slots.slotLength)
  #lastOrder: number
  #evicted = 0
  #writes = 0
  #failures = 0

  constructor(storage: SlotStorage, { owner, peers, sideRuns = memoSideRuns }: TableOptions) {
    this.#storage = storage
    this.#seal = new slots.SlotSeal(owner)
    const { index, lastOrder, useless } = readIndex(storage, this.#seal)
    this.#peers = index
    this.#lastOrder = lastOrder
    for (const place of useless) this.#clear(place)
    this.forgotten = this.#shrink(peers)
    for (const peer of index.values()) for (const side of peer.sides) this.#sides.add(side)
    this.#freeSides = new FreePlaces(1, sideRuns, Array.from(this.#sides, placeOf))
    this.#freePeers = new FreePlaces(firstPeerPlace, peers, Array.from(index.values(), placeOf))
    this.#moveBelow(firstPeerPlace + peers)
  }

  /** As they stand now. */
  get counters(): MemoCounters {
    let runs = this.#sides.size
    for (const peer of this.#peers.values()) if (peer.run !== undefined) runs++
    return { peers: this.#peers.size, runs, evicted: this.#evicted, writes: this.#writes, failures: this.#failures }
  }

  recall(publicKey: Uint8Array): MemoPeer | undefined {
    const peer = this.#peers.get(keyOf(publicKey))
    if (peer === undefined) return undefined
    if (!this.#read(peer, this.#slot)) {
      this.#forget(peer)
      return undefined
    }
    const staticSecret = slots.staticSecretOf(this.#slot)
    const runs: Array<MemoRun> = peer.run === undefined ? [] : [slots.readRun(this.#slot)]
    for (const side of peer.sides.slice()) {
      if (this.#readSide(side, this.#slot)) runs.push(slots.readRun(this.#slot))
      else this.#dropSide(side)
    }
    this.#slot.fill(0)
    return { staticSecret, runs }
  }

  keepPeer(publicKey: Uint8Array, staticSecret: Uint8Array): boolean {
    const key = keyOf(publicKey)
    const peer = this.#peers.get(key) ?? this.#newPeer(key)
    if (peer === undefined) return false
    const hadRun = peer.run !== undefined && this.#read(peer, this.#other)
    slots.writePeer(this.#slot, publicKey, staticSecret, ++this.#lastOrder)
    if (hadRun) slots.copyRun(this.#other, this.#slot)
    else forgetIndexedRun(peer)
    this.#other.fill(0)
    if (!this.#write(peer.place)) {
      this.#forget(peer)
      return false
    }
    peer.order = this.#lastOrder
    this.#peers.delete(key) // comes last in the order of keeping
    this.#peers.set(key, peer)
    return true
  }

  keepRun(publicKey: Uint8Array, run: MemoRun): boolean {
    const peer = this.#peers.get(keyOf(publicKey))
    if (peer === undefined) return false
    const side = peer.sides.find((other) => other.run === run.run) ?? this.#newSide(peer, run)
    if (side !== undefined) return this.#writeSide(side, publicKey, run)
    const mayHaveFirst = peer.run === undefined || peer.run === run.run || (run.isLive && !peer.isLive)
    return mayHaveFirst && this.#writeFirst(peer, run)
  }

  forgetRun(publicKey: Uint8Array, run: Id64): void {
    const peer = this.#peers.get(keyOf(publicKey))
    if (peer === undefined) return
    const side = peer.sides.find((other) => other.run === run)
    if (side !== undefined) this.#dropSide(side)
    else if (peer.run === run) this.#forgetFirst(peer)
  }

  forgetPeer(publicKey: Uint8Array): void {
    const peer = this.#peers.get(keyOf(publicKey))
    if (peer !== undefined) this.#forget(peer)
  }

  #newPeer(key: string): IndexedPeer | undefined {
    const place = this.#freePeers.take() ?? this.#evictPeer()
    return place === undefined ? undefined : { key, place, order: 0, run: undefined, isLive: false, sides: [] }
  }

  /** A slot for a further run; undefined when the run needs none or there is none for it. */
  #newSide(peer: IndexedPeer, run: MemoRun): IndexedSide | undefined {
    if (peer.run === undefined || peer.run === run.run) return undefined
    const place = this.#freeSides.take() ?? this.#evictSide()
    if (place === undefined) return undefined
    const side = { peer, place, order: ++this.#lastOrder, run: run.run, isLive: run.isLive }
    peer.sides.push(side)
    this.#sides.add(side)
    return side
  }

  /** Writes a run into its peer's own slot, over what stands there. */
  #writeFirst(peer: IndexedPeer, run: MemoRun): boolean {
    const isKnown = peer.run === run.run
    if (this.#read(peer, this.#slot)) {
      slots.writeRun(this.#slot, run, isKnown ? slots.runOrderOf(this.#slot) : ++this.#lastOrder)
      if (this.#write(peer.place)) {
        if (!isKnown && peer.run !== undefined) this.#evicted++
        peer.run = run.run
        peer.isLive = run.isLive
        return true
      }
    }
    this.#forget(peer)
    return false
  }

  #writeSide(side: IndexedSide, publicKey: Uint8Array, run: MemoRun): boolean {
    slots.writeSide(this.#slot, publicKey)
    slots.writeRun(this.#slot, run, side.order)
    side.isLive = run.isLive
    if (this.#write(side.place)) return true
    this.#dropSide(side)
    return false
  }

  /** A further run of the peer moves up, if there is one: first its copy is written, then it is cleared. */
  #forgetFirst(peer: IndexedPeer): void {
    if (!this.#read(peer, this.#slot)) return this.#forget(peer)
    const heir = peer.sides.find(({ isLive }) => isLive) ?? peer.sides[0]
    const moves = heir !== undefined && this.#readSide(heir, this.#other)
    if (moves) slots.copyRun(this.#other, this.#slot)
    else slots.clearRun(this.#slot)
    this.#other.fill(0)
    if (!this.#write(peer.place)) return this.#forget(peer)
    forgetIndexedRun(peer)
    if (moves) {
      peer.run = heir.run
      peer.isLive = heir.isLive
    }
    if (heir) this.#dropSide(heir)
  }

  #dropSide(side: IndexedSide): void {
    side.peer.sides.splice(side.peer.sides.indexOf(side), 1)
    this.#sides.delete(side)
    if (this.#clear(side.place)) this.#freeSides.give(side.place)
    else this.#freeSides.spoil(side.place)
  }

  #forget(peer: IndexedPeer): void {
    for (const side of peer.sides.slice()) this.#dropSide(side)
    this.#peers.delete(peer.key)
    if (this.#clear(peer.place)) this.#freePeers.give(peer.place)
    else this.#freePeers.spoil(peer.place)
  }

  /** Makes room for a peer: the one kept longest ago gives way that has no live run. */
  #evictPeer(): number | undefined {
    for (const peer of this.#peers.values()) {
      if (hasLiveRun(peer)) continue
      this.#forget(peer)
      this.#evicted++
      return this.#freePeers.take()
    }
    return undefined
  }

  /** Makes room for a further run: the oldest provisional one of all peers gives way. */
  #evictSide(): number | undefined {
    let oldest: IndexedSide | undefined
    for (const side of this.#sides) if (!side.isLive && side.order < (oldest?.order ?? Infinity)) oldest = side
    if (oldest === undefined) return undefined
    this.#dropSide(oldest)
    this.#evicted++
    return this.#freeSides.take()
  }

  /** Forgets peers for which there is no room any more: those kept longest ago, without live runs first. */
  #shrink(most: number): number {
    const excess = this.#peers.size - most
    if (excess <= 0) return 0
    const peers = [...this.#peers.values()]
    const inTurn = [...peers.filter((peer) => !hasLiveRun(peer)), ...peers.filter(hasLiveRun)]
    for (const { key, place, sides } of inTurn.slice(0, excess)) {
      for (const side of sides) this.#clear(side.place)
      this.#clear(place)
      this.#peers.delete(key)
    }
    return excess
  }

  /** Moves peers that stand beyond the last place into free ones: first the copy is written. */
  #moveBelow(end: number): void {
    for (const peer of this.#peers.values()) {
      if (peer.place < end) continue
      const former = peer.place
      const canRead = this.#read(peer, this.#slot)
      peer.place = this.#freePeers.take()!
      if (!canRead || !this.#write(peer.place)) this.#forget(peer)
      this.#clear(former)
    }
  }

  #read(peer: IndexedPeer, slot: Uint8Array): boolean {
    return this.#readSlot(peer.place, peer.key, slot)
  }

  #readSide({ peer, place }: IndexedSide, slot: Uint8Array): boolean {
    return this.#readSlot(place, peer.key, slot)
  }

  #readSlot(place: number, key: string, slot: Uint8Array): boolean {
    if (this.#storage.read(place, slot) && this.#seal.verifies(slot, place) && keyOf(slots.peerOf(slot)) === key) {
      return true
    }
    slot.fill(0)
    this.#failures++
    return false
  }

  /** Seals and writes what was put together, and erases it here. What was not wholly written is cleared by callers. */
  #write(place: number): boolean {
    this.#seal.write(this.#slot, place)
    const written = this.#storage.write(place, this.#slot)
    this.#slot.fill(0)
    if (written) this.#writes++
    else this.#failures++
    return written
  }

  /** Overwrites a slot with zeros. */
  #clear(place: number): boolean {
    this.#slot.fill(0)
    const cleared = this.#storage.write(place, this.#slot)
    if (cleared) this.#writes++
    else this.#failures++
    return cleared
  }
}

const placeOf = ({ place }: { readonly place: number }): number => place

const forgetIndexedRun = (peer: IndexedPeer): void => {
  peer.run = undefined
  peer.isLive = false
}
