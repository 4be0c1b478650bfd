// Across the border to JS: arguments are read without trusting them, and callbacks are called from the loop, where what they
// throw is an uncaught exception and where the environment may just be ending.
#pragma once

#include <napi.h>

#include <cstdint>

template <typename T>
struct View {
  T* data = nullptr;
  size_t length = 0;
};

template <typename T>
bool ReadView(napi_env env, napi_value value, napi_typedarray_type wanted, View<T>* view) {
  napi_typedarray_type type;
  void* data = nullptr;
  if (napi_get_typedarray_info(env, value, &type, &view->length, &data, nullptr, nullptr) != napi_ok) return false;
  if (type != wanted || data == nullptr) return false;
  view->data = static_cast<T*>(data);
  return true;
}

// A whole number from `least` to `most`.
inline bool ReadNumber(napi_env env, napi_value value, double least, double most, double* out) {
  if (napi_get_value_double(env, value, out) != napi_ok) return false;
  return *out >= least && *out <= most && *out == static_cast<double>(static_cast<int64_t>(*out));
}

inline bool ReadNamedNumber(const Napi::Object& object, const char* name, double least, double most, double* out) {
  return ReadNumber(object.Env(), object.Get(name), least, most, out);
}

inline Napi::Value Refuse(Napi::Env env, const char* what) {
  if (!env.IsExceptionPending()) Napi::TypeError::New(env, what).ThrowAsJavaScriptException();
  return env.Undefined();
}

// Without node-addon-api's exceptions: they insist on JS that runs, and a terminated worker has none.
inline void CallFromLoop(napi_env env, napi_value self, napi_value callback, int32_t argument) {
  napi_value value;
  napi_value result;
  if (napi_create_int32(env, argument, &value) != napi_ok) return;
  if (napi_make_callback(env, nullptr, self, callback, 1, &value, &result) != napi_pending_exception) return;
  napi_value error;
  if (napi_get_and_clear_last_exception(env, &error) == napi_ok) napi_fatal_exception(env, error);
}
