export { DatagramSocketNode, type NodeDatagramOptions } from "./DatagramSocketNode.ts"
export * from "./endpoint.ts"
