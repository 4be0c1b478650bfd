/**
 * Two machines: two network namespaces with a wire between them, made and removed here. A file goes from one to the
 * other, with the commands of the README; over a narrow wire, in datagrams that the sender's kernel has not cut.
 */
import { assert, describe, it } from "@effect/vitest"
import { execFileSync } from "node:child_process"
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { program, Scenario } from "./processes.ts"
import { canMakeNamespaces } from "./tools.ts"

const ip = (...args: ReadonlyArray<string>) => execFileSync("ip", args, { stdio: ["ignore", "ignore", "inherit"] })

/** Two namespaces joined by a veth pair, IPv4 and IPv6. */
class TwoMachines {
  readonly a = `pla${process.pid}`
  readonly b = `plb${process.pid}`

  up(): void {
    ip("netns", "add", this.a)
    ip("netns", "add", this.b)
    ip("link", "add", "plv0", "netns", this.a, "type", "veth", "peer", "name", "plv1", "netns", this.b)
    for (const [space, device, host] of [
      [this.a, "plv0", 1],
      [this.b, "plv1", 2]
    ] as const) {
      ip("-n", space, "addr", "add", `10.99.0.${host}/24`, "dev", device)
      ip("-n", space, "addr", "add", `fd99::${host}/64`, "dev", device, "nodad")
      ip("-n", space, "link", "set", device, "up")
      ip("-n", space, "link", "set", "lo", "up")
    }
  }

  /** A wire that carries less than the longest datagrams: those are 1,452 B behind 28 B or 48 B of headers. */
  narrow(bytes: number): void {
    ip("-n", this.a, "link", "set", "plv0", "mtu", String(bytes))
    ip("-n", this.b, "link", "set", "plv1", "mtu", String(bytes))
  }

  /** Datagrams that the kernel of `a` has cut, of both families. */
  get cut(): number {
    const read = (file: string) => execFileSync("ip", ["netns", "exec", this.a, "cat", `/proc/net/${file}`]).toString()
    const [names, counts] = /^Ip: .*FragOKs.*\nIp: .*$/m
      .exec(read("snmp"))![0]
      .split("\n")
      .map((row) => row.split(" "))
    const six = /^Ip6FragOKs\s+(\d+)/m.exec(read("snmp6"))?.[1] ?? 0
    return Number(counts![names!.indexOf("FragOKs")]) + Number(six)
  }

  down(): void {
    for (const space of [this.a, this.b]) {
      try {
        ip("netns", "del", space)
      } catch {
        /* it was not made */
      }
    }
  }
}

const file = join(import.meta.dirname, "../../node_modules/vega-datasets/data/seattle-weather.csv")

describe.runIf(canMakeNamespaces())("two machines", () => {
  for (const [family, listen, to] of [
    ["IPv4", "0.0.0.0", "10.99.0.2"],
    ["IPv6", "[::]", "[fd99::2]"]
  ] as const) {
    it(`a file goes from one to the other over ${family}`, async () => {
      const machines = new TwoMachines()
      const scenario = new Scenario()
      try {
        machines.up()
        const inside = (space: string, args: ReadonlyArray<string>) =>
          scenario.start("ip", ["netns", "exec", space, process.execPath, program, ...args])
        const serving = inside(machines.b, scenario.serveArguments({ host: listen, port: 4600 }))
        await serving.event("listening")
        const sent = await inside(machines.a, scenario.sendArguments(`${to}:4600`, file)).ended
        assert.strictEqual(sent.code, 0, sent.errors)
        assert.strictEqual(`${scenario.inboxLines().join("\n")}\n`, readFileSync(file, "utf8"))
      } finally {
        await scenario.close()
        machines.down()
      }
    })
  }

  for (const [path, environment, to] of [
    ["the path of this machine", [], "10.99.0.2"],
    ["node:dgram", ["PURE_LINK_NATIVE=off"], "10.99.0.2"],
    ["node:dgram, over IPv6", ["PURE_LINK_NATIVE=off"], "[fd99::2]"]
  ] as const) {
    it(`nothing is cut on a narrow wire (spec §3.1): ${path}`, async () => {
      const machines = new TwoMachines()
      const scenario = new Scenario()
      try {
        machines.up()
        machines.narrow(1_300)
        const inside = (space: string, args: ReadonlyArray<string>) => {
          const command = ["netns", "exec", space, "env", ...environment, process.execPath, program, ...args]
          return scenario.start("ip", command)
        }
        const serving = inside(machines.b, scenario.serveArguments({ host: "[::]", port: 4600 }))
        await serving.event("listening")
        const sent = await inside(machines.a, scenario.sendArguments(`${to}:4600`, file)).ended
        assert.strictEqual(sent.code, 0, sent.errors)
        assert.strictEqual(`${scenario.inboxLines().join("\n")}\n`, readFileSync(file, "utf8"))
        assert.strictEqual(machines.cut, 0)
      } finally {
        await scenario.close()
        machines.down()
      }
    })
  }
})
