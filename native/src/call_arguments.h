// Reads the arguments of one call from JavaScript, whatever they are: each accessor checks type and range, and the
// first that fails throws a TypeError or RangeError in JavaScript and makes `ok()` false; the rest then return empty
// values. Typed arrays may overlap and may be shared with other threads: read an element once, check it, use that copy.
#pragma once

#include <node_api.h>

#include <cstddef>
#include <cstdint>

template <typename Element>
struct Span {
  Element* data = nullptr;
  size_t length = 0;
};

class CallArguments {
 public:
  CallArguments(napi_env env, napi_callback_info info);

  bool ok() const { return ok_; }
  // What the function was registered with.
  void* data() const { return data_; }
  napi_value Value(size_t index) const { return index < count_ ? values_[index] : nullptr; }

  // A whole number from 0 to `most`.
  uint64_t Whole(size_t index, const char* name, uint64_t most);
  Span<uint8_t> Bytes(size_t index, const char* name);
  Span<uint32_t> Uint32s(size_t index, const char* name);
  Span<double> Doubles(size_t index, const char* name);

  void FailType(const char* name, const char* wanted);
  void FailRange(const char* name, const char* wanted);

 private:
  void* TypedArray(size_t index, const char* name, napi_typedarray_type wanted, const char* typeName, size_t* length);

  static constexpr size_t kMost = 10;
  napi_env env_;
  bool ok_ = true;
  size_t count_ = kMost;
  void* data_ = nullptr;
  napi_value values_[kMost];
};

constexpr uint64_t kMostWhole = (uint64_t{1} << 53) - 1;

// True, and the number in `whole`, if `value` is a whole number from 0 to `most`.
inline bool ToWhole(double value, uint64_t most, uint64_t* whole) {
  if (!(value >= 0 && value <= 9007199254740991.0)) return false;  // NaN too
  *whole = static_cast<uint64_t>(value);
  return static_cast<double>(*whole) == value && *whole <= most;
}
