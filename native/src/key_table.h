// The packet keys of one environment, by handle: a slot and the generation of its key, in one number that JavaScript
// holds. A handle that was freed, or never given out, finds nothing, whatever has taken its slot since.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "packet_key.h"

class KeyTable {
 public:
  // Takes the key; 0 when the table is full.
  uint64_t Add(std::unique_ptr<PacketKey> key);
  PacketKey* Find(uint64_t handle) const;
  // False if there is no such key (any more).
  bool Remove(uint64_t handle);
  size_t Count() const { return slots_.size() - free_.size(); }

 private:
  static constexpr uint64_t kSlotBits = 20;  // a million keys; with 32 bits of generation a handle stays below 2^53
  static constexpr uint64_t kMostSlots = uint64_t{1} << kSlotBits;

  struct Slot {
    uint32_t generation = 1;
    std::unique_ptr<PacketKey> key;
  };
  std::vector<Slot> slots_;
  std::vector<uint32_t> free_;
};
