// The AEAD functions as JavaScript calls them (aead.d.ts says what each does). A call takes a whole train or table of
// packets. It first copies and checks every number that it will use, so that nothing is read or written out of bounds
// and a bad call changes nothing; then it runs over the packets.
#include "aead.h"

#include <memory>
#include <vector>

#include "call_arguments.h"
#include "key_table.h"

namespace {

constexpr size_t kLongest = 1 << 30;  // of a packet: lengths fit OpenSSL's int

struct Packet {
  uint8_t* header;
  size_t bodyLength;
  uint64_t number;
  size_t index;
};

// The state of one environment.
struct Aead {
  KeyTable keys;
  std::vector<Packet> packets;  // of the call under way
};

// What a key costs outside the JavaScript heap: the table's slot and a context of OpenSSL.
constexpr int64_t kKeyMemory = 1'500;

struct Owned {
  std::shared_ptr<Aead> aead;  // finalizers may run after the environment's own end
  uint64_t handle;
};

void FreeOwned(napi_env env, void* data, void*) {
  std::unique_ptr<Owned> owned(static_cast<Owned*>(data));
  owned->aead->keys.Remove(owned->handle);
  int64_t now = 0;
  napi_adjust_external_memory(env, -kKeyMemory, &now);
}

Aead& StateOf(const CallArguments& arguments) { return **static_cast<std::shared_ptr<Aead>*>(arguments.data()); }

PacketKey* KeyOf(CallArguments& arguments) {
  const uint64_t handle = arguments.Whole(0, "handle", kMostWhole);
  if (!arguments.ok()) return nullptr;
  PacketKey* const key = StateOf(arguments).keys.Find(handle);
  if (key == nullptr) arguments.FailRange("handle", "of a key that is not freed");
  return key;
}

// createKey(owner, material): handle
napi_value CreateKey(napi_env env, napi_callback_info info) {
  CallArguments arguments(env, info);
  napi_valuetype type = napi_undefined;
  if (arguments.Value(0) == nullptr || napi_typeof(env, arguments.Value(0), &type) != napi_ok || type != napi_object) {
    arguments.FailType("owner", "an object");
  }
  const Span<uint8_t> material = arguments.Bytes(1, "material");
  if (material.length != kMaterialLength) arguments.FailRange("material", "28 bytes");
  if (!arguments.ok()) return nullptr;

  auto& aead = *static_cast<std::shared_ptr<Aead>*>(arguments.data());
  const uint64_t handle = aead->keys.Add(std::make_unique<PacketKey>(*FindEvp(nullptr), material.data));
  if (handle == 0) {
    napi_throw_range_error(env, nullptr, "too many packet keys");
    return nullptr;
  }
  auto owned = std::make_unique<Owned>(Owned{aead, handle});
  if (napi_add_finalizer(env, arguments.Value(0), owned.get(), FreeOwned, nullptr, nullptr) != napi_ok) {
    aead->keys.Remove(handle);
    napi_throw_error(env, nullptr, "the key's owner takes no finalizer");
    return nullptr;
  }
  owned.release();
  int64_t now = 0;
  napi_adjust_external_memory(env, kKeyMemory, &now);
  napi_value result = nullptr;
  napi_create_double(env, static_cast<double>(handle), &result);
  return result;
}

// renewKey(handle, material)
napi_value RenewKey(napi_env env, napi_callback_info info) {
  CallArguments arguments(env, info);
  PacketKey* const key = KeyOf(arguments);
  const Span<uint8_t> material = arguments.Bytes(1, "material");
  if (material.length != kMaterialLength) arguments.FailRange("material", "28 bytes");
  if (arguments.ok()) key->Renew(material.data);
  return nullptr;
}

// freeKey(handle): boolean
napi_value FreeKey(napi_env env, napi_callback_info info) {
  CallArguments arguments(env, info);
  const uint64_t handle = arguments.Whole(0, "handle", kMostWhole);
  if (!arguments.ok()) return nullptr;
  napi_value result = nullptr;
  napi_get_boolean(env, StateOf(arguments).keys.Remove(handle), &result);
  return result;
}

// keyCount(): number
napi_value KeyCount(napi_env env, napi_callback_info info) {
  CallArguments arguments(env, info);
  napi_value result = nullptr;
  napi_create_double(env, static_cast<double>(StateOf(arguments).keys.Count()), &result);
  return result;
}

napi_value SealPackets(napi_env env, PacketKey& key, size_t headerLength, const Packet* packets, size_t count) {
  for (size_t i = 0; i < count; i++) {
    const Packet& packet = packets[i];
    if (!key.Seal(packet.header, headerLength, packet.bodyLength, packet.number)) {
      napi_throw_error(env, nullptr, "OpenSSL failed to seal a packet");
      break;
    }
  }
  return nullptr;
}

// seal(handle, bytes, start, bodyStart, bodyEnd, number)
napi_value Seal(napi_env env, napi_callback_info info) {
  CallArguments arguments(env, info);
  PacketKey* const key = KeyOf(arguments);
  const Span<uint8_t> bytes = arguments.Bytes(1, "bytes");
  const uint64_t start = arguments.Whole(2, "start", bytes.length);
  const uint64_t bodyStart = arguments.Whole(3, "bodyStart", bytes.length);
  const uint64_t bodyEnd = arguments.Whole(4, "bodyEnd", bytes.length);
  const uint64_t number = arguments.Whole(5, "number", kMostWhole);
  if (start > bodyStart || bodyStart > bodyEnd || bytes.length - bodyEnd < kTagLength || bodyEnd - start > kLongest) {
    arguments.FailRange("bytes", "a header, a body and room for the tag, in this order");
  }
  if (!arguments.ok()) return nullptr;
  const Packet packet{bytes.data + start, bodyEnd - bodyStart, number, 0};
  return SealPackets(env, *key, bodyStart - start, &packet, 1);
}

// open(handle, bytes, start, bodyStart, end, number): boolean
napi_value Open(napi_env env, napi_callback_info info) {
  CallArguments arguments(env, info);
  PacketKey* const key = KeyOf(arguments);
  const Span<uint8_t> bytes = arguments.Bytes(1, "bytes");
  const uint64_t start = arguments.Whole(2, "start", bytes.length);
  const uint64_t bodyStart = arguments.Whole(3, "bodyStart", bytes.length);
  const uint64_t end = arguments.Whole(4, "end", bytes.length);
  const uint64_t number = arguments.Whole(5, "number", kMostWhole);
  if (start > bodyStart || (end > start && end - start > kLongest)) {
    arguments.FailRange("bytes", "a header and a body, in this order");
  }
  if (!arguments.ok()) return nullptr;
  const bool opened = end >= bodyStart + kTagLength &&
                      key->Open(bytes.data + start, bodyStart - start, end - kTagLength - bodyStart, number);
  napi_value result = nullptr;
  napi_get_boolean(env, opened, &result);
  return result;
}

// sealTrain(handle, slab, stride, lengths, from, to, headerLength, first)
napi_value SealTrain(napi_env env, napi_callback_info info) {
  CallArguments arguments(env, info);
  PacketKey* const key = KeyOf(arguments);
  const Span<uint8_t> slab = arguments.Bytes(1, "slab");
  const uint64_t stride = arguments.Whole(2, "stride", kLongest);
  const Span<uint32_t> lengths = arguments.Uint32s(3, "lengths");
  const uint64_t from = arguments.Whole(4, "from", lengths.length);
  const uint64_t to = arguments.Whole(5, "to", lengths.length);
  const uint64_t headerLength = arguments.Whole(6, "headerLength", kLongest);
  const uint64_t first = arguments.Whole(7, "first", kMostWhole);
  if (from > to) arguments.FailRange("from", "at most to");
  if (!arguments.ok()) return nullptr;
  if (to > from && to - from - 1 > kMostWhole - first) {
    arguments.FailRange("first", "so that all numbers are below 2^53");
  }

  std::vector<Packet>& packets = StateOf(arguments).packets;
  packets.clear();
  for (uint64_t i = from; i < to && arguments.ok(); i++) {
    const uint64_t length = lengths.data[i];
    const uint64_t start = i * stride;  // below 2^32 · 2^30
    if (length > stride || length < headerLength + kTagLength || start > slab.length || slab.length - start < length) {
      arguments.FailRange("lengths", "of packets with room for a tag, each within its stride and the slab");
      break;
    }
    packets.push_back({slab.data + start, length - headerLength - kTagLength, first + (i - from), i});
  }
  if (!arguments.ok()) return nullptr;
  return SealPackets(env, *key, headerLength, packets.data(), packets.size());
}

// openAll(handle, bytes, starts, ends, numbers, opened, from, to, headerLength)
napi_value OpenAll(napi_env env, napi_callback_info info) {
  CallArguments arguments(env, info);
  PacketKey* const key = KeyOf(arguments);
  const Span<uint8_t> bytes = arguments.Bytes(1, "bytes");
  const Span<uint32_t> starts = arguments.Uint32s(2, "starts");
  const Span<uint32_t> ends = arguments.Uint32s(3, "ends");
  const Span<double> numbers = arguments.Doubles(4, "numbers");
  const Span<uint8_t> opened = arguments.Bytes(5, "opened");
  const uint64_t from = arguments.Whole(6, "from", opened.length);
  const uint64_t to = arguments.Whole(7, "to", opened.length);
  const uint64_t headerLength = arguments.Whole(8, "headerLength", kLongest);
  if (from > to) arguments.FailRange("from", "at most to");
  if (to > starts.length || to > ends.length || to > numbers.length) arguments.FailRange("to", "within every column");

  std::vector<Packet>& packets = StateOf(arguments).packets;
  packets.clear();
  for (uint64_t i = from; i < to && arguments.ok(); i++) {
    const uint64_t start = starts.data[i];
    const uint64_t end = ends.data[i];
    uint64_t number = 0;
    if (start > end || end > bytes.length || end - start > kLongest) {
      arguments.FailRange("starts and ends", "of packets within the bytes");
    } else if (!ToWhole(numbers.data[i], kMostWhole, &number)) {
      arguments.FailRange("numbers", "packet numbers");
    } else {
      const bool hasRoom = end - start >= headerLength + kTagLength;
      uint8_t* const header = hasRoom ? bytes.data + start : nullptr;
      packets.push_back({header, hasRoom ? end - start - headerLength - kTagLength : 0, number, i});
    }
  }
  if (!arguments.ok()) return nullptr;
  for (const Packet& packet : packets) {
    const bool isOpen =
        packet.header != nullptr && key->Open(packet.header, headerLength, packet.bodyLength, packet.number);
    opened.data[packet.index] = isOpen ? 1 : 0;
  }
  return nullptr;
}

}  // namespace

void InitAead(Napi::Env env, Napi::Object exports) {
  const char* const problem = AeadProblem();
  if (problem != nullptr) {
    exports.Set("aeadReason", Napi::String::New(env, problem));
    return;
  }
  Napi::Object aead = Napi::Object::New(env);
  aead.Set("opensslVersion", Napi::String::New(env, FindEvp(nullptr)->version(0)));
  // Held for the environment's whole life: its functions point at it, its finalizers share it.
  auto* const state = new std::shared_ptr<Aead>(std::make_shared<Aead>());
  napi_add_env_cleanup_hook(env, [](void* data) { delete static_cast<std::shared_ptr<Aead>*>(data); }, state);
  const napi_property_descriptor functions[] = {
      {"createKey", nullptr, CreateKey, nullptr, nullptr, nullptr, napi_enumerable, state},
      {"renewKey", nullptr, RenewKey, nullptr, nullptr, nullptr, napi_enumerable, state},
      {"freeKey", nullptr, FreeKey, nullptr, nullptr, nullptr, napi_enumerable, state},
      {"keyCount", nullptr, KeyCount, nullptr, nullptr, nullptr, napi_enumerable, state},
      {"seal", nullptr, Seal, nullptr, nullptr, nullptr, napi_enumerable, state},
      {"open", nullptr, Open, nullptr, nullptr, nullptr, napi_enumerable, state},
      {"sealTrain", nullptr, SealTrain, nullptr, nullptr, nullptr, napi_enumerable, state},
      {"openAll", nullptr, OpenAll, nullptr, nullptr, nullptr, napi_enumerable, state},
  };
  napi_define_properties(env, aead, sizeof functions / sizeof functions[0], functions);
  exports.Set("aead", aead);
}
