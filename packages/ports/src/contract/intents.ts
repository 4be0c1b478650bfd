import type { Id64, Life, StoreIntent } from "@pure-link/wire"
import { recordsOf } from "./records.ts"

/** Intents for the contract suites: of one stream, unless they say otherwise. */

export const lifeOfTests = 0x8000_0000_0000_0001n

export const intent = ({
  sizes,
  first = 1,
  generation = 1n,
  input = "orders",
  lives = [{ life: lifeOfTests, first: 1 }],
  source = "shop"
}: {
  readonly sizes: ReadonlyArray<number>
  readonly first?: number
  readonly generation?: Id64
  readonly input?: string
  readonly lives?: ReadonlyArray<Life>
  readonly source?: string
}): StoreIntent => ({ source, input, generation, lives, batch: { first, ...recordsOf(first, sizes) } })
