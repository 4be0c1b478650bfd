// AES-128-GCM on packets in place, by key handle: exports an object `aead` of functions (see
// aead.d.ts), or, where this process cannot do it, a line `aeadReason`.
#pragma once

#include <napi.h>

void InitAead(Napi::Env env, Napi::Object exports);
