import type { Address } from "@pure-link/wire"
import type { Delivery } from "./network.ts"
import type { OutboxDisk } from "./outboxDisk.ts"
import { Output } from "./output.ts"
import { Process } from "./process.ts"
import type { Stream } from "./stream.ts"
import type { World } from "./world.ts"

/** A process with outputs. It dies as a whole; its outboxes stay. */
export class SenderNode {
  outputs: ReadonlyArray<Output> = []
  process: Process
  /** Where its packets come from, as others see it. */
  address: Address
  /** Where it believes the receiver to be. */
  peerAddress: Address

  readonly world: World

  constructor(world: World, address: Address) {
    this.world = world
    this.address = address
    this.peerAddress = world.receiverAddress
    this.process = new Process(world.timeline, world.chance)
  }

  /** Opens an outbox and lets it be sent; the stream's former output, if there is one, ends. */
  open(stream: Stream, disk: OutboxDisk, seed: number = this.world.chance.bits()): void {
    this.process.wake()
    const former = this.outputs.find((output) => output.stream === stream)
    former?.end()
    disk.reopen()
    const output = new Output(this, stream, disk, seed)
    this.outputs = [...this.outputs.filter((other) => other !== former), output]
    this.world.note(`${output.name} starts with ${disk.last} records, ${disk.removedThrough} of them removed`)
    output.turn()
  }

  /** The process dies and starts again, with the outboxes as they are. */
  restart(): void {
    const { chance, fault, tally, timeline } = this.world
    if (this.outputs.length > 1) tally.add("world outputs restarted together")
    this.process.alive = false
    this.process = new Process(timeline, chance)
    for (const { stream, disk, seed } of this.outputs)
      this.open(stream, disk, fault === "numberReuse" ? seed : chance.bits())
  }

  /** Its operator, or the name service, tells where the receiver is now. */
  redirect(address: Address): void {
    this.peerAddress = address
    this.process.do(() => {
      for (const output of this.outputs) output.handlePathChanged()
    })
  }

  appended(disk: OutboxDisk): void {
    this.process.do(() => {
      for (const output of this.outputs) if (output.disk === disk) output.appended()
    })
  }

  deliver(delivery: Delivery): void {
    this.process.receive(delivery, (all) => {
      for (const one of all) this.outputs.some((output) => output.deliver(one))
    })
  }
}
