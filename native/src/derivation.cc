// HKDF-SHA256 as JavaScript calls it (derivation.d.ts says what each function does): results go to the start of `out`.
#include "derivation.h"

#include "call_arguments.h"
#include "hmac.h"

namespace {

Hmac& HmacOf(const CallArguments& arguments) { return *static_cast<Hmac*>(arguments.data()); }

// Where a result of this length goes.
uint8_t* OutOf(CallArguments& arguments, size_t index, uint64_t length) {
  const Span<uint8_t> out = arguments.Bytes(index, "out");
  if (out.length < length) arguments.FailRange("out", "as long as the result");
  return out.data;
}

napi_value Finish(napi_env env, bool done) {
  if (!done) napi_throw_error(env, nullptr, "OpenSSL failed to hash");
  return nullptr;
}

// sha256(bytes, out)
napi_value Sha256(napi_env env, napi_callback_info info) {
  CallArguments arguments(env, info);
  const Span<uint8_t> bytes = arguments.Bytes(0, "bytes");
  uint8_t* const out = OutOf(arguments, 1, kHashLength);
  if (!arguments.ok()) return nullptr;
  return Finish(env, HmacOf(arguments).Hash(bytes.data, bytes.length, out));
}

// hmac(key, bytes, out)
napi_value Sign(napi_env env, napi_callback_info info) {
  CallArguments arguments(env, info);
  const Span<uint8_t> key = arguments.Bytes(0, "key");
  const Span<uint8_t> bytes = arguments.Bytes(1, "bytes");
  uint8_t* const out = OutOf(arguments, 2, kHashLength);
  if (!arguments.ok()) return nullptr;
  return Finish(env, HmacOf(arguments).Sign(key.data, key.length, bytes.data, bytes.length, out));
}

// expand(key, info, out, length)
napi_value Expand(napi_env env, napi_callback_info callback) {
  CallArguments arguments(env, callback);
  const Span<uint8_t> key = arguments.Bytes(0, "key");
  const Span<uint8_t> info = arguments.Bytes(1, "info");
  const uint64_t length = arguments.Whole(3, "length", kMostExpanded);
  uint8_t* const out = OutOf(arguments, 2, length);
  if (!arguments.ok()) return nullptr;
  return Finish(env, HmacOf(arguments).Expand(key.data, key.length, info.data, info.length, out, length));
}

}  // namespace

void InitDerivation(Napi::Env env, Napi::Object exports) {
  if (!HmacWorks()) return;
  auto* const hmac = new Hmac(*FindEvpDigest());
  napi_add_env_cleanup_hook(env, [](void* data) { delete static_cast<Hmac*>(data); }, hmac);
  Napi::Object derivation = Napi::Object::New(env);
  const napi_property_descriptor functions[] = {
      {"sha256", nullptr, Sha256, nullptr, nullptr, nullptr, napi_enumerable, hmac},
      {"hmac", nullptr, Sign, nullptr, nullptr, nullptr, napi_enumerable, hmac},
      {"expand", nullptr, Expand, nullptr, nullptr, nullptr, napi_enumerable, hmac},
  };
  napi_define_properties(env, derivation, sizeof functions / sizeof functions[0], functions);
  exports.Set("derivation", derivation);
}
