import { parentPort } from "node:worker_threads"
import type { Carried } from "../Carrier.ts"
import { failureOf } from "../file/failure.ts"
import type { Columns } from "../columns.ts"
import { closing, type Operations, type Reply, type Request } from "./messages.ts"

/**
 * The life of a store's thread: it opens its file, answers one request after the other, and closes the file when it is
 * told to. SQLite blocks this thread instead of the one that moves packets.
 */

type Transferables = ReadonlyArray<ArrayBuffer>

export interface Served<O extends Operations<O>> {
  readonly opened: unknown
  readonly operations: { readonly [K in keyof O]: (request: O[K][0]) => O[K][1] }
  /** The buffers of a reply that move instead of being copied. */
  readonly transfer: (reply: O[keyof O][1]) => Transferables
  readonly close: () => void
}

/**
 * glibc gives the end of its heap back to the kernel as soon as 128 KiB of it are free, and asks for it again at the next
 * block: to fault the same pages in each time cost more than all the rest. It learns how large blocks are from the first
 * that it frees (docs/measurements/stores.md).
 */
const teachAllocator = (): void => void new ArrayBuffer(4 * 1_048_576).transfer(0)

export const serve = <O extends Operations<O>>(open: () => Served<O>): void => {
  const port = parentPort!
  teachAllocator()
  const answer = (id: number, run: () => readonly [reply: unknown, transfer: Transferables]): boolean => {
    try {
      const [reply, transfer] = run()
      port.postMessage({ id, reply } satisfies Reply, transfer)
      return true
    } catch (cause) {
      port.postMessage({ id, failure: failureOf(cause) } satisfies Reply)
      return false
    }
  }
  let served: Served<O> | undefined
  if (!answer(0, () => [(served = open()).opened, []]) || served === undefined) return port.close()
  const { close, operations, transfer } = served
  port.on("message", ({ id, operation, request }: Request) => {
    if (operation === closing) {
      close()
      return port.close()
    }
    answer(id, () => {
      const reply = operations[operation as keyof O](request)
      return [reply, transfer(reply)]
    })
  })
}

/** The buffers of columns. */
export const buffersOf = ({ bytes, sizes }: Columns): Carried => [
  bytes.buffer as ArrayBuffer,
  sizes.buffer as ArrayBuffer
]
