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

struct Lookup {
  Evp evp{};
  const char* missing = nullptr;

  template <typename Function>
  void Find(Function& function, const char* name) {
    function = IsHidden(name) ? nullptr : reinterpret_cast<Function>(dlsym(RTLD_DEFAULT, name));
    if (function == nullptr && missing == nullptr) missing = name;
  }

  Lookup() {
    Find(evp.aes128Gcm, "EVP_aes_128_gcm");
    Find(evp.newContext, "EVP_CIPHER_CTX_new");
    Find(evp.freeContext, "EVP_CIPHER_CTX_free");
    Find(evp.control, "EVP_CIPHER_CTX_ctrl");
    Find(evp.beginSealing, "EVP_EncryptInit_ex");
    Find(evp.seal, "EVP_EncryptUpdate");
    Find(evp.finishSealing, "EVP_EncryptFinal_ex");
    Find(evp.beginOpening, "EVP_DecryptInit_ex");
    Find(evp.open, "EVP_DecryptUpdate");
    Find(evp.finishOpening, "EVP_DecryptFinal_ex");
    Find(evp.clearErrors, "ERR_clear_error");
    Find(evp.cleanse, "OPENSSL_cleanse");
    Find(evp.version, "OpenSSL_version");
  }
};

}  // namespace

const Evp* FindEvp(const char** missing) {
  static const Lookup lookup;  // thread-safe: workers load the addon too
  if (missing != nullptr) *missing = lookup.missing;
  return lookup.missing == nullptr ? &lookup.evp : nullptr;
}
