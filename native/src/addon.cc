// The addon's door: hangs the functions of each part on the exports of one environment (the main thread or a worker).
// A part keeps its state per environment and knows nothing of the others.
#include "addon.h"

#include <napi.h>

#include "aead.h"
#include "derivation.h"
#include "socket.h"
#include "timer.h"

static Napi::Object Init(Napi::Env env, Napi::Object exports) {
  exports.Set("interfaceVersion", Napi::Number::New(env, kInterfaceVersion));
  InitAead(env, exports);
  InitDerivation(env, exports);
  InitSocket(env, exports);
  InitTimer(env, exports);
  return exports;
}

NODE_API_MODULE(pure_link, Init)
