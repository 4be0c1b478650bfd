// Looks the EVP functions up once per process.
#include "evp.h"

#include <dlfcn.h>

#include <cstdlib>
#include <cstring>

namespace {

// Tests try out a node that does not export a function.
bool IsHidden([[maybe_unused]] const char* name) {
#ifdef PURE_LINK_FAULTS
  const char* const hidden = std::getenv("PURE_LINK_HIDDEN_SYMBOL");
  return hidden != nullptr && std::strcmp(hidden, name) == 0;
#else
  return false;
#endif
}

// Finds functions by name, and remembers the first that is missing.
class Finder {
 public:
  template <typename Function>
  void Find(Function& function, const char* name) {
    function = IsHidden(name) ? nullptr : reinterpret_cast<Function>(dlsym(RTLD_DEFAULT, name));
    if (function == nullptr && missing_ == nullptr) missing_ = name;
  }
  const char* missing() const { return missing_; }

 private:
  const char* missing_ = nullptr;
};

struct Lookup {
  Evp evp{};
  Finder finder;

  Lookup() {
    finder.Find(evp.aes128Gcm, "EVP_aes_128_gcm");
    finder.Find(evp.newContext, "EVP_CIPHER_CTX_new");
    finder.Find(evp.freeContext, "EVP_CIPHER_CTX_free");
    finder.Find(evp.control, "EVP_CIPHER_CTX_ctrl");
    finder.Find(evp.beginSealing, "EVP_EncryptInit_ex");
    finder.Find(evp.seal, "EVP_EncryptUpdate");
    finder.Find(evp.finishSealing, "EVP_EncryptFinal_ex");
    finder.Find(evp.beginOpening, "EVP_DecryptInit_ex");
    finder.Find(evp.open, "EVP_DecryptUpdate");
    finder.Find(evp.finishOpening, "EVP_DecryptFinal_ex");
    finder.Find(evp.clearErrors, "ERR_clear_error");
    finder.Find(evp.cleanse, "OPENSSL_cleanse");
    finder.Find(evp.version, "OpenSSL_version");
  }
};

struct DigestLookup {
  EvpDigest evp{};
  Finder finder;

  DigestLookup() {
    finder.Find(evp.sha256, "EVP_sha256");
    finder.Find(evp.newContext, "EVP_MD_CTX_new");
    finder.Find(evp.freeContext, "EVP_MD_CTX_free");
    finder.Find(evp.begin, "EVP_DigestInit_ex");
    finder.Find(evp.update, "EVP_DigestUpdate");
    finder.Find(evp.finish, "EVP_DigestFinal_ex");
    finder.Find(evp.cleanse, "OPENSSL_cleanse");
  }
};

}  // namespace

const Evp* FindEvp(const char** missing) {
  static const Lookup lookup;  // thread-safe: workers load the addon too
  if (missing != nullptr) *missing = lookup.finder.missing();
  return lookup.finder.missing() == nullptr ? &lookup.evp : nullptr;
}

const EvpDigest* FindEvpDigest() {
  static const DigestLookup lookup;
  return lookup.finder.missing() == nullptr ? &lookup.evp : nullptr;
}
