import { assert, describe, it } from "@effect/vitest"
import { never } from "@pure-link/wire"
import { flagTable } from "./flags.ts"
import { help, readOptions } from "./options.ts"
import { UsageError } from "./usageError.ts"

const read = (...argv: ReadonlyArray<string>) => readOptions(argv)!

/** The error of a command line, which must be one line for a person. */
const refusal = (...argv: ReadonlyArray<string>): string => {
  try {
    readOptions(argv)
  } catch (error) {
    assert.instanceOf(error, UsageError)
    assert.notInclude((error as Error).message, "\n")
    return (error as Error).message
  }
  return assert.fail(`${argv.join(" ")} was taken`)
}

describe("readOptions", () => {
  it("without flags drains 30,000 records of 1,013 B through 50 Mbit/s at RTT 20, with a queue of one RTT", () => {
    const options = read()
    assert.strictEqual(options.rateBitsPerSecond, 50e6)
    assert.strictEqual(options.rttMicros, 20_000)
    assert.strictEqual(options.queueBytes, 125_000)
    assert.strictEqual(options.recordBytes, 1_013)
    assert.strictEqual(options.records, 30_000)
    assert.strictEqual(options.lossUntil, never)
    assert.strictEqual(options.pathMtu, "discovery")
    assert.strictEqual(options.seed, 1)
  })

  it("the queue follows rate and RTT, unless it is given", () => {
    assert.strictEqual(read("--rate", "100", "--rtt", "10").queueBytes, 125_000)
    assert.strictEqual(read("--rtt", "100").queueBytes, 625_000)
    assert.strictEqual(read("--rtt", "100", "--queue", "0").queueBytes, 0)
  })

  it("turns units of people into those of the house", () => {
    const options = read("--seconds", "60", "--skip", "2.5", "--every", "20", "--loss-until", "2", "--jitter", "0.5")
    assert.strictEqual(options.records, Infinity)
    assert.strictEqual(options.end, 60_000_000)
    assert.strictEqual(options.skip, 2_500_000)
    assert.strictEqual(options.every, 20_000)
    assert.strictEqual(options.lossUntil, 2_000_000)
    assert.strictEqual(options.jitterMicros, 500)
  })

  it("reads values that are joined by colons", () => {
    const options = read(
      ..."--delay-step 10:400:1 --idle 5:600 --blackout 3:60 --burst-loss 0.01:0.2:0.5 --displace 20:0.1".split(" ")
    )
    assert.deepStrictEqual(options.delayStep, { at: 10_000_000, rttMicros: 400_000, duration: 1_000_000 })
    assert.deepStrictEqual(options.idle, { at: 5_000_000, duration: 600_000_000 })
    assert.deepStrictEqual(options.blackout, { at: 3_000_000, duration: 60_000_000 })
    assert.deepStrictEqual(options.burstLoss, { enter: 0.01, leave: 0.2, loss: 0.5 })
    assert.deepStrictEqual(options.displace, { micros: 20_000, fraction: 0.1 })
  })

  it("answers are lost as data is, unless another loss is given for them", () => {
    assert.strictEqual(read("--loss", "0.3").answerLoss, 0.3)
    assert.strictEqual(read("--loss", "0.3", "--answer-loss", "0").answerLoss, 0)
  })

  it("a black hole opens at a time or at growth", () => {
    assert.deepStrictEqual(read("--blackhole-at", "growth").blackHole, { at: "growth", after: 0, mtu: 1_300 })
    const later = read("--blackhole-at", "growth+0.0125").blackHole
    assert.deepStrictEqual(later, { at: "growth", after: 12_500, mtu: 1_300 })
    const timed = read("--blackhole-at", "1.5", "--blackhole-mtu", "1250").blackHole
    assert.deepStrictEqual(timed, { at: 1_500_000, after: 0, mtu: 1_250 })
    assert.strictEqual(read("--no-blackhole-detection").pathMtu, "without-black-holes")
  })

  it("says what a value may be when it is not", () => {
    assert.strictEqual(refusal("--rtt", "soon"), '--rtt takes milliseconds from 0.01 to 60,000, not "soon"')
    assert.strictEqual(refusal("--loss", "1.5"), '--loss takes a fraction from 0 to 1, not "1.5"')
    assert.strictEqual(refusal("--records", "2.5"), '--records takes a whole number from 1 to 1e9, not "2.5"')
    assert.strictEqual(refusal("--size", "0x10"), '--size takes whole bytes from 0 to 16,777,216, not "0x10"')
    assert.strictEqual(refusal("--controller", "bbr"), '--controller takes cubic or newreno, not "bbr"')
    assert.strictEqual(refusal("--idle", "5"), '--idle AT:FOR takes 2 numbers joined by colons, not "5"')
    assert.include(refusal("--delay-step", "1:x:2"), "--delay-step AT:MS:FOR (number 2) takes milliseconds")
    assert.include(refusal("--blackhole-at", "later"), "--blackhole-at takes seconds")
    assert.include(refusal("--blackhole-at", "growth+x"), "--blackhole-at growth+ takes seconds")
  })

  it("refuses unknown flags, missing values and stray words", () => {
    assert.include(refusal("--speed", "1"), "--speed")
    assert.include(refusal("--rtt"), "--rtt")
    assert.include(refusal("fast"), "fast")
  })

  it("refuses what contradicts itself", () => {
    assert.include(refusal("--records", "5", "--seconds", "5"), "exclude each other")
    assert.include(refusal("--limit", "5", "--seconds", "5"), "--limit")
    assert.include(refusal("--jitter", "11"), "half of --rtt")
    assert.include(refusal("--seconds", "5", "--skip", "5"), "--skip")
    assert.include(refusal("--blackhole-mtu", "1300"), "--blackhole-at")
    assert.include(refusal("--path-mtu", "fixed", "--no-blackhole-detection"), "--no-blackhole-detection")
    assert.include(refusal("--every", "20", "--idle", "1:1"), "--idle")
    assert.include(refusal("--join", "5"), "--join")
  })

  it("help names every flag, and asking for it runs nothing", () => {
    for (const flag of Object.keys(flagTable)) assert.include(help(), `--${flag} `)
    assert.isUndefined(readOptions(["--help", "--rtt", "20"]))
  })
})
