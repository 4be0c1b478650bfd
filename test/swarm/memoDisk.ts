import { makeMemoMemory, type MemoInMemory } from "@pure-link/store"
import { type Epoch, type Id64, type MemoPeer, type MemoRun, type ReceiverMemo, runPrefixOf } from "@pure-link/wire"

/**
 * A receiver's memo as it survives its process: lost, restored from a copy, of another machine, or on a disk that
 * refuses writes. It knows which of its runs it holds as its receiver last wanted them.
 */
export class MemoDisk implements ReceiverMemo {
  /** Whether the next write fails. */
  fails: () => boolean = () => false
  #memory = makeMemoMemory(capacity)
  /** What is not as it was last asked to be, or not there by intent: runs by their id, peers by their key. */
  readonly #unsure = new Set<Id64 | string>()
  readonly #peers = new Set<string>()
  #runs = new Map<Id64, MemoRun>()
  /** Runs that ended, or were lost: replays may begin them again, in epochs that their senders have long left. */
  readonly #forgotten = new Set<Id64>()
  /** A write was refused at some time. */
  #hasFailed = false

  recall(publicKey: Uint8Array): MemoPeer | undefined {
    return this.#memory.memo.recall(publicKey)
  }

  keepPeer(publicKey: Uint8Array, staticSecret: Uint8Array): boolean {
    const kept = !this.fails() && this.#memory.memo.keepPeer(publicKey, staticSecret)
    this.#peers.add(keyOf(publicKey))
    // What a receiver wants to keep of a peer that is not kept, it keeps to itself.
    if (!kept) for (const id of this.#runs.keys()) this.#unsure.add(id)
    return this.#tell(keyOf(publicKey), kept)
  }

  keepRun(publicKey: Uint8Array, run: MemoRun): boolean {
    const kept = !this.fails() && this.#memory.memo.keepRun(publicKey, run)
    if (kept) this.#runs.set(run.run, run)
    return this.#tell(run.run, kept)
  }

  forgetRun(publicKey: Uint8Array, run: Id64): void {
    this.#memory.memo.forgetRun(publicKey, run)
    this.#runs.delete(run)
    this.#unsure.add(run)
    this.#forgotten.add(run)
  }

  forgetPeer(publicKey: Uint8Array): void {
    this.#memory.memo.forgetPeer(publicKey)
  }

  /** A process opens the file, and reads it. */
  open(): void {
    this.#memory = this.#memory.copy()
  }

  /** The runs that it holds, each as its receiver last wanted it: a restarted receiver knows them all. */
  get current(): ReadonlyMap<Id64, MemoRun> {
    return new Map([...this.#runs].filter(([id]) => !this.#unsure.has(id)))
  }

  /** Whether it holds the peer's E0. */
  knowsPeer(publicKey: Uint8Array): boolean {
    return this.#peers.has(keyOf(publicKey)) && !this.#unsure.has(keyOf(publicKey))
  }

  /** How it holds a run; undefined when it does not, or when a write of it failed. */
  run(id: Id64): MemoRun | undefined {
    return this.#unsure.has(id) ? undefined : this.#runs.get(id)
  }

  /** How it holds the run of a prefix; "unsure" when a write of it, or of its peer, failed, or it was to go. */
  find(runPrefix: number): MemoRun | "unsure" | undefined {
    for (const what of this.#unsure) if (typeof what !== "string" && runPrefixOf(what) === runPrefix) return "unsure"
    for (const [id, run] of this.#runs) if (runPrefixOf(id) === runPrefix) return run
    return this.#hasFailed ? "unsure" : undefined
  }

  /** What is held of a run now and later is not what its sender knows. */
  doubt(run: Id64): void {
    this.#unsure.add(run)
    this.#forgotten.add(run)
  }

  /** Nothing is left of it: the file is gone, unreadable, or of another machine. */
  lose(): void {
    this.#replace(makeMemoMemory(capacity), new Map())
  }

  /** Copies it, for the returned function to put back. */
  backup(): () => void {
    const memory = this.#memory.copy()
    const runs = new Map(this.#runs)
    return () => this.#replace(memory.copy(), new Map(runs))
  }

  #replace(memory: MemoInMemory, runs: Map<Id64, MemoRun>): void {
    for (const id of [...this.#runs.keys(), ...runs.keys(), ...this.#peers]) this.#unsure.add(id)
    for (const id of this.#runs.keys()) this.#forgotten.add(id)
    this.#memory = memory
    this.#runs = runs
  }

  #tell(what: Id64 | string, kept: boolean): boolean {
    this.#hasFailed ||= !kept
    if (!kept || (typeof what === "bigint" && this.#forgotten.has(what))) this.#unsure.add(what)
    else this.#unsure.delete(what)
    return kept
  }
}

/** The epochs that a remembered run opens packets under. */
export const epochsOf = (run: MemoRun): ReadonlyArray<Epoch> =>
  [run.current, run.candidate].flatMap((epoch) => (epoch === undefined ? [] : [epoch.epoch]))

/** Small, as a world has one peer. */
const capacity = { peers: 4 }

const keyOf = (publicKey: Uint8Array) => Buffer.from(publicKey).toString("hex")
