/**
 * Records as people and scripts see them: text where the bytes are text, else their length and first bytes.
 */
import * as Effect from "effect/Effect"

const decoder = new TextDecoder("utf-8", { fatal: true })
const shownCharacters = 200

const textOf = (bytes: Uint8Array): string | undefined => {
  try {
    return decoder.decode(bytes)
  } catch {
    return undefined
  }
}

/** One line. Control characters never reach a terminal. */
export const describeRecord = (bytes: Uint8Array): string => {
  const text = textOf(bytes.subarray(0, 4 * shownCharacters))
  // oxlint-disable-next-line no-control-regex -- finding them is the point
  if (text === undefined || /[\u0000-\u0008\u000b-\u001f\u007f]/.test(text)) {
    const hex = Buffer.from(bytes.subarray(0, 16)).toString("hex")
    return `${bytes.length} B: ${hex}${bytes.length > 16 ? "…" : ""}`
  }
  return text.length <= shownCharacters && bytes.length <= 4 * shownCharacters
    ? text
    : `${text.slice(0, shownCharacters)}… (${bytes.length} B)`
}

/** `{"text": …}`, or `{"base64": …}` when the bytes are no text. */
export const recordAsJson = (bytes: Uint8Array): { readonly text: string } | { readonly base64: string } => {
  const text = textOf(bytes)
  return text === undefined ? { base64: Buffer.from(bytes).toString("base64") } : { text }
}

/** The bytes and a newline; waits while standard output is full. */
export const writeRaw = (bytes: Uint8Array): Effect.Effect<void> =>
  Effect.callback<void>((resume) => {
    process.stdout.write(Buffer.concat([bytes, Buffer.of(10)]), () => resume(Effect.void))
  })
