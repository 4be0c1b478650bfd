// One AES-128-GCM key with its IV, and a persistent context for each direction: a context has the key set once, and
// takes only a nonce per packet. The nonce is the IV xor the packet's number (RFC 8446 §5.3). Bounds are the caller's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "evp.h"

constexpr size_t kTagLength = 16;
constexpr size_t kKeyLength = 16;
constexpr size_t kIvLength = 12;
constexpr size_t kMaterialLength = kKeyLength + kIvLength;

class PacketKey {
 public:
  PacketKey(const Evp& evp, const uint8_t* material);
  ~PacketKey();
  PacketKey(const PacketKey&) = delete;
  PacketKey& operator=(const PacketKey&) = delete;

  // Another key from now on; the former one is overwritten, in the contexts too. Much cheaper than a new PacketKey.
  void Renew(const uint8_t* material);
  // Seals the body in place, after `header`, and writes the tag behind it. False only if OpenSSL itself fails.
  bool Seal(uint8_t* header, size_t headerLength, size_t bodyLength, uint64_t number);
  // Opens the body in place; false, and the bytes as they were, when the tag behind it does not verify.
  bool Open(uint8_t* header, size_t headerLength, size_t bodyLength, uint64_t number);

 private:
  void Take(const uint8_t* material);
  bool PrepareSealing();
  bool PrepareOpening();
  void WriteNonce(uint64_t number);

  const Evp& evp_;
  Evp::Context* sealing_ = nullptr;  // each made at its first use: most keys only seal or only open
  Evp::Context* opening_ = nullptr;
  uint8_t key_[kKeyLength];
  uint8_t iv_[kIvLength];
  uint8_t nonce_[kIvLength];
};

// Null if AEAD works in this process, else why it does not. Tries a published vector once.
const char* AeadProblem();
