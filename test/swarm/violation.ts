/** A broken guarantee, or a world that does not come to its end: the world stops with it. */
export class Violation extends Error {}
