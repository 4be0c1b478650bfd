import { serve } from "../../src/worker/serve.ts"

/** A store's thread that ends by itself when it is asked to: by leaving, or by an error that nobody caught. */
export interface DyingOperations {
  readonly exit: readonly [code: number, reply: never]
  readonly echo: readonly [text: string, reply: string]
  readonly die: readonly [text: string, reply: string]
}

serve<DyingOperations>(() => ({
  opened: "open",
  operations: {
    exit: (code) => process.exit(code),
    echo: (text) => text,
    die: (text) => {
      queueMicrotask(() => {
        throw new Error(text)
      })
      return text
    }
  },
  transfer: () => [],
  close: () => {}
}))
