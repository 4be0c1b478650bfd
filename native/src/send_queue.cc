// A datagram stands in one piece: where the end of the ring is too short for it, the ring goes on at its beginning.
#include "send_queue.h"

bool SendQueue::FindRoom(size_t length, size_t* start) const {
  const size_t room = RoomFor(length);
  *start = 0;
  if (count_ == 0) return room <= capacity_;
  const Entry& oldest = entries_[head_];
  const Entry& newest = entries_[(head_ + count_ - 1) % slots_];
  const size_t end = newest.start + RoomFor(newest.length);
  const bool isWrapped = end <= oldest.start;
  if (!isWrapped && end + room > capacity_) return room <= oldest.start;
  *start = end;
  return end + room <= (isWrapped ? oldest.start : capacity_);
}

bool SendQueue::Push(const void* bytes, size_t length, const Peer& to) {
  size_t start;
  if (count_ == slots_ || !FindRoom(length, &start)) return false;
  if (bytes_ == nullptr) {
    bytes_ = std::make_unique<uint8_t[]>(capacity_);
    entries_ = std::make_unique<Entry[]>(slots_);
  }
  memcpy(bytes_.get() + start, bytes, length);
  entries_[(head_ + count_++) % slots_] = {start, length, to};
  return true;
}

size_t SendQueue::Front(iovec* out, size_t most, Peer* to) const {
  size_t found = 0;
  for (; found < most && found < count_; found++) {
    const Entry& entry = entries_[(head_ + found) % slots_];
    if (found == 0) *to = entry.to;
    else if (!(entry.to == *to)) break;
    out[found] = {bytes_.get() + entry.start, entry.length};
  }
  return found;
}

void SendQueue::Pop(size_t count) {
  head_ = (head_ + count) % slots_;
  count_ -= count;
}
