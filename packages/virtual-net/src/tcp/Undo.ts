/**
 * Whether a reduction was for nothing (Linux `tcp_may_undo`): nothing was sent again, or D-SACKs (RFC 3708) told that
 * every copy was needless, or an acknowledgement answers a timestamp from before the first copy (Eifel, RFC 3522), so
 * that the original arrived.
 */
export class Undo {
  /** Where the reduction's episode began: the first unacknowledged segment then; −1 when there is nothing to undo. */
  marker = -1
  /** Copies sent since then that no D-SACK has told of; −1 before the first. */
  copies = 0
  /** Timestamp of the first copy, 0 for none (`retrans_stamp`). */
  firstCopyAt = 0

  begin(unacknowledged: number, copiesUnderWay: number): void {
    this.marker = unacknowledged
    this.copies = copiesUnderWay > 0 ? copiesUnderWay : -1
  }

  end(): void {
    this.marker = -1
  }

  noteCopy(timestamp: number): void {
    if (this.firstCopyAt === 0) this.firstCopyAt = timestamp
    this.copies = Math.max(0, this.copies) + 1
  }

  /** A D-SACK told of `count` segments before `end`. */
  noteNeedless(end: number, count: number): void {
    if (this.marker >= 0 && this.copies > 0 && end > this.marker) this.copies = Math.max(0, this.copies - count)
  }

  /** Every copy was needless. */
  get allNeedless(): boolean {
    return this.marker >= 0 && this.copies === 0
  }

  /** The original was only late (`tcp_packet_delayed`); `echo` is the timestamp that the acknowledgement answers. */
  isDelayed(echo: number): boolean {
    return this.marker >= 0 && (this.firstCopyAt === 0 || (echo !== 0 && echo < this.firstCopyAt))
  }

  isDue(echo: number): boolean {
    return this.allNeedless || this.isDelayed(echo)
  }
}
