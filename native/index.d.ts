/** The addon as index.js loads it: each part of it has its types in a file of its own. */
import type { AeadAddon } from "./aead.d.ts"
import type { DerivationAddon } from "./derivation.d.ts"
import type { SocketAddon } from "./socket.d.ts"

export type * from "./aead.d.ts"
export type * from "./derivation.d.ts"
export type * from "./socket.d.ts"

/** What the binary exports. It knows datagrams and key handles, and no word of the protocol. */
export interface Addon extends AeadAddon, DerivationAddon, SocketAddon {
  readonly interfaceVersion: number
}

export type Loaded =
  | { readonly addon: Addon; readonly path: string; readonly reason?: undefined }
  | { readonly addon?: undefined; readonly path?: undefined; readonly reason: string }

/** The addon, or one line that says why this process has none. The first answer stays. */
export declare const load: () => Loaded
