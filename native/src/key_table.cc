// Slots are used again; their generation counts up with each key that leaves.
#include "key_table.h"

#include <utility>

uint64_t KeyTable::Add(std::unique_ptr<PacketKey> key) {
  if (free_.empty()) {
    if (slots_.size() == kMostSlots) return 0;
    free_.push_back(static_cast<uint32_t>(slots_.size()));
    slots_.emplace_back();
  }
  const uint32_t index = free_.back();
  free_.pop_back();
  slots_[index].key = std::move(key);
  return (uint64_t{slots_[index].generation} << kSlotBits) | index;
}

PacketKey* KeyTable::Find(uint64_t handle) const {
  const uint64_t index = handle & (kMostSlots - 1);
  if (index >= slots_.size() || slots_[index].generation != handle >> kSlotBits) return nullptr;
  return slots_[index].key.get();
}

bool KeyTable::Remove(uint64_t handle) {
  if (Find(handle) == nullptr) return false;
  const uint32_t index = static_cast<uint32_t>(handle & (kMostSlots - 1));
  slots_[index].key.reset();
  if (++slots_[index].generation == 0) slots_[index].generation = 1;
  free_.push_back(index);
  return true;
}
