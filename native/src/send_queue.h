// Sealed datagrams that wait for room in the kernel's send buffer, in order, in one ring of bounded bytes that is allocated
// when it is first needed.
#pragma once

#include <sys/uio.h>

#include <cstddef>
#include <memory>

#include "address.h"

class SendQueue {
 public:
  explicit SendQueue(size_t bytes) : capacity_(bytes), slots_(bytes / kBytesPerSlot + 1) {}

  bool IsEmpty() const { return count_ == 0; }
  size_t Count() const { return count_; }
  // False if there is no room.
  bool Push(const void* bytes, size_t length, const Peer& to);
  // The oldest datagrams that go to one destination, at most `most`.
  size_t Front(iovec* out, size_t most, Peer* to) const;
  void Pop(size_t count);

 private:
  struct Entry {
    size_t start;
    size_t length;
    Peer to;
  };
  static constexpr size_t kBytesPerSlot = 256;
  // One byte more than it is long: so that each has a place of its own, empty ones too.
  static size_t RoomFor(size_t length) { return length + 1; }
  bool FindRoom(size_t length, size_t* start) const;

  size_t capacity_;
  size_t slots_;
  std::unique_ptr<uint8_t[]> bytes_;
  std::unique_ptr<Entry[]> entries_;
  size_t head_ = 0;
  size_t count_ = 0;
};
