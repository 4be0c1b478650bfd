import { memoPeers, memoSideRuns } from "@pure-link/ports"

/** How much a memo has room for. */
export interface MemoCapacity {
  /** Peers: 1 to 1,048,576, by default 65,536. */
  readonly peers?: number
  /** Runs beside the first of each peer, for all peers together: by default, and at most, 1,024. */
  readonly sideRuns?: number
}

const mostPeers = 1_048_576

/** Fills in what is not given; throws a RangeError for what no memo may have. */
export const memoCapacity = ({ peers = memoPeers, sideRuns = memoSideRuns }: MemoCapacity): Required<MemoCapacity> => {
  const isIn = (count: number, least: number, most: number) =>
    Number.isInteger(count) && count >= least && count <= most
  if (!isIn(peers, 1, mostPeers)) throw new RangeError(`a memo has room for 1 to ${mostPeers} peers`)
  if (!isIn(sideRuns, 0, memoSideRuns)) throw new RangeError(`a memo has room for 0 to ${memoSideRuns} further runs`)
  return { peers, sideRuns }
}
