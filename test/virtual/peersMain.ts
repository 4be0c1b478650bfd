/** `node test/virtual/peersMain.ts [PEERS] [SEED]`: the memo loss of `peers.test.ts`, with as many peers as one likes. */
import { describeMemoLoss, memoLoss } from "./memoLoss.ts"

const [peers = "10000", seed = "1"] = process.argv.slice(2)
const loss = memoLoss(Number(peers), Number(seed), () => performance.now())
console.log(describeMemoLoss(loss))
if (loss.stored < loss.peers || loss.lastMicros > 3_000_000) process.exitCode = 1
