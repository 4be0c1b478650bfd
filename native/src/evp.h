// The few functions of OpenSSL's EVP interface that packets and their keys need, looked up by name in the running process: node
// exports its own OpenSSL, which is no promise of N-API. Where one is missing there is a reason instead, and the caller
// does without native AEAD. They are declared here because the names are all that is relied on: no header, no linking.
#pragma once

struct evp_cipher_st;
struct evp_cipher_ctx_st;
struct evp_md_st;
struct evp_md_ctx_st;

struct Evp {
  using Cipher = const evp_cipher_st;
  using Context = evp_cipher_ctx_st;

  Cipher* (*aes128Gcm)();
  Context* (*newContext)();
  void (*freeContext)(Context*);
  int (*control)(Context*, int type, int argument, void* pointer);
  int (*beginSealing)(Context*, Cipher*, void* engine, const unsigned char* key, const unsigned char* nonce);
  int (*seal)(Context*, unsigned char* out, int* outLength, const unsigned char* in, int length);
  int (*finishSealing)(Context*, unsigned char* out, int* outLength);
  int (*beginOpening)(Context*, Cipher*, void* engine, const unsigned char* key, const unsigned char* nonce);
  int (*open)(Context*, unsigned char* out, int* outLength, const unsigned char* in, int length);
  int (*finishOpening)(Context*, unsigned char* out, int* outLength);
  void (*clearErrors)();
  void (*cleanse)(void*, unsigned long length);
  const char* (*version)(int type);
};

// EVP_CTRL_AEAD_GET_TAG and EVP_CTRL_AEAD_SET_TAG.
constexpr int kGetTag = 0x10;
constexpr int kSetTag = 0x11;

// The functions of this process; null when one is missing, and then `missing` names it.
const Evp* FindEvp(const char** missing);

// What SHA-256 needs, looked up apart from the above: a node without it still encrypts natively.
struct EvpDigest {
  using Digest = const evp_md_st;
  using Context = evp_md_ctx_st;

  Digest* (*sha256)();
  Context* (*newContext)();
  void (*freeContext)(Context*);
  int (*begin)(Context*, Digest*, void* engine);
  int (*update)(Context*, const void* bytes, unsigned long length);
  int (*finish)(Context*, unsigned char* out, unsigned* outLength);
  void (*cleanse)(void*, unsigned long length);
};

const EvpDigest* FindEvpDigest();
