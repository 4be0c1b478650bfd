import { enableCompileCache } from "node:module"
import { workerData } from "node:worker_threads"

/**
 * Starts a store's thread. In plain JavaScript, so that the cache of compiled code that the process uses, if it uses one,
 * is in use before the first file with types is read: compiling those takes half a second and 30 MiB for each thread.
 */
const { compileCache, program } = workerData
if (compileCache !== undefined) enableCompileCache(compileCache)
await import(program)
