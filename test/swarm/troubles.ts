import type { Micros } from "@pure-link/wire"
import { replayer } from "./network.ts"
import type { OutboxDisk } from "./outboxDisk.ts"
import { second } from "./plan.ts"
import type { Stream } from "./stream.ts"
import type { World } from "./world.ts"

/** Lets everything that a world's plan has in store happen at its time: deaths, moves, replays, and what operators do. */
export const scheduleTroubles = (world: World): void => {
  const { chance, plan } = world
  const sometime = () => chance.between(0, plan.chaosEnds)
  for (let i = 0; i < plan.senderCrashes; i++) world.schedule(sometime(), () => world.sender.restart())
  for (let i = 0; i < plan.receiverCrashes; i++) world.schedule(sometime(), () => killReceiver(world, () => {}))
  for (let i = 0; i < plan.rebinds; i++) {
    world.schedule(sometime(), () => {
      world.sender.address = { host: "10.0.0.1", port: 4_001 + i }
    })
  }
  for (let i = 0; i < plan.replayedRuns; i++) {
    world.schedule(sometime(), () => {
      const runs = [...world.network.runs.keys()]
      if (runs.length > 0) replayRun(world, chance.pick(runs))
    })
  }
  if (plan.inputTrouble !== "none") troubleInput(world)
  const [earlier, later] = [sometime(), sometime()].sort((a, b) => a - b)
  upheavals[plan.upheaval](world, chance.pick(world.streams), earlier!, later!)
}

/** All packets of a run arrive once more, a millisecond apart, from where they came or from a stranger. */
export const replayRun = (world: World, run: bigint): void => {
  const { chance, network, timeline } = world
  const from = chance.happens(0.5) ? replayer : undefined
  world.note(`run ${run.toString(16)} is replayed`)
  network.runs
    .get(run)!
    .slice(0, mostReplayed)
    .forEach((delivery, i) => network.replay(delivery, timeline.now + i * millisecond, from))
  world.tally.add("world replayed runs")
}

const millisecond: Micros = 1_000
const mostReplayed = 200

/** The receiver's process dies; something is done to its disk; after a while it runs again. */
const killReceiver = (world: World, meanwhile: () => void): void => {
  world.note("the receiver dies")
  world.receiver.end()
  meanwhile()
  const downtime = world.chance.pick([0, 0, second, 4 * second])
  world.schedule(world.timeline.now + downtime, () => world.startReceiver())
}

const troubleInput = (world: World): void => {
  const { chance, plan, configuration } = world
  const stream = chance.pick(world.streams)
  const begins = plan.inputTrouble === "missing" ? 0 : chance.between(0, plan.chaosEnds)
  world.schedule(begins, () => {
    world.note(`trouble of "${stream.input}" from "${stream.source}": ${plan.inputTrouble}`)
    configuration.disturb(stream, plan.inputTrouble)
    world.receiver.configure()
  })
  world.schedule(chance.between(begins, plan.chaosEnds), () => {
    world.note(`"${stream.input}" from "${stream.source}" is as it should be`)
    configuration.repair(stream)
    world.receiver.configure()
  })
}

type Happening = (world: World, stream: Stream, earlier: Micros, later: Micros) => void

/** The outbox file is replaced by a new one. Packets of the former one still come, long after. */
const newGeneration: Happening = (world, stream, _earlier, later) => {
  const { chance, timeline } = world
  world.schedule(later, () => {
    const former = stream.disk.generation
    stream.disk = stream.newDisk(chance)
    world.sender.open(stream, stream.disk)
    for (let i = chance.between(1, 4); i > 0; i--) world.append(stream.disk)
    const runs = [...world.judge.runs].filter(([, output]) => output.disk.generation === former).map(([run]) => run)
    for (const run of runs.slice(-2)) {
      if (!world.network.runs.has(run)) continue
      world.schedule(timeline.now + chance.between(0, 3 * second), () => replayRun(world, run))
    }
  })
}

/** The outbox goes back to a backup; with `appends`, what it appends then is a fork of what the inbox may have. */
const restoreOutbox =
  (appends: boolean): Happening =>
  (world, stream, earlier, later) => {
    let backup = stream.disk.copy()
    world.schedule(earlier, () => {
      backup = stream.disk.copy()
    })
    world.schedule(later, () => {
      stream.disk = backup
      stream.isClosed = !appends
      world.sender.open(stream, stream.disk)
      for (let i = world.chance.pick([1, 3, 30]); i > 0; i--) world.append(stream.disk)
    })
  }

/** A copy of the outbox runs on another machine, with the same key; for a while or at once, both append. */
const outboxCloned: Happening = (world, stream, _earlier, later) => {
  const { chance } = world
  const appendBoth = (disk: OutboxDisk, most: number) => {
    for (let i = 0; i < most; i++) {
      world.append(disk)
      if (i % 2 === 0) world.append(stream.disk)
    }
  }
  world.schedule(later, () => {
    const disk = stream.disk.copy()
    world.startClone(stream, disk)
    appendBoth(disk, chance.pick([0, 1, 20]))
    world.schedule(world.timeline.now + chance.between(0, 2 * second), () => appendBoth(disk, chance.pick([0, 3])))
  })
}

/** The inbox goes back to a backup, and then every stream appends, so that it is noticed. */
const restoreInbox =
  (killed: boolean): Happening =>
  (world, _stream, earlier, later) => {
    let restore = world.backupInbox()
    world.schedule(earlier, () => {
      restore = world.backupInbox()
    })
    const appendAll = () => {
      for (const stream of world.streams) world.append(stream.disk)
    }
    const revise = () => {
      // A disk changes under a running process only while it waits for nothing that it was not told of.
      if (world.receiver.untold > 0) return world.schedule(world.timeline.now + millisecond, revise)
      restore()
      world.receiver.machine.revise(world.timeline.now)
      world.receiver.turn()
      appendAll()
    }
    const kill = () => {
      killReceiver(world, restore)
      appendAll()
    }
    world.schedule(later, killed ? kill : revise)
  }

const upheavals: { readonly [Name in World["plan"]["upheaval"]]: Happening } = {
  none: () => {},
  newGeneration,
  outboxForked: restoreOutbox(true),
  outboxRestored: restoreOutbox(false),
  outboxCloned,
  inboxRestored: restoreInbox(true),
  inboxRevised: restoreInbox(false)
}
