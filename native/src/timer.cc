// Wake-ups finer than the millisecond of Node's timers: a timerfd on the same loop. `new Timer(callback)`;
// `arm(micros)` from now on, replacing what was armed; `disarm()`; `close()`. Like setTimeout it keeps the process alive
// while armed.
#include "timer.h"

#include <sys/timerfd.h>
#include <unistd.h>

#include "arguments.h"
#include "poll.h"

namespace {

constexpr double kLongest = 1e15;  // µs, 31 years

class Timer : public Napi::ObjectWrap<Timer> {
 public:
  explicit Timer(const Napi::CallbackInfo& info);
  ~Timer() { Release(); }
  Napi::Value Arm(const Napi::CallbackInfo& info);
  Napi::Value Disarm(const Napi::CallbackInfo& info);
  Napi::Value Close(const Napi::CallbackInfo& info);

 private:
  static void OnReady(void* timer, int status, int events);
  void Fire();
  void Set(int64_t micros);
  void Release();

  Napi::FunctionReference callback_;
  Poll* poll_ = nullptr;
  int fd_ = -1;
  bool armed_ = false;
};

Timer::Timer(const Napi::CallbackInfo& info) : Napi::ObjectWrap<Timer>(info) {
  if (!info[0].IsFunction()) {
    Refuse(info.Env(), "Timer(callback: () => void)");
    return;
  }
  callback_ = Napi::Persistent(info[0].As<Napi::Function>());
  fd_ = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
  int error = -errno;
  if (fd_ >= 0) poll_ = Poll::Open(info.Env(), fd_, OnReady, this, &error);
  if (poll_ == nullptr) {
    Napi::Error::New(info.Env(), std::string("no timerfd: ") + uv_err_name(error)).ThrowAsJavaScriptException();
    return;
  }
  poll_->Ref(false);
  poll_->Watch(UV_READABLE);
}

Napi::Value Timer::Arm(const Napi::CallbackInfo& info) {
  double micros;
  if (!ReadNumber(info.Env(), info[0], 0, kLongest, &micros)) return Refuse(info.Env(), "arm(micros: number)");
  Set(static_cast<int64_t>(micros));
  return info.Env().Undefined();
}

Napi::Value Timer::Disarm(const Napi::CallbackInfo& info) {
  Set(-1);
  return info.Env().Undefined();
}

Napi::Value Timer::Close(const Napi::CallbackInfo& info) {
  Release();
  return info.Env().Undefined();
}

// Negative: never.
void Timer::Set(int64_t micros) {
  if (poll_ == nullptr) return;
  itimerspec when = {};
  when.it_value.tv_sec = micros < 0 ? 0 : micros / 1'000'000;
  when.it_value.tv_nsec = micros < 0 ? 0 : micros % 1'000'000 * 1'000;
  if (micros == 0) when.it_value.tv_nsec = 1;  // all zero would disarm
  timerfd_settime(fd_, 0, &when, nullptr);
  const bool armed = micros >= 0;
  if (armed == armed_) return;
  armed_ = armed;
  poll_->Ref(armed);
  // An armed timer lives until it has fired, whoever forgets it.
  if (armed) Ref();
  else Unref();
}

void Timer::OnReady(void* timer, int status, int) {
  auto* self = static_cast<Timer*>(timer);
  if (status == UV_ECANCELED) self->poll_ = nullptr;
  else self->Fire();
}

void Timer::Fire() {
  uint64_t expirations;
  if (read(fd_, &expirations, sizeof expirations) != sizeof expirations) return;  // disarmed, or armed anew, meanwhile
  Napi::Env env = Env();
  Napi::HandleScope scope(env);
  Napi::Object self = Value();
  armed_ = false;
  poll_->Ref(false);
  Unref();
  CallFromLoop(env, self, callback_.Value(), 0);
}

void Timer::Release() {
  if (poll_ == nullptr) return;
  Poll* poll = poll_;
  if (armed_) Unref();
  armed_ = false;
  poll_ = nullptr;
  poll->Close();
}

}  // namespace

void InitTimer(Napi::Env env, Napi::Object exports) {
  exports.Set("Timer", Timer::DefineClass(env, "Timer",
                                          {Timer::InstanceMethod<&Timer::Arm>("arm"),
                                           Timer::InstanceMethod<&Timer::Disarm>("disarm"),
                                           Timer::InstanceMethod<&Timer::Close>("close")}));
}
