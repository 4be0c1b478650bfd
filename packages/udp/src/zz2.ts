import { DatagramSocketNative } from "@pure-link/udp"
import { DatagramSocket } from "@pure-link/ports"
import * as Effect from "effect/Effect"
const mode = process.argv[2]
const program = Effect.gen(function* () {
  const service = yield* DatagramSocket
  const a = yield* service.open({ host: "127.0.0.1", port: 0 })
  const b = yield* service.open({ host: "127.0.0.1", port: 0 })
  const slab = new Uint8Array(64 * 1452).fill(7), lengths = new Uint32Array(64).fill(1452)
  const fs: Record<string, () => void> = { none: () => void b.receive(256), send0: () => a.send(slab, 1452, lengths, 0, b.local), one: () => { a.send(slab, 1452, lengths, 1, b.local); b.receive(256) } , many: () => { a.send(slab, 1452, lengths, 64, b.local); b.receive(256) }, wake: () => a.wakeAfter!(100000)}
  const f = fs[mode]!
  const t = process.cpuUsage(); const n = Number(process.argv[3] ?? 1000000); for (let i = 0; i < n; i++) f(); const u = process.cpuUsage(t); console.log(mode, "user", (u.user * 1000 / n).toFixed(0), "system", (u.system * 1000 / n).toFixed(0), "ns")
})
Effect.runPromise(program.pipe(Effect.scoped, Effect.provide(DatagramSocketNative.layer)))
