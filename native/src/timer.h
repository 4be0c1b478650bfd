// Exports the class Timer.
#pragma once

#include <napi.h>

void InitTimer(Napi::Env env, Napi::Object exports);
