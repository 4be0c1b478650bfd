// See call_arguments.h.
#include "call_arguments.h"

#include <cstdio>

CallArguments::CallArguments(napi_env env, napi_callback_info info) : env_(env) {
  ok_ = napi_get_cb_info(env, info, &count_, values_, nullptr, &data_) == napi_ok;
  if (count_ > kMost) count_ = kMost;
}

uint64_t CallArguments::Whole(size_t index, const char* name, uint64_t most) {
  if (!ok_) return 0;
  double value = 0;
  uint64_t whole = 0;
  if (index >= count_ || napi_get_value_double(env_, values_[index], &value) != napi_ok) {
    FailType(name, "a number");
  } else if (!ToWhole(value, most, &whole)) {
    FailRange(name, "a whole number within its bounds");
  }
  return ok_ ? whole : 0;
}

Span<uint8_t> CallArguments::Bytes(size_t index, const char* name) {
  Span<uint8_t> span;
  span.data = static_cast<uint8_t*>(TypedArray(index, name, napi_uint8_array, "a Uint8Array", &span.length));
  return span;
}

Span<uint32_t> CallArguments::Uint32s(size_t index, const char* name) {
  Span<uint32_t> span;
  span.data = static_cast<uint32_t*>(TypedArray(index, name, napi_uint32_array, "a Uint32Array", &span.length));
  return span;
}

Span<double> CallArguments::Doubles(size_t index, const char* name) {
  Span<double> span;
  span.data = static_cast<double*>(TypedArray(index, name, napi_float64_array, "a Float64Array", &span.length));
  return span;
}

void* CallArguments::TypedArray(size_t index, const char* name, napi_typedarray_type wanted, const char* typeName,
                            size_t* length) {
  if (!ok_) return nullptr;
  bool is = false;
  napi_typedarray_type type = napi_int8_array;
  void* data = nullptr;
  if (index >= count_ || napi_is_typedarray(env_, values_[index], &is) != napi_ok || !is ||
      napi_get_typedarray_info(env_, values_[index], &type, length, &data, nullptr, nullptr) != napi_ok ||
      type != wanted) {
    FailType(name, typeName);
    *length = 0;
    return nullptr;
  }
  if (data == nullptr) *length = 0;  // detached
  return data;
}

void CallArguments::FailType(const char* name, const char* wanted) {
  if (!ok_) return;
  ok_ = false;
  char message[120];
  std::snprintf(message, sizeof message, "%s must be %s", name, wanted);
  napi_throw_type_error(env_, nullptr, message);
}

void CallArguments::FailRange(const char* name, const char* wanted) {
  if (!ok_) return;
  ok_ = false;
  char message[120];
  std::snprintf(message, sizeof message, "%s must be %s", name, wanted);
  napi_throw_range_error(env_, nullptr, message);
}
