// HKDF-SHA256: exports an object `derivation` of functions (see derivation.d.ts), where this process can do it.
#pragma once

#include <napi.h>

void InitDerivation(Napi::Env env, Napi::Object exports);
