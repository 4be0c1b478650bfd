import { type KeyPair, nodeSuite, type Pair } from "@pure-link/keys"

/**
 * The key pairs of every benchmark: fixed and known to everybody, so that the ends can be started by hand on any two
 * machines without exchanging anything. Never for real data.
 */

const identity = (fill: number): KeyPair => {
  const privateKey = new Uint8Array(32).fill(fill)
  return { privateKey, publicKey: nodeSuite.agreement.publicKey(privateKey) }
}

export const senderIdentity = identity(0x5e)
export const receiverIdentity = identity(0x7e)

export const pair: Pair = { sender: senderIdentity.publicKey, receiver: receiverIdentity.publicKey }
