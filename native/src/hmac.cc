// SHA-256, HMAC and HKDF-Expand.
#include "hmac.h"

#include <algorithm>
#include <cstring>

Hmac::Hmac(const EvpDigest& evp) : evp_(evp), context_(evp.newContext()) {}

Hmac::~Hmac() {
  if (context_ != nullptr) evp_.freeContext(context_);
  ForgetKey();
}

bool Hmac::Hash(const uint8_t* bytes, size_t length, uint8_t* out) {
  return Begin() && Update(bytes, length) && Finish(out);
}

bool Hmac::Sign(const uint8_t* key, size_t keyLength, const uint8_t* bytes, size_t length, uint8_t* out) {
  const bool done = SetKey(key, keyLength) && BeginInner() && Update(bytes, length) && FinishOuter(out);
  ForgetKey();
  return done;
}

// RFC 5869 §2.3: T(i) = HMAC(key, T(i - 1) | info | i), cut to `length`.
bool Hmac::Expand(const uint8_t* key, size_t keyLength, const uint8_t* info, size_t infoLength, uint8_t* out,
                  size_t length) {
  uint8_t block[kHashLength];
  uint8_t counter = 1;
  bool done = SetKey(key, keyLength);
  for (size_t written = 0; done && written < length; counter++) {
    done = BeginInner() && (counter == 1 || Update(block, kHashLength)) && Update(info, infoLength) &&
           Update(&counter, 1) && FinishOuter(block);
    const size_t taken = std::min(kHashLength, length - written);
    if (done) std::memcpy(out + written, block, taken);
    written += taken;
  }
  evp_.cleanse(block, kHashLength);
  ForgetKey();
  return done;
}

bool Hmac::Begin() {
  if (context_ == nullptr) return false;
  // The digest is looked up in OpenSSL's providers when it is named: once.
  if (evp_.begin(context_, knowsDigest_ ? nullptr : evp_.sha256(), nullptr) != 1) return false;
  knowsDigest_ = true;
  return true;
}

bool Hmac::Update(const uint8_t* bytes, size_t length) {
  return length == 0 || evp_.update(context_, bytes, length) == 1;
}

bool Hmac::Finish(uint8_t* out) {
  unsigned written = 0;
  return evp_.finish(context_, out, &written) == 1 && written == kHashLength;
}

// RFC 2104 §2: the key, hashed if it is longer than a block, xor the two pads.
bool Hmac::SetKey(const uint8_t* key, size_t length) {
  uint8_t hash[kHashLength];
  if (length > kBlockLength) {
    if (!Hash(key, length, hash)) return false;
    key = hash;
    length = kHashLength;
  }
  for (size_t i = 0; i < kBlockLength; i++) {
    const uint8_t byte = i < length ? key[i] : 0;
    inner_[i] = byte ^ 0x36;
    outer_[i] = byte ^ 0x5c;
  }
  evp_.cleanse(hash, kHashLength);
  return true;
}

bool Hmac::BeginInner() { return Begin() && Update(inner_, kBlockLength); }

bool Hmac::FinishOuter(uint8_t* out) {
  uint8_t hash[kHashLength];
  const bool done = Finish(hash) && Begin() && Update(outer_, kBlockLength) && Update(hash, kHashLength) && Finish(out);
  evp_.cleanse(hash, kHashLength);
  return done;
}

void Hmac::ForgetKey() {
  evp_.cleanse(inner_, kBlockLength);
  evp_.cleanse(outer_, kBlockLength);
}

namespace {

// RFC 5869 A.1: salt 00…0c, 22 times 0b, info f0…f9, and the 42 bytes that come of it.
constexpr uint8_t kExpanded[42] = {0x3c, 0xb2, 0x5f, 0x25, 0xfa, 0xac, 0xd5, 0x7a, 0x90, 0x43, 0x4f,
                                   0x64, 0xd0, 0x36, 0x2f, 0x2a, 0x2d, 0x2d, 0x0a, 0x90, 0xcf, 0x1a,
                                   0x5a, 0x4c, 0x5d, 0xb0, 0x2d, 0x56, 0xec, 0xc4, 0xc5, 0xbf, 0x34,
                                   0x00, 0x72, 0x08, 0xd5, 0xb8, 0x87, 0x18, 0x58, 0x65};

bool TryVector() {
  const EvpDigest* const evp = FindEvpDigest();
  if (evp == nullptr) return false;
  uint8_t salt[13];
  uint8_t material[22];
  uint8_t info[10];
  for (size_t i = 0; i < sizeof salt; i++) salt[i] = static_cast<uint8_t>(i);
  std::memset(material, 0x0b, sizeof material);
  for (size_t i = 0; i < sizeof info; i++) info[i] = static_cast<uint8_t>(0xf0 + i);
  Hmac hmac(*evp);
  uint8_t extracted[kHashLength];
  uint8_t expanded[sizeof kExpanded];
  return hmac.Sign(salt, sizeof salt, material, sizeof material, extracted) &&
         hmac.Expand(extracted, kHashLength, info, sizeof info, expanded, sizeof expanded) &&
         std::memcmp(expanded, kExpanded, sizeof kExpanded) == 0;
}

}  // namespace

bool HmacWorks() {
  static const bool works = TryVector();
  return works;
}
