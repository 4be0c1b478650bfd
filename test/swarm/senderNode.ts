import type { Address } from "@pure-link/wire"
import type { Delivery } from "./network.ts"
import type { OutboxDisk } from "./outboxDisk.ts"
import { Output } from "./output.ts"
import type { Stream } from "./stream.ts"
import type { World } from "./world.ts"

/** A process with outputs, at one address. It dies as a whole; its outboxes stay. */
export class SenderNode {
  address: Address
  outputs: ReadonlyArray<Output> = []

  readonly world: World

  constructor(world: World, address: Address) {
    this.world = world
    this.address = address
  }

  /** Opens an outbox and lets it be sent; the stream's former output, if there is one, ends. */
  open(stream: Stream, disk: OutboxDisk, seed: number = this.world.chance.bits()): void {
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
    const { fault } = this.world
    for (const { stream, disk, seed } of this.outputs)
      this.open(stream, disk, fault === "numberReuse" ? seed : this.world.chance.bits())
  }

  appended(disk: OutboxDisk): void {
    for (const output of this.outputs) if (output.disk === disk) output.appended()
  }

  deliver(delivery: Delivery): void {
    for (const output of this.outputs) if (output.deliver(delivery)) return
  }
}
