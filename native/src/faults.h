// Exports `injectFault` and `clearFaults`: in the test build (PURE_LINK_FAULTS) alone.
#pragma once

#include <napi.h>

void InitFaults(Napi::Env env, Napi::Object exports);
