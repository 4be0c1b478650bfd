import type { Network, Passage } from "@pure-link/virtual-net"
import type { Digest } from "./digest.ts"
import type { FlowWatch } from "./flowWatch.ts"
import { senderHost } from "./path.ts"

/**
 * Watches every datagram on the network: tells each flow what befalls its packets, and adds all of it to the digest. A
 * packet's last bytes are its AEAD tag, which depends on every bit of it.
 */
export const watchNetwork = (network: Network, flows: ReadonlyArray<FlowWatch>, digest: Digest): void => {
  const byHost = new Map(flows.map((flow, i) => [senderHost(i), flow]))
  network.tap((passage) => {
    addToDigest(digest, passage)
    byHost.get(passage.from.host)?.handlePassage(passage)
  })
}

const addToDigest = (digest: Digest, { at, bytes, fate, from }: Passage): void => {
  digest.addWord(fate)
  digest.addWord(from.host)
  digest.add(at)
  digest.add(bytes.length)
  if (fate !== "sent" || bytes.length < 8) return
  const end = bytes.length
  digest.addWord32((bytes[end - 1]! << 24) | (bytes[end - 2]! << 16) | (bytes[end - 3]! << 8) | bytes[end - 4]!)
  digest.addWord32((bytes[end - 5]! << 24) | (bytes[end - 6]! << 16) | (bytes[end - 7]! << 8) | bytes[end - 8]!)
}
