import * as Effect from "effect/Effect"
import { spawn } from "node:child_process"
import { dirname, join } from "node:path"
import { createInterface } from "node:readline"

/** Starts a writing process and hands over its lines; it is killed when the scope ends. */
export interface WritingProcess {
  readonly pid: number
  /** The next line that the process said; fails with what it complained of if it ended. */
  readonly line: Effect.Effect<string, Error>
  /** SIGKILL, and the lines that were still under way. */
  readonly kill: Effect.Effect<ReadonlyArray<string>>
}

export const startWriter = (program: "outboxWriter" | "inboxWriter" | "memoWriter", file: string, mode: string) =>
  Effect.acquireRelease(
    Effect.sync((): WritingProcess => {
      const child = spawn(process.execPath, [new URL(`./${program}.ts`, import.meta.url).pathname, file, mode], {
        stdio: ["ignore", "pipe", "pipe"],
        env: { NODE_COMPILE_CACHE: join(dirname(file), "compiled") } // for those that are started again and again
      })
      let complaint = ""
      child.stderr.on("data", (text) => {
        complaint += String(text)
      })
      const lines = createInterface(child.stdout)[Symbol.asyncIterator]()
      const ended = new Promise<void>((resolve) => {
        child.once("close", () => resolve())
      })
      return {
        pid: child.pid!,
        line: Effect.flatMap(
          Effect.promise(() => lines.next()),
          ({ done, value }) => (done === true ? Effect.fail(new Error(complaint)) : Effect.succeed(String(value)))
        ),
        kill: Effect.promise(async () => {
          child.kill("SIGKILL")
          await ended
          const rest: Array<string> = []
          for (let next = await lines.next(); next.done !== true; next = await lines.next()) rest.push(next.value)
          return rest
        })
      }
    }),
    (writer) => writer.kill
  )
