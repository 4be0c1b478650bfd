export { startTcpFlow, type TcpCounters, TcpFlow, type TcpFlowOptions, type TcpGround } from "./TcpFlow.ts"
