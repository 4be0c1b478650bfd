import { DatagramSocketNative } from "@pure-link/udp"
import { DatagramSocket } from "@pure-link/ports"
import * as Effect from "effect/Effect"
const program = Effect.gen(function* () {
  const service = yield* DatagramSocket
  const a = yield* service.open({ host: "127.0.0.1", port: 0 })
  const b = yield* service.open({ host: "127.0.0.1", port: 0 })
  const slab = new Uint8Array(64 * 1452).fill(7), lengths = new Uint32Array(64).fill(1452)
  const time = (name: string, n: number, f: () => void) => { for (let i = 0; i < n / 10; i++) f(); const t = process.cpuUsage(); for (let i = 0; i < n; i++) f(); const u = process.cpuUsage(t); console.log(name, "user", (u.user * 1000 / n).toFixed(0), "system", (u.system * 1000 / n).toFixed(0), "ns") }
  time("send 0", 300000, () => a.send(slab, 1452, lengths, 0, b.local))
  time("receive none", 300000, () => void b.receive(256))
  const p1 = { host: "127.0.0.1", port: 9 }, p2 = { host: "127.0.0.1", port: 10 }
  let f = false
  time("send 0 alternating", 300000, () => a.send(slab, 1452, lengths, 0, (f = !f) ? p1 : p2))
  time("send 1 + receive", 50000, () => { a.send(slab, 1452, lengths, 1, b.local); b.receive(256) })
  time("send 45 + receive", 20000, () => { a.send(slab, 1452, lengths, 45, b.local); b.receive(256) })
  time("send 64 + receive", 20000, () => { a.send(slab, 1452, lengths, 64, b.local); b.receive(256) })
  time("wakeAfter", 100000, () => a.wakeAfter!(100000))
  console.log(b.counters.received)
})
Effect.runPromise(program.pipe(Effect.scoped, Effect.provide(DatagramSocketNative.layer)))
