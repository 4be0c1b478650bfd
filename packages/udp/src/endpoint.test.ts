import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import { parseEndpoint, resolveHost } from "./endpoint.ts"

describe("parseEndpoint", () => {
  for (const [text, host, port] of [
    ["192.0.2.7:4433", "192.0.2.7", 4_433],
    ["[2001:db8::1]:0", "2001:db8::1", 0],
    ["[fe80::1%eth0]:65535", "fe80::1%eth0", 65_535],
    ["till-3.shop.example:7", "till-3.shop.example", 7]
  ] as const) {
    it(`reads ${text}`, () => assert.deepStrictEqual(parseEndpoint(text), Result.succeed({ host, port })))
  }

  for (const [text, problem] of [
    ["", /^\(empty\): no host before the port; write HOST:PORT/],
    [":4433", /no host before the port/],
    ["shop.example", /no port; write shop\.example:PORT/],
    ["shop.example:", /no port; write shop\.example:PORT/],
    ["shop.example:http", /'http' is not a port; give a number/],
    ["shop.example:65536", /'65536' is not a port/],
    ["shop.example:-1", /'-1' is not a port/],
    ["2001:db8::1", /without brackets and a port; write \[2001:db8::1\]:PORT/],
    ["2001:db8::1:4433:x", /not an endpoint/],
    ["[shop.example]:1", /no IPv6 address in the brackets/],
    ["[::1]", /no port; write \[::1\]:PORT/],
    ["[::1]4433", /not an endpoint/],
    ["256.1.1.1:9", /no IPv4 address/],
    ["udp://shop.example:9", /not an endpoint|not a port|not a host/],
    ["me@shop.example:9", /not a host; write HOST:PORT without scheme/]
  ] as const) {
    it(`refuses '${text}' and says why`, () => {
      const result = parseEndpoint(text)
      assert.isTrue(Result.isFailure(result))
      if (Result.isFailure(result)) assert.match(result.failure.message, problem)
    })
  }
})

describe("resolveHost", () => {
  it("gives numeric hosts one spelling, without asking anybody", () => {
    const spelled = (host: string) => Effect.runSync(resolveHost(host, 5)).host
    assert.strictEqual(spelled("192.0.2.7"), "192.0.2.7")
    assert.strictEqual(spelled("2001:DB8:0:0::1"), "2001:db8::1")
    assert.strictEqual(spelled("::FFFF:192.0.2.7"), "192.0.2.7")
    assert.strictEqual(spelled("::ffff:c000:207"), "192.0.2.7")
    assert.strictEqual(spelled("FE80::0001%eth0"), "fe80::1%eth0")
  })

  it("finds a name, and says so when there is none", () =>
    Effect.gen(function* () {
      assert.include(["127.0.0.1", "::1"], (yield* resolveHost("localhost", 5)).host)
      const error = yield* Effect.flip(resolveHost("no-such-host.invalid", 5))
      assert.match(error.message, /^no-such-host\.invalid: (no such host|name service failed)/)
    }).pipe(Effect.runPromise))
})
