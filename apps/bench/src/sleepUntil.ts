/** Waits until `performance.now()` has reached a time. */
export const sleepUntil = (at: number): Promise<void> =>
  new Promise((resolve) => setTimeout(resolve, Math.max(0, at - performance.now())))
