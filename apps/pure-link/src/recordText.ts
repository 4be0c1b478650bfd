/**
 * Records as people and scripts see them: text where the bytes are text, else their length and first bytes.
 */

const shownCharacters = 200
const options = { fatal: true, ignoreBOM: true } as const

const textOf = (bytes: Uint8Array, isWhole: boolean): string | undefined => {
  try {
    return new TextDecoder("utf-8", options).decode(bytes, { stream: !isWhole })
  } catch {
    return undefined
  }
}

/** Characters that no text has: what is not white space among the controls. */
// oxlint-disable-next-line no-control-regex -- finding them is the point
const binary = /[\u0000-\u0008\u000e-\u001a\u001c-\u001f]/

/** One line, without what `print` makes visible. */
export const describeRecord = (bytes: Uint8Array): string => {
  const isWhole = bytes.length <= 4 * shownCharacters
  const text = textOf(isWhole ? bytes : bytes.subarray(0, 4 * shownCharacters), isWhole)
  if (text === undefined || binary.test(text)) {
    const hex = Buffer.from(bytes.subarray(0, 16)).toString("hex")
    return `${bytes.length} B: ${hex}${bytes.length > 16 ? "…" : ""}`
  }
  return isWhole && text.length <= shownCharacters ? text : `${text.slice(0, shownCharacters)}… (${bytes.length} B)`
}

/** `{"text": …}`, or `{"base64": …}` when the bytes are no text. */
export const recordAsJson = (bytes: Uint8Array): { readonly text: string } | { readonly base64: string } => {
  const text = textOf(bytes, true)
  return text === undefined ? { base64: Buffer.from(bytes).toString("base64") } : { text }
}
