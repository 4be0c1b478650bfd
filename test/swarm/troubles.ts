import { type Address, type Micros } from "@pure-link/wire"
import { replayer } from "./network.ts"
import { second } from "./plan.ts"
import { upheavals } from "./upheavals.ts"
import type { World } from "./world.ts"

/**
 * Lets everything that a world's plan has in store happen at its time: deaths, moves, suspension, full disks, lost memos,
 * replays, and what operators do.
 */
export const scheduleTroubles = (world: World): void => {
  const { chance, plan } = world
  const sometime = () => chance.between(0, plan.chaosEnds)
  for (let i = 0; i < plan.senderCrashes; i++) world.schedule(sometime(), () => world.sender.restart())
  for (let i = 0; i < plan.receiverCrashes; i++) world.schedule(sometime(), () => killReceiver(world, () => {}))
  for (let i = 0; i < plan.rebinds; i++) world.schedule(sometime(), () => rebind(world))
  if (plan.rebindEvery > 0) rebindStorm(world, sometime())
  for (let i = 0; i < plan.senderMoves; i++) moveSender(world, sometime(), sometime())
  for (let i = 0; i < plan.receiverMoves; i++) world.schedule(sometime(), () => moveReceiver(world))
  for (let i = 0; i < plan.freezes; i++) world.schedule(sometime(), () => suspend(world))
  if (plan.diskFull > 0) fillDisk(world, sometime())
  troubleMemo(world, sometime())
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
    .forEach((sent, i) => network.repeat(sent, timeline.now + i * millisecond, from))
  world.tally.add("world replayed runs")
}

const millisecond: Micros = 1_000
const mostReplayed = 200

/** The receiver's process dies; something is done to its disks; after a while it runs again. */
export const killReceiver = (world: World, meanwhile: () => void): void => {
  const { chance, memo, plan, tally, timeline } = world
  world.note("the receiver dies")
  world.receiver.end()
  meanwhile()
  if ((plan.memo === "lost" || plan.memo === "foreign") && chance.happens(0.6)) {
    world.note(`the memo is ${plan.memo}`)
    memo!.lose()
    tally.add(`world memo ${plan.memo}`)
  }
  if (plan.memo === "kept" && memo!.current.size > 0) tally.add("world memo kept")
  const downtime = chance.pick([0, 0, second, 4 * second])
  world.schedule(timeline.now + downtime, () => world.startReceiver())
}

/** The memo's disk refuses writes now and then, or a copy of the memo comes back when the receiver has died again. */
const troubleMemo = (world: World, earlier: Micros): void => {
  const { chance, memo, plan, tally } = world
  if (memo === undefined) return
  if (plan.memo === "failing") {
    memo.fails = () => {
      const fails = !world.calm && chance.happens(0.4)
      if (fails) tally.add("world memo writes failed")
      return fails
    }
  }
  if (plan.memo !== "old") return
  let restore = memo.backup()
  world.schedule(earlier, () => {
    restore = memo.backup()
  })
  world.schedule(chance.between(earlier, plan.chaosEnds), () =>
    killReceiver(world, () => {
      world.note("the memo goes back to its backup")
      restore()
      tally.add("world memo old")
    })
  )
}

/** Its NAT gives the sender's node another port: what is on its way to the former one is lost. */
const rebind = (world: World): void => {
  const { sender, tally } = world
  sender.address = { host: sender.address.host, port: sender.address.port + 1 }
  world.note(`the sender comes from ${sender.address.host}:${sender.address.port}`)
  tally.add("world rebinds")
}

const rebindStorm = (world: World, begins: Micros): void => {
  const { chance, plan, tally } = world
  for (let i = chance.between(3, 30); i > 0; i--) world.schedule(begins + i * plan.rebindEvery, () => rebind(world))
  if (plan.rebindEvery < 2 * plan.weather.delay) tally.add("world rebinds faster than the RTT")
}

const moveSender = (world: World, one: Micros, other: Micros): void => {
  const { sender, tally } = world
  const home = sender.address
  const away: Address = { host: "10.0.1.7", port: 4_000 }
  const move = (address: Address) => () => {
    world.note(`the sender moves to ${address.host}`)
    sender.address = address
    tally.add("world sender moves")
  }
  world.schedule(Math.min(one, other), move(away))
  world.schedule(Math.max(one, other), move(home))
}

/** Another machine takes over the receiver's disks and its memo; sooner or later the senders are told. */
const moveReceiver = (world: World): void => {
  const { chance, receiverAddress, tally } = world
  killReceiver(world, () => {
    const number = Number(receiverAddress.host.split(".").at(-1)) + 1
    world.moveReceiver({ host: `10.0.2.${number}`, port: 5_000 }, () => chance.pick([0, second, 6 * second]))
    tally.add("world receiver moves")
  })
}

/** A process is suspended for up to ten minutes: its timers do not fire, and its socket's buffer overflows. */
const suspend = (world: World): void => {
  const { chance, plan, receiver, sender, tally, timeline } = world
  const isSender = chance.happens(0.5)
  const { process } = isSender ? sender : receiver
  const wakes = timeline.now + chance.between(1, plan.longestFreeze)
  if (!process.alive || process.isFrozen) return
  world.note(`the ${isSender ? "sender" : "receiver"} is suspended`)
  process.freeze()
  tally.add(isSender ? "world sender suspended" : "world receiver suspended")
  world.schedule(wakes, () => {
    if (process.isFrozen) world.note(`the ${isSender ? "sender" : "receiver"} wakes`)
    process.wake()
  })
}

const fillDisk = (world: World, begins: Micros): void => {
  world.schedule(begins, () => {
    world.note("the inbox's disk is full")
    world.isDiskFull = true
    world.tally.add("world disk full")
  })
  world.schedule(begins + world.plan.diskFull, () => {
    world.note("the inbox's disk has room")
    world.isDiskFull = false
  })
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
