/** A thread that seals and opens with keys of its own until it is told to end; it never waits for anything else. */
import { load } from "@pure-link/native"
import { ok as assert } from "node:assert/strict"
import { parentPort } from "node:worker_threads"

const aead = load().addon!.aead!
const bytes = new Uint8Array(1_452)
const owners: Array<object> = []
let number = 0

const work = (): void => {
  const owner = {}
  if (owners.length < 100) owners.push(owner)
  const key = aead.createKey(owner, new Uint8Array(28).fill(owners.length))
  for (let i = 0; i < 50; i++) {
    aead.seal(key, bytes, 0, 12, 1_436, ++number)
    assert(aead.open(key, bytes, 0, 12, 1_452, number))
  }
  if (number % 3 === 0) aead.freeKey(key)
  if (number === 500) parentPort!.postMessage("working")
  next = setImmediate(work)
}

let next = setImmediate(work)
parentPort!.once("message", () => clearImmediate(next))
