import { assert, describe, it } from "@effect/vitest"
import { load } from "@pure-link/native"
import { DatagramSocket } from "@pure-link/ports"
import * as Effect from "effect/Effect"
import { execFileSync } from "node:child_process"
import { constants } from "node:os"
import { fileURLToPath } from "node:url"
import { DatagramSocketSystem } from "./DatagramSocketSystem.ts"
import { faultyAddon } from "./faultyAddon.ts"
import { findNativeSockets, tryOut } from "./nativeSockets.ts"
import { NativeSocket } from "./NativeSocket.ts"

const hasAddon = load().addon !== undefined
const openAny = Effect.flatMap(DatagramSocket, (service) => service.open({ host: "127.0.0.1", port: 0 }))

describe("DatagramSocketSystem", () => {
  it.skipIf(!hasAddon)("is native where the addon works, and tells what it can do", () =>
    Effect.gen(function* () {
      const socket = yield* openAny
      assert.instanceOf(socket, NativeSocket)
      const { addon, report } = findNativeSockets() as Extract<ReturnType<typeof findNativeSockets>, { report: object }>
      assert.strictEqual(addon, load().addon)
      assert.isAbove(report.receiveBufferBytes, 0)
      assert.isBoolean(report.packetInfo)
    }).pipe(Effect.provide(DatagramSocketSystem.layer), Effect.scoped, Effect.runPromise)
  )

  it("is node:dgram with PURE_LINK_NATIVE=off, and works", () => {
    const program = `
      const [Effect, { DatagramSocket }, { DatagramSocketSystem }] = await Promise.all(
        ["effect/Effect", "@pure-link/ports", process.argv[1]].map((name) => import(name))
      )
      const opened = Effect.flatMap(DatagramSocket, (service) => service.open({ host: "127.0.0.1", port: 0 }))
      const socket = await Effect.runPromise(Effect.provide(opened, DatagramSocketSystem.layer).pipe(Effect.scoped))
      console.log(socket.constructor.name)`
    const here = (name: string) => fileURLToPath(new URL(name, import.meta.url))
    const values = ["--input-type=module", "-e", program, here("DatagramSocketSystem.ts")]
    const said = execFileSync(process.execPath, values, {
      cwd: here("."),
      encoding: "utf8",
      env: { ...process.env, PURE_LINK_NATIVE: "off" }
    })
    assert.strictEqual(said, "NodeSocket\n")
  })

  it.skipIf(!hasAddon)("uses node:dgram where the kernel refuses batches, and says why", () => {
    const { addon } = faultyAddon()
    for (const code of ["ENOSYS", "EPERM"] as const) {
      addon.injectFault({ call: "sendmmsg", errno: constants.errno[code] })
      assert.strictEqual(tryOut(addon).reason, `the system refuses batches of datagrams (${code})`)
      addon.clearFaults()
    }
    addon.injectFault({ call: "recvmmsg", errno: constants.errno.ENOSYS })
    assert.match(String(tryOut(addon).reason), /ENOSYS/)
    addon.clearFaults()
    assert.isUndefined(tryOut(addon).reason)
  })

  it.skipIf(!hasAddon)("does not blame the addon for an address that cannot be bound", () => {
    const { addon } = faultyAddon()
    addon.injectFault({ call: "bind", errno: constants.errno.EACCES })
    assert.isUndefined(tryOut(addon).reason)
    addon.clearFaults()
  })
})
