import { defineConfig } from "vitest/config"

/** One project per room, so that a failure names the room; `npx vitest run --project wire` runs one of them. */
const rooms = [
  "wire",
  "keys",
  "recovery",
  "trace",
  "sender",
  "receiver",
  "ports",
  "link",
  "udp",
  "store",
  "virtual-net"
]

export default defineConfig({
  test: {
    testTimeout: 30_000,
    projects: [
      ...rooms.map((name) => ({ test: { name, root: `packages/${name}`, include: ["{src,test}/**/*.test.ts"] } })),
      {
        test: { name: "pure-link", root: "apps/pure-link", include: ["{src,test}/**/*.test.ts"], testTimeout: 120_000 }
      },
      { test: { name: "native", root: "native", include: ["test/**/*.test.ts"] } },
      { test: { name: "sim", root: "apps/sim", include: ["src/**/*.test.ts"] } },
      { test: { name: "bench", root: "apps/bench", include: ["src/**/*.test.ts"] } },
      { test: { name: "whole", root: "test", include: ["**/*.test.ts"], testTimeout: 900_000, fileParallelism: false } }
    ]
  }
})
