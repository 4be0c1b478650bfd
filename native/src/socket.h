// Exports the class Socket, and `encodePeer(host, port, local?)`.
#pragma once

#include <napi.h>

void InitSocket(Napi::Env env, Napi::Object exports);
