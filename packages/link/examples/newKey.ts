import { formatKeyFile, formatPublicKey, keyPair, nodeSuite, systemEntropy } from "@pure-link/keys"
import { writeFileSync } from "node:fs"

/** Makes a node's key file, which stays private, and gives the public key as text: what its peers are told. */
export const newKey = (file: string): string => {
  const identity = keyPair(nodeSuite, systemEntropy) // a KeyPair: what LinkNode.layer takes
  writeFileSync(file, formatKeyFile(identity), { mode: 0o600, flag: "wx" })
  return formatPublicKey(identity.publicKey)
}
