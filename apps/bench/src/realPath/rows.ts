/**
 * What is measured: paths of 50 Mbit/s with a queue of one round trip, as the simulator has them, and one of them shared
 * with a flow of kernel TCP CUBIC.
 */

export const rowNames = ["clean", "jitter", "loss", "share"] as const
export type RowName = (typeof rowNames)[number]

export interface PathSettings {
  readonly rateMbit: number
  readonly rttMillis: number
  /** Uniform ± so much, both ways. */
  readonly jitterMillis: number
  /** Random, both ways. */
  readonly loss: number
}

interface Plan {
  readonly jitterMillis: number
  readonly loss: number
  /** How far the real median may be from the simulator's, as a fraction; or where a share has to lie. */
  readonly bar: number | readonly [number, number]
  /** Left out at the start of a run. */
  readonly skipSeconds: number
  /** When a run ends, unless asked otherwise. */
  readonly endSeconds: number
}

export const plans: Readonly<Record<RowName, Plan>> = {
  clean: { jitterMillis: 0, loss: 0, bar: 0.03, skipSeconds: 2, endSeconds: 22 },
  jitter: { jitterMillis: 3, loss: 0, bar: 0.05, skipSeconds: 2, endSeconds: 22 },
  loss: { jitterMillis: 0, loss: 0.01, bar: 0.2, skipSeconds: 2, endSeconds: 22 },
  share: { jitterMillis: 1, loss: 0, bar: [0.4, 0.6], skipSeconds: 20, endSeconds: 60 }
}

/** A row at one round-trip time. */
export interface Row {
  readonly name: RowName
  readonly path: PathSettings
  readonly bar: Plan["bar"]
  readonly skipSeconds: number
  readonly endSeconds: number
}

export const recordBytes = 1_013
const rateMbit = 50

/** `endSeconds` replaces the length of the rows of goodput; a share is always counted over the same time. */
export const rowsOf = (
  names: ReadonlyArray<RowName>,
  rtts: ReadonlyArray<number>,
  endSeconds: number | undefined
): ReadonlyArray<Row> =>
  names.flatMap((name) =>
    rtts.map((rttMillis) => {
      const { bar, jitterMillis, loss, ...plan } = plans[name]
      const end = name === "share" ? plan.endSeconds : (endSeconds ?? plan.endSeconds)
      const path = { rateMbit, rttMillis, jitterMillis, loss }
      return { name, path, bar, skipSeconds: plan.skipSeconds, endSeconds: end }
    })
  )

/** What the sender's feed hands over at once comes on top, several times: or it would wait for all of one to be STORED. */
const batchesMib = 6

/** Some round trips of the path, so that the sender never waits for its feed: as the simulator's outbox. */
export const outboxMib = ({ rateMbit, rttMillis }: PathSettings): number =>
  batchesMib + Math.ceil(((rateMbit / 8) * (4 * rttMillis + 100)) / 1_000)
