import type { Micros } from "@pure-link/wire"
import type { OutboxDisk } from "./outboxDisk.ts"
import { second } from "./plan.ts"
import type { Stream } from "./stream.ts"
import { killReceiver, replayRun } from "./troubles.ts"
import type { World } from "./world.ts"

/** What operators do to the files of a stream in the middle of a world (spec §8.3–§8.7). */
export type Happening = (world: World, stream: Stream, earlier: Micros, later: Micros) => void

const millisecond: Micros = 1_000

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
      if (world.receiver.untold > 0 || world.receiver.process.isFrozen)
        return world.schedule(world.timeline.now + millisecond, revise)
      restore()
      world.receiver.machine.revise(world.receiver.process.now)
      world.receiver.turn()
      appendAll()
    }
    const kill = () => {
      killReceiver(world, restore)
      appendAll()
    }
    world.schedule(later, killed ? kill : revise)
  }

export const upheavals: { readonly [Name in World["plan"]["upheaval"]]: Happening } = {
  none: () => {},
  newGeneration,
  outboxForked: restoreOutbox(true),
  outboxRestored: restoreOutbox(false),
  outboxCloned,
  inboxRestored: restoreInbox(true),
  inboxRevised: restoreInbox(false)
}
