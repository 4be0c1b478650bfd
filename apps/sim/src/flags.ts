/**
 * Every flag of `sim`, with its unit, bounds and default as a person reads them. `options.ts` reads the values.
 */

export const groups = ["Path", "Traffic", "Events", "Sender", "Output"] as const

interface Flag {
  readonly group: (typeof groups)[number]
  /** What its value is called; a flag without one takes none. */
  readonly value?: string
  readonly help: string
}

export const flagTable: Readonly<Record<string, Flag>> = {
  rate: { group: "Path", value: "MBIT/S", help: "of the bottleneck, forward: 0.01 to 100,000 (50)" },
  queue: { group: "Path", value: "BYTES", help: "of the drop-tail queue before it, on the wire (one RTT's worth)" },
  rtt: { group: "Path", value: "MS", help: "round trip without queue: 0.01 to 60,000 (20)" },
  jitter: { group: "Path", value: "MS", help: "uniform ± MS in both directions, so that packets overtake (0)" },
  loss: { group: "Path", value: "FRACTION", help: "random loss in both directions: 0 to 1 (0)" },
  "answer-loss": { group: "Path", value: "FRACTION", help: "another loss on the way back (as --loss)" },
  "loss-until": { group: "Path", value: "S", help: "random and burst loss end then (never)" },
  "burst-loss": {
    group: "Path",
    value: "ENTER:LEAVE:LOSS",
    help: "forward: a datagram enters the bad state, leaves it, is lost in it (Gilbert–Elliott)"
  },
  duplicate: { group: "Path", value: "FRACTION", help: "of datagrams that arrive twice, both directions (0)" },
  corrupt: { group: "Path", value: "FRACTION", help: "of datagrams with one bit flipped, both directions (0)" },
  displace: { group: "Path", value: "MS:FRACTION", help: "forward, a fraction of datagrams is held back by MS more" },

  size: { group: "Traffic", value: "BYTES", help: "of every record: 0 to 16,777,216 (1,013)" },
  records: { group: "Traffic", value: "COUNT", help: "of each flow; the run ends when all are stored (30,000)" },
  limit: { group: "Traffic", value: "S", help: "virtual time that a run of --records may take (3,600)" },
  seconds: { group: "Traffic", value: "S", help: "the run takes this long, records without end" },
  skip: { group: "Traffic", value: "S", help: "at the start, left out of goodput and share (0)" },
  every: { group: "Traffic", value: "MS", help: "rated mode: one record every MS, latency from append to inbox" },
  flows: {
    group: "Traffic",
    value: "COUNT",
    help: "outputs on nodes of their own through one bottleneck: 1 to 64 (1)"
  },
  tcp: { group: "Traffic", value: "COUNT", help: "TCP CUBIC flows beside them: 0 to 64 (0)" },
  join: { group: "Traffic", value: "S", help: "the TCP flows start then (0)" },

  "blackhole-at": {
    group: "Events",
    value: "S|growth[+S]",
    help: "larger datagrams vanish from then on; growth: when they grow"
  },
  "blackhole-mtu": { group: "Events", value: "BYTES", help: "UDP payload that still passes: 100 to 65,507 (1,300)" },
  "delay-step": { group: "Events", value: "AT:MS:FOR", help: "from AT s for FOR s the RTT is MS" },
  idle: {
    group: "Events",
    value: "AT:FOR",
    help: "at AT s nothing more is appended; FOR s after all is stored it goes on"
  },
  blackout: { group: "Events", value: "AT:FOR", help: "from AT s for FOR s nothing passes in either direction" },

  controller: { group: "Sender", value: "NAME", help: "cubic or newreno (cubic)" },
  "loss-detection": { group: "Sender", value: "NAME", help: "adaptive or fixed (RFC 9002's thresholds) (adaptive)" },
  "no-undo": { group: "Sender", help: "episodes whose losses all prove late stand" },
  tail: { group: "Sender", value: "NAME", help: "none or once: unused window carries copies (none)" },
  pacing: { group: "Sender", value: "NAME", help: "paced or unpaced (paced)" },
  "path-mtu": { group: "Sender", value: "NAME", help: "discovery or fixed (1,200 B) (discovery)" },
  "no-blackhole-detection": { group: "Sender", help: "datagrams grow and never shrink" },

  seed: { group: "Output", value: "NUMBER", help: "of everything random: 0 to 4,294,967,295 (1)" },
  json: { group: "Output", help: "one JSON object instead of text" },
  series: {
    group: "Output",
    value: "POINTS",
    help: "adds goodput, window and TCP over time to the JSON, up to 10,000 points"
  },
  trace: { group: "Output", value: "FILE", help: "writes every event of the senders and the receiver as JSON lines" },
  help: { group: "Output", help: "this text" }
}
