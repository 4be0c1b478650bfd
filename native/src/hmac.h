// SHA-256, HMAC (RFC 2104) and HKDF-Expand (RFC 5869) in one context of OpenSSL that is used again for each, so that
// a key that is derived for a single packet costs a microsecond rather than fifty. Bounds are the caller's.
#pragma once

#include <cstddef>
#include <cstdint>

#include "evp.h"

constexpr size_t kHashLength = 32;
constexpr size_t kMostExpanded = 255 * kHashLength;

class Hmac {
 public:
  explicit Hmac(const EvpDigest& evp);
  ~Hmac();
  Hmac(const Hmac&) = delete;
  Hmac& operator=(const Hmac&) = delete;

  // Each is false only if OpenSSL itself fails.
  bool Hash(const uint8_t* bytes, size_t length, uint8_t* out);
  bool Sign(const uint8_t* key, size_t keyLength, const uint8_t* bytes, size_t length, uint8_t* out);
  bool Expand(const uint8_t* key, size_t keyLength, const uint8_t* info, size_t infoLength, uint8_t* out, size_t length);

 private:
  static constexpr size_t kBlockLength = 64;

  bool Begin();
  bool Update(const uint8_t* bytes, size_t length);
  bool Finish(uint8_t* out);
  bool SetKey(const uint8_t* key, size_t length);
  bool BeginInner();
  bool FinishOuter(uint8_t* out);
  void ForgetKey();

  const EvpDigest& evp_;
  EvpDigest::Context* context_;
  bool knowsDigest_ = false;
  uint8_t inner_[kBlockLength];
  uint8_t outer_[kBlockLength];
};

// Whether HKDF works in this process; tries a published vector once.
bool HmacWorks();
