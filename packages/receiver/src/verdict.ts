/** What became of a part (spec §10.3). Only `kept` lets its packet into ACK. */
export const Verdict = { kept: 0, noRoom: 1, otherLife: 2, contradiction: 3 } as const
export type Verdict = (typeof Verdict)[keyof typeof Verdict]
