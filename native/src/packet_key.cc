// AES-128-GCM on a packet in place.
#include "packet_key.h"

#include <cstdio>
#include <cstring>

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
// OpenSSL is not instrumented: what it is about to read and write is looked at here.
#define CHECK_ADDRESSES(start, length)                                             \
  if (const void* bad = __asan_region_is_poisoned(start, length); bad != nullptr) { \
    *static_cast<const volatile uint8_t*>(bad);                                     \
  }
#else
#define CHECK_ADDRESSES(start, length)
#endif

PacketKey::PacketKey(const Evp& evp, const uint8_t* material) : evp_(evp) { Take(material); }

PacketKey::~PacketKey() {
  if (sealing_ != nullptr) evp_.freeContext(sealing_);
  if (opening_ != nullptr) evp_.freeContext(opening_);
  evp_.cleanse(key_, kKeyLength);
  evp_.cleanse(iv_, kIvLength);
}

void PacketKey::Take(const uint8_t* material) {
  std::memcpy(key_, material, kKeyLength);
  std::memcpy(iv_, material + kKeyLength, kIvLength);
  std::memcpy(nonce_, iv_, kIvLength);
}

void PacketKey::Renew(const uint8_t* material) {
  Take(material);
  // A context that knows its cipher takes another key at a fraction of its first price; one that fails is made anew.
  if (sealing_ != nullptr && evp_.beginSealing(sealing_, nullptr, nullptr, key_, iv_) != 1) {
    evp_.freeContext(sealing_);
    sealing_ = nullptr;
  }
  if (opening_ != nullptr && evp_.beginOpening(opening_, nullptr, nullptr, key_, iv_) != 1) {
    evp_.freeContext(opening_);
    opening_ = nullptr;
  }
}

bool PacketKey::Seal(uint8_t* header, size_t headerLength, size_t bodyLength, uint64_t number) {
  CHECK_ADDRESSES(header, headerLength + bodyLength + kTagLength)
  if (sealing_ == nullptr && !PrepareSealing()) return false;
  WriteNonce(number);
  uint8_t* const body = header + headerLength;
  int written = 0;
  bool sealed = evp_.beginSealing(sealing_, nullptr, nullptr, nullptr, nonce_) == 1;
  if (headerLength > 0) {
    sealed = sealed && evp_.seal(sealing_, nullptr, &written, header, static_cast<int>(headerLength)) == 1;
  }
  if (bodyLength > 0) sealed = sealed && evp_.seal(sealing_, body, &written, body, static_cast<int>(bodyLength)) == 1;
  sealed = sealed && evp_.finishSealing(sealing_, body + bodyLength, &written) == 1;
  return sealed && evp_.control(sealing_, kGetTag, kTagLength, body + bodyLength) == 1;
}

bool PacketKey::Open(uint8_t* header, size_t headerLength, size_t bodyLength, uint64_t number) {
  CHECK_ADDRESSES(header, headerLength + bodyLength + kTagLength)
  if (opening_ == nullptr && !PrepareOpening()) return false;
  WriteNonce(number);
  uint8_t* const body = header + headerLength;
  uint8_t* const tag = body + bodyLength;
  const int length = static_cast<int>(bodyLength);
  uint8_t nothing[kTagLength];
  int written = 0;
  if (evp_.beginOpening(opening_, nullptr, nullptr, nullptr, nonce_) != 1) return false;
  if (headerLength > 0) {
    if (evp_.open(opening_, nullptr, &written, header, static_cast<int>(headerLength)) != 1) return false;
  }
  const bool applied = length > 0 && evp_.open(opening_, body, &written, body, length) == 1;
  if (length == 0 || applied) {
    if (evp_.control(opening_, kSetTag, kTagLength, tag) == 1 &&
        evp_.finishOpening(opening_, nothing, &written) == 1) {
      return true;
    }
  }
  // Forged, or sealed with another key, which the caller tries next: the same keystream again gives the bytes back.
  if (applied && evp_.beginOpening(opening_, nullptr, nullptr, nullptr, nonce_) == 1) {
    evp_.open(opening_, body, &written, body, length);
  }
  evp_.clearErrors();
  return false;
}

bool PacketKey::PrepareSealing() {
  sealing_ = evp_.newContext();
  return sealing_ != nullptr && evp_.beginSealing(sealing_, evp_.aes128Gcm(), nullptr, key_, iv_) == 1;
}

bool PacketKey::PrepareOpening() {
  opening_ = evp_.newContext();
  return opening_ != nullptr && evp_.beginOpening(opening_, evp_.aes128Gcm(), nullptr, key_, iv_) == 1;
}

void PacketKey::WriteNonce(uint64_t number) {
  for (size_t i = kIvLength; i > kIvLength - 8; number >>= 8) {
    i--;
    nonce_[i] = static_cast<uint8_t>(iv_[i] ^ (number & 0xff));
  }
}

namespace {

// The packet of RFC 9001 A.3 (an Initial of QUIC version 1), number 1: key and IV; header and body; and what it sealed is.
constexpr uint8_t kMaterial[kMaterialLength] = {
    0xcf, 0x3a, 0x53, 0x31, 0x65, 0x3c, 0x36, 0x4c, 0x88, 0xf0, 0xf3, 0x79, 0xb6, 0x06,
    0x7e, 0x37, 0x0a, 0xc1, 0x49, 0x3c, 0xa1, 0x90, 0x58, 0x53, 0xb0, 0xbb, 0xa0, 0x3e};
constexpr size_t kHeaderLength = 20;
constexpr size_t kPacketLength = 135;

const char* const kClear =
    "c1000000010008f067a5502a4262b50040750001"
    "02000000000600405a020000560303eefce7f7b37ba1d1632e96677825ddf73988cfc79825df566dc5430b9a045a1200"
    "130100002e00330024001d00209d3c940d89690b84d08a60993c144eca684d1081287c834d5311bcf32bb9da1a002b00020304";
const char* const kSealed =
    "c1000000010008f067a5502a4262b50040750001"
    "5a482cd0991cd25b0aac406a5816b6394100f37a1c69797554780bb38cc5a99f5ede4cf73c3ec2493a1839b3dbcba3f6"
    "ea46c5b7684df3548e7ddeb9c3bf9c73cc3f3bded74b562bfb19fb84022f8ef4cdd93795d77d06edbb7aaf2f58891850"
    "abbdca3d20398c276456cbc42158407dd074ee";

void FromHex(const char* hex, uint8_t* out) {
  for (; hex[0] != 0; hex += 2, out++) {
    unsigned value = 0;
    std::sscanf(hex, "%2x", &value);
    *out = static_cast<uint8_t>(value);
  }
}

const char* TryVector() {
  const char* missing = nullptr;
  const Evp* evp = FindEvp(&missing);
  if (evp == nullptr) return missing;
  constexpr size_t bodyLength = kPacketLength - kHeaderLength - kTagLength;
  uint8_t clear[kPacketLength] = {};
  uint8_t sealed[kPacketLength] = {};
  uint8_t packet[kPacketLength] = {};
  FromHex(kClear, clear);
  FromHex(kSealed, sealed);
  std::memcpy(packet, clear, kPacketLength);
  PacketKey key(*evp, kMaterial);
  if (!key.Seal(packet, kHeaderLength, bodyLength, 1) || std::memcmp(packet, sealed, kPacketLength) != 0) {
    return "sealing a known packet gave other bytes";
  }
  packet[kPacketLength - 1] ^= 1;
  if (key.Open(packet, kHeaderLength, bodyLength, 1)) return "a forged packet was opened";
  packet[kPacketLength - 1] ^= 1;
  if (std::memcmp(packet, sealed, kPacketLength) != 0) return "a refused packet was changed";
  if (!key.Open(packet, kHeaderLength, bodyLength, 1)) return "a known packet did not open";
  return std::memcmp(packet, clear, kPacketLength - kTagLength) == 0 ? nullptr : "opening gave other bytes";
}

}  // namespace

const char* AeadProblem() {
  static const char* const problem = TryVector();
  return problem;
}
