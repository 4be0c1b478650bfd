import type { Id64 } from "@pure-link/wire"
import * as slots from "./slot.ts"
import { firstPeerPlace, type SlotStorage } from "./storage.ts"

/**
 * The index of a memo: which peer and which run stands where, and no secret. It is read from the slots once, when the
 * memo is opened.
 */

/** What is known of a slot without reading it. */
export interface IndexedRun {
  place: number
  /** In the order of keeping: that of the peer, or of the further run. */
  order: number
  run: Id64 | undefined
  isLive: boolean
}

/** A peer with its own slot, which has at most one run, and the slots of its further runs, oldest first. */
export interface IndexedPeer extends IndexedRun {
  readonly key: string
  readonly sides: Array<IndexedSide>
}

export interface IndexedSide extends IndexedRun {
  readonly peer: IndexedPeer
}

export const hasLiveRun = (peer: IndexedPeer): boolean => peer.isLive || peer.sides.some(({ isLive }) => isLive)

/** A public key as a key of a Map: one character per byte. */
export const keyOf = (publicKey: Uint8Array): string =>
  Buffer.from(publicKey.buffer, publicKey.byteOffset, publicKey.byteLength).toString("latin1")

/** What is found in slots, before it is known which belong together. */
interface Found extends IndexedRun {
  readonly key: string
}

const empty = new Uint8Array(slots.slotLength)

/** Reads all slots: the peers in the order of keeping, the places of what nobody can use, and the last order given. */
export const readIndex = (storage: SlotStorage, seal: slots.SlotSeal) => {
  const peers: Array<Found> = []
  const sides: Array<Found> = []
  const useless: Array<number> = []
  let lastOrder = 0
  storage.visit((place, slot) => {
    if (Buffer.compare(slot, empty) === 0) return
    const isPeer = place >= firstPeerPlace
    if (slots.kindOf(slot) !== (isPeer ? slots.SlotKind.peer : slots.SlotKind.run) || !seal.verifies(slot, place)) {
      return void useless.push(place)
    }
    const order = isPeer ? slots.peerOrderOf(slot) : slots.runOrderOf(slot)
    lastOrder = Math.max(lastOrder, order, slots.runOrderOf(slot))
    const run = slots.hasRun(slot) ? slots.runOf(slot) : undefined
    const found = { key: keyOf(slots.peerOf(slot)), place, order, run, isLive: slots.isLive(slot) }
    ;(isPeer ? peers : sides).push(found)
  })
  const index = new Map<string, IndexedPeer>()
  for (const peer of peers.sort(byOrder)) {
    if (index.has(peer.key)) useless.push(peer.place) // it was being moved: both are the same
    else index.set(peer.key, { ...peer, sides: [] })
  }
  for (const { key, ...side } of sides.sort(byOrder)) {
    const peer = index.get(key)
    const isKnown = peer === undefined || peer.run === side.run || peer.sides.some(({ run }) => run === side.run)
    if (isKnown) useless.push(side.place)
    else peer.sides.push({ ...side, peer })
  }
  return { index, useless, lastOrder }
}

const byOrder = (a: Found, b: Found): number => a.order - b.order
