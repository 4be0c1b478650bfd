import { assert, describe, it } from "@effect/vitest"
import { load, type NativeSocket, type SocketTables } from "@pure-link/native"
import { execFileSync } from "node:child_process"
import { Worker } from "node:worker_threads"
import { type FaultyAddon, faultyAddon } from "./faultyAddon.ts"

/** The addon's sockets and timers are hard to hurt: by misuse, by opening and closing, by ends of workers and processes. */

const hasAddon = load().addon !== undefined
const { addon, path } = hasAddon ? faultyAddon() : { addon: undefined as unknown as FaultyAddon, path: "" }

describe.skipIf(!hasAddon)("misuse from JavaScript", () => {
  const socket = () => {
    const made = new addon.Socket(tables(), settings, () => {})
    assert.strictEqual(made.open(addon.encodePeer("127.0.0.1", 0)!), 0)
    return made
  }
  const garbage: ReadonlyArray<unknown> = [
    undefined,
    null,
    -1,
    0.5,
    NaN,
    Infinity,
    2 ** 40,
    "x",
    10n,
    Symbol("x"),
    {},
    [],
    () => {},
    new Uint8Array(0),
    new Uint8Array(43),
    new Uint8Array(44),
    new Float64Array(1),
    new DataView(new ArrayBuffer(8)),
    new Proxy({}, {})
  ]

  it("any argument in any place throws a TypeError, or is taken; nothing crashes, and the socket still works", () => {
    const target = socket()
    const good: Record<string, ReadonlyArray<unknown>> = {
      open: [addon.encodePeer("127.0.0.1", 0)],
      send: [new Uint8Array(8), 4, Uint32Array.of(4, 4), 2, addon.encodePeer("127.0.0.1", 9)],
      receive: [4],
      peerAt: [0],
      setEcn: [1],
      counters: [new Float64Array(256)]
    }
    for (const [name, values] of Object.entries(good)) {
      for (let place = 0; place < values.length; place++) {
        for (const wrong of garbage) {
          const mixed = values.map((value, i) => (i === place ? wrong : value))
          throwsTypeErrorOrNothing(() => (target as unknown as Record<string, Call>)[name]!(...mixed))
        }
      }
      throwsTypeErrorOrNothing(() => (target as unknown as Record<string, Call>)[name]!())
    }
    for (const wrong of garbage) {
      throwsTypeErrorOrNothing(() => addon.encodePeer(wrong as string, wrong as number, wrong as string))
      throwsTypeErrorOrNothing(() => new addon.Timer(wrong as () => void).close())
      assert.throws(() => new addon.Socket(wrong as SocketTables, settings, () => {}), TypeError)
      assert.throws(() => new addon.Socket(tables(), settings, wrong as never).open(wrong as Uint8Array), TypeError)
    }
    assert.strictEqual(target.open(addon.encodePeer("127.0.0.1", 0)!), 0)
    const self = addon.encodePeer("127.0.0.1", target.local()!.port)!
    assert.strictEqual(target.send(new Uint8Array(8), 4, Uint32Array.of(4, 4), 2, self), 0)
    assert.strictEqual(target.receive(9), 2)
    target.close()
  })

  it("datagrams behind the end of the slab, or of the lengths, are refused", () => {
    const target = socket()
    const to = addon.encodePeer("127.0.0.1", 9)!
    const send = (stride: number, lengths: ReadonlyArray<number>, count: number) => () =>
      target.send(new Uint8Array(100), stride, Uint32Array.from(lengths), count, to)
    for (const wrong of [send(50, [50, 51], 2), send(2 ** 32 - 1, [1, 1], 2), send(0, [101], 1), send(1, [1], 2)]) {
      assert.throws(wrong, TypeError)
    }
    assert.strictEqual(send(50, [50, 50], 2)(), 0)
    target.close()
  })

  it("methods of one thing do not work on another, and constructors want `new`", () => {
    const target = socket()
    const timer = new addon.Timer(() => {})
    for (const self of [timer, {}, null, Object.create(target)]) {
      assert.throws(() => Reflect.apply(target.receive, self, [4]), TypeError)
      assert.throws(() => Reflect.apply(target.close, self, []), TypeError)
    }
    assert.throws(() => Reflect.apply(timer.arm, target, [1]), TypeError)
    assert.throws(() => (addon.Socket as unknown as Call)(tables(), settings, () => {}), TypeError)
    timer.close()
    target.close()
  })

  it("tables that are too short, of another type, shared or given away are refused", () => {
    const wrong: ReadonlyArray<Partial<Record<keyof SocketTables, unknown>>> = [
      { bytes: new Uint8Array(65_535) },
      { ends: new Uint32Array(15) },
      { ecn: new Uint32Array(16) },
      { peers: undefined },
      { news: new Uint32Array(257) },
      { starts: new Uint32Array(new SharedArrayBuffer(64)) }
    ]
    for (const table of wrong) {
      assert.throws(() => new addon.Socket({ ...tables(), ...table } as SocketTables, settings, () => {}), TypeError)
    }
    const given = tables()
    const target = new addon.Socket(given, settings, () => {})
    assert.strictEqual(target.open(addon.encodePeer("127.0.0.1", 0)!), 0)
    structuredClone(given.starts, { transfer: [given.starts.buffer as ArrayBuffer] })
    assert.throws(() => target.receive(4), /tables are gone/)
    target.close()
  })

  it("settings out of bounds are refused", () => {
    for (const [name, value] of Object.entries({ sendEcn: 4, longestDatagram: 0, sendQueueBytes: -1, gro: 2 })) {
      assert.throws(() => new addon.Socket(tables(), { ...settings, [name]: value }, () => {}), TypeError)
    }
  })

  it("what is closed does nothing, however often it is closed", () => {
    const target = socket()
    target.close()
    target.close()
    target.watch(true)
    const to = addon.encodePeer("127.0.0.1", 9)!
    assert.strictEqual(target.send(new Uint8Array(4), 4, Uint32Array.of(4), 1, to), 1)
    assert.deepStrictEqual([target.receive(4), target.waits(), target.local()], [0, false, undefined])
    const timer = new addon.Timer(() => assert.fail("a closed timer fired"))
    timer.arm(0)
    timer.close()
    timer.arm(0)
    timer.close()
  })

  const throwsTypeErrorOrNothing = (call: () => unknown): void => {
    try {
      call()
    } catch (error) {
      assert.instanceOf(error, TypeError)
    }
  }
})

describe.skipIf(!hasAddon)("opening and closing", () => {
  it("a thousand times costs no descriptor", () => {
    const at = addon.encodePeer("127.0.0.1", 0)!
    const shared = tables()
    let last: NativeSocket | undefined
    for (let i = 0; i < 1_000; i++) {
      const socket = new addon.Socket(shared, { ...settings, receiveBufferBytes: 65_536 }, () => {})
      assert.strictEqual(socket.open(at), 0)
      if (i % 3 === 0) assert.strictEqual(socket.open(at), 0)
      socket.watch(i % 2 === 0)
      const timer = new addon.Timer(() => {})
      timer.arm(1_000_000)
      timer.close()
      socket.close()
      last = socket
    }
    assert.isUndefined(last!.local())
  })
})

describe.skipIf(!hasAddon)("ends of workers and processes", () => {
  it("two isolates use sockets at once, and end with open ones, armed timers and queued datagrams", async () => {
    const worker = (mode: string) =>
      new Promise<string>((resolve, reject) => {
        const made = new Worker(script(mode), { eval: true, workerData: path })
        let said = ""
        made.on("message", (text: string) => (said += text))
        made.on("error", reject)
        made.on("exit", (code) => resolve(`${said} ${code}`))
      })
    for (let round = 0; round < 3; round++) {
      const ends = await Promise.all([worker("exit"), worker("throw"), worker("idle")].map(settled))
      assert.deepStrictEqual(ends, ["ok 7", "oh dear", "ok 0"])
    }
  })

  // The end of a worker most often comes while it is inside a call of the addon, which then can neither work nor throw.
  it("workers that are terminated in the middle of their work take nobody with them", async () => {
    const terminated = async () => {
      const worker = new Worker(script("run"), { eval: true, workerData: path })
      await new Promise((resolve) => worker.once("message", resolve))
      return worker.terminate()
    }
    for (let round = 0; round < 20; round++) {
      assert.deepStrictEqual(await Promise.all(Array.from({ length: 4 }, terminated)), [1, 1, 1, 1])
    }
  })

  for (const [mode, code] of [
    ["exit", 7],
    ["idle", 0],
    ["throw", 1]
  ] as const) {
    it(`a process that ends (${mode}) with an open socket does so at once, with its own exit code`, () => {
      const run = () =>
        execFileSync(process.execPath, ["-e", `const workerData = process.argv[1];${script(mode)}`, path], {
          encoding: "utf8",
          stdio: "pipe",
          timeout: 10_000
        })
      if (code === 0) assert.strictEqual(run(), "ok\n")
      else assert.strictEqual(statusOf(run), code)
    })
  }

  const statusOf = (call: () => unknown): unknown => {
    try {
      return call()
    } catch (error) {
      return (error as { readonly status?: number }).status
    }
  }

  const settled = (promise: Promise<string>) => promise.catch((error: Error) => error.message)
})

type Call = (...values: ReadonlyArray<unknown>) => unknown

const settings = {
  receiveBufferBytes: 262_144,
  sendBufferBytes: 262_144,
  sendQueueBytes: 65_536,
  longestDatagram: 1_452,
  sendEcn: 0,
  gso: 1,
  gro: 1
}

function tables(): SocketTables {
  return {
    bytes: new Uint8Array(2 * 65_536),
    starts: new Uint32Array(16),
    ends: new Uint32Array(16),
    ecn: new Uint8Array(16),
    peers: new Uint32Array(16),
    news: new Uint32Array(258)
  }
}

/**
 * A small program: a socket that floods itself, and when something came, ends in its way. Then another has datagrams in its
 * queue, because the system's buffer is full for it.
 */
function script(mode: string): string {
  return `
    const { parentPort, workerData: path = workerData } = require("node:worker_threads").parentPort
      ? require("node:worker_threads")
      : { parentPort: { postMessage: (text) => console.log(text) } }
    const addon = require(path)
    const tables = {
      bytes: new Uint8Array(131072), starts: new Uint32Array(64), ends: new Uint32Array(64),
      ecn: new Uint8Array(64), peers: new Uint32Array(64), news: new Uint32Array(258)
    }
    const settings = ${JSON.stringify(settings)}
    let left = 50
    const socket = new addon.Socket(tables, settings, () => {
      while (socket.receive(64) > 0);
      if (left-- === 0) {
        addon.injectFault({ call: "sendmmsg", errno: 11 })
        send(other)
        parentPort.postMessage("ok")
        end[${JSON.stringify(mode)}]()
      }
      send(socket)
    })
    const other = new addon.Socket(tables, settings, () => {})
    const timer = new addon.Timer(() => timer.arm(50))
    const end = {
      exit: () => process.exit(7),
      throw: () => { throw new Error("oh dear") },
      idle: () => { socket.close(); other.close(); timer.close() },
      run: () => { left = Infinity; addon.clearFaults() }
    }
    socket.open(addon.encodePeer("127.0.0.1", 0))
    other.open(addon.encodePeer("127.0.0.1", 0))
    const self = addon.encodePeer("127.0.0.1", socket.local().port)
    const send = (from) => from.send(new Uint8Array(46464), 1452, new Uint32Array(32).fill(1452), 32, self)
    timer.arm(50)
    socket.watch(true)
    send(socket)
  `
}
