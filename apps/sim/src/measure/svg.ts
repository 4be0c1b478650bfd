/**
 * Small plots as SVG text: lines over time, and horizontal bars against their marks. Numbers are rounded, so that the
 * same data gives the same bytes. The style sheet follows the reader's light or dark colours.
 */

export interface Line {
  readonly name: string
  readonly points: ReadonlyArray<readonly [number, number]>
}

export interface Bar {
  readonly name: string
  readonly value: number
  readonly low: number
  readonly high: number
  /** What must be reached. */
  readonly mark: number
}

const width = 760
const margin = { left: 64, right: 16, top: 36, bottom: 40 }
const colours = ["#2f6fde", "#d9822b", "#3f9c56"] as const

const style = `<style>
text { font: 12px system-ui, sans-serif; fill: #333 } .title { font-weight: 600 } .axis { stroke: #888; fill: none }
.grid { stroke: #8884 }
.bar { fill: ${colours[0]}; fill-opacity: 0.75 } .mark { stroke: #c22; stroke-width: 2 } .range { stroke: #333 }
@media (prefers-color-scheme: dark) { text { fill: #ddd } .range { stroke: #ddd } }
</style>`

const document = (height: number, title: string, parts: ReadonlyArray<string>): string =>
  [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" role="img"`,
    `  aria-label="${escaped(title)}">`,
    style,
    text(margin.left, 20, title, "start", "title"),
    ...parts,
    "</svg>",
    ""
  ].join("\n")

/** Lines over a common axis of seconds. */
export const linePlot = (title: string, unit: string, top: number, lines: ReadonlyArray<Line>): string => {
  const height = 280
  const end = Math.max(...lines.flatMap(({ points }) => points.map(([seconds]) => seconds)))
  const x = (seconds: number) => margin.left + (seconds / end) * (width - margin.left - margin.right)
  const y = (value: number) => height - margin.bottom - (value / top) * (height - margin.top - margin.bottom)
  const across = `x1="${margin.left}" x2="${width - margin.right}"`
  const grid = [0, 0.25, 0.5, 0.75, 1].flatMap((part) => [
    `<line class="grid" ${across} y1="${n(y(part * top))}" y2="${n(y(part * top))}"/>`,
    text(margin.left - 6, y(part * top) + 4, String(Number((part * top).toPrecision(4))), "end")
  ])
  const ticks = [0, 0.25, 0.5, 0.75, 1].map((part) =>
    text(x(part * end), height - margin.bottom + 18, `${Number((part * end).toPrecision(3))} s`, "middle")
  )
  const drawn = lines.map(({ points }, i) => {
    const path = points.map(([seconds, value]) => `${n(x(seconds))},${n(y(Math.min(value, top)))}`).join(" ")
    return `<polyline fill="none" stroke="${colours[i % 3]!}" stroke-width="1.5" points="${path}"/>`
  })
  const legend = lines.map(({ name }, i) => {
    const at = margin.left + 8 + i * 160
    const swatch = `<rect x="${at}" y="${height - 12}" width="10" height="4" fill="${colours[i % 3]!}"/>`
    return `${swatch}${text(at + 16, height - 6, name, "start")}`
  })
  return document(height, `${title}, ${unit}`, [...grid, ...ticks, ...drawn, ...legend])
}

/** Horizontal bars: the value, the range of the seeds, and the mark to be reached. */
export const barPlot = (title: string, bars: ReadonlyArray<Bar>): string => {
  const left = 220
  const step = 24
  const height = margin.top + bars.length * step + 16
  const top = Math.max(...bars.flatMap(({ high, mark }) => [high, mark])) * 1.08
  const x = (value: number) => left + (value / top) * (width - left - 70)
  const drawn = bars.flatMap(({ high, low, mark, name, value }, i) => {
    const y = margin.top + i * step
    return [
      text(left - 8, y + 13, name, "end"),
      `<rect class="bar" x="${left}" y="${y + 3}" width="${n(x(value) - left)}" height="13"/>`,
      `<line class="range" x1="${n(x(low))}" x2="${n(x(high))}" y1="${y + 9.5}" y2="${y + 9.5}"/>`,
      `<line class="mark" x1="${n(x(mark))}" x2="${n(x(mark))}" y1="${y}" y2="${y + 19}"/>`,
      text(x(Math.max(high, mark)) + 6, y + 14, value.toPrecision(4), "start")
    ]
  })
  return document(height, title, drawn)
}

const text = (x: number, y: number, content: string, anchor: "start" | "middle" | "end", kind?: string): string => {
  const of = kind === undefined ? "" : ` class="${kind}"`
  return `<text${of} x="${n(x)}" y="${n(y)}" text-anchor="${anchor}">${escaped(content)}</text>`
}

const n = (value: number): string => String(Number(value.toFixed(1)))

const escaped = (value: string): string =>
  value.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll('"', "&quot;")
