import { runPair } from "./src/pairRun.ts"
const size = Number(process.argv[2]),
  seconds = Number(process.argv[3] ?? 1.5),
  times = Number(process.argv[4] ?? 3)
for (let i = 0; i < times; i++) {
  const {
    reports: _,
    memory: _m,
    receive_allocation: _r,
    send_allocation: _s,
    send,
    receive,
    ...f
  } = await runPair({
    receiver: { role: "floor-recv", options: { size } },
    sender: (port) => ({ role: "floor-send", options: { size, port } }),
    window: { warmUpSeconds: 0.7, seconds },
    profile: process.argv[5] ? { folder: process.argv[5], name: "floor" } : undefined
  })
  console.log(
    JSON.stringify({
      ...f,
      calls: [send.per_send_call, send.per_receive_call, receive.per_send_call],
      rcv: receive.datagrams_received,
      user: [send.user_s, receive.user_s],
      sys: [send.sys_s, receive.sys_s],
      s: send.seconds
    })
  )
}
