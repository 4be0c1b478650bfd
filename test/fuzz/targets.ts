import { bodyTarget } from "./bodyTarget.ts"
import { headerTarget } from "./headerTarget.ts"
import { receiverTarget } from "./receiverTarget.ts"
import { senderTarget } from "./senderTarget.ts"
import type { Target } from "./target.ts"

/** Everything that is fuzzed. */
export const targets: ReadonlyArray<Target> = [headerTarget, bodyTarget, receiverTarget, senderTarget]
