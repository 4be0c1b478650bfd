import { Bench, makeRecords, list, stored } from "./scriptedPeer.ts"
for (const [size, count] of [[1013, 60000], [61, 400000]] as const) {
  const record = makeRecords([size])[0]!
  const bench = new Bench({ records: Array.from({ length: count }, () => record), datagramSize: 1452, makeController: () => ({ name: "x", window: 400_000, inSlowStart: true, handleSent() {}, handleAcknowledged() {}, handleCongestion: () => false, handlePersistentCongestion() {}, setDatagramSize() {} }) })
  const first = bench.transmit()
  bench.now += 1000
  bench.answer(list("Ack", ...first.map((p) => p.number)), stored(0))
  bench.transmit(); 
  const out = new Uint8Array(1500)
  let packets = 0, sendNs = 0n, ansNs = 0n, number = bench.peer.packets.at(-1)!.number
  let reads = 0n
  while (bench.link.counters.recordBytesSent < size * count) {
    bench.now += 1000
    let t = process.hrtime.bigint()
    for (let l; (l = bench.link.pollTransmit(bench.now, out, 0)) > 0;) { packets++; number++ }
    sendNs += process.hrtime.bigint() - t
    const low = Math.max(0, number - 600)
    const n = Math.max(0, Math.floor(bench.link.counters.recordBytesSent / size) - 3)
    const a = bench.peer.answer([{ _tag: "Ack", delay: 0, ranges: [{ low, high: number }] }, stored(n)])
    t = process.hrtime.bigint()
    bench.link.handleDatagram(bench.now, a, 0, a.length)
    ansNs += process.hrtime.bigint() - t
    bench.feed()
  }
  console.log(size, packets, "packets", (Number(sendNs) / packets).toFixed(0), "ns/packet send", (Number(ansNs) / packets).toFixed(0), "ns/packet answers", bench.link.counters)
}
