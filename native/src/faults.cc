// Of the test build alone: system calls that fail when a test says so, as the kernel would make them fail. The first
// fault of a list that fits a call is what happens. See `Fault` in socket.d.ts.
#ifdef PURE_LINK_FAULTS
#include "faults.h"

#include <netinet/in.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstring>
#include <string>
#include <vector>

#include "arguments.h"
#include "descriptor.h"
#include "system.h"

namespace {

struct Fault {
  std::string call;
  std::string spoil;
  int error = 0;
  int after = 0;
  int times = INT_MAX;
  int above = -1;
  int partial = 0;
  bool gso = false;
};

// Of one thread, and so of one isolate.
thread_local std::vector<Fault> faults;

uint16_t SegmentOf(const msghdr& message) {
  uint16_t size = 0;
  for (cmsghdr* control = CMSG_FIRSTHDR(&message); control != nullptr;
       control = CMSG_NXTHDR(const_cast<msghdr*>(&message), control)) {
    if (control->cmsg_level == SOL_UDP && control->cmsg_type == UDP_SEGMENT) memcpy(&size, CMSG_DATA(control), 2);
  }
  return size;
}

size_t LongestOf(const msghdr& message) {
  size_t length = 0;
  for (size_t i = 0; i < message.msg_iovlen; i++) length += message.msg_iov[i].iov_len;
  const uint16_t segment = SegmentOf(message);
  return segment > 0 ? segment : length;
}

// The fault that happens to this call or message now; counts it, if it is one.
Fault* Find(const char* call, const msghdr* message) {
  for (Fault& fault : faults) {
    if (fault.call != call || fault.times == 0) continue;
    if (message != nullptr && fault.gso && SegmentOf(*message) == 0) continue;
    if (message != nullptr && fault.above >= 0 && LongestOf(*message) <= static_cast<size_t>(fault.above)) continue;
    if (fault.after > 0) {
      fault.after--;
      continue;
    }
    return &fault;
  }
  return nullptr;
}

bool Fails(const char* call) {
  Fault* fault = Find(call, nullptr);
  if (fault == nullptr) return false;
  fault->times--;
  errno = fault->error;
  return true;
}

// Takes the segment size out of a message, as a kernel or a filter might.
void StripSegment(msghdr* message) {
  for (cmsghdr* control = CMSG_FIRSTHDR(message); control != nullptr; control = CMSG_NXTHDR(message, control)) {
    if (control->cmsg_level == SOL_UDP && control->cmsg_type == UDP_GRO) control->cmsg_type = 0;
  }
}

Napi::Value Inject(const Napi::CallbackInfo& info) {
  Napi::Env env = info.Env();
  if (!info[0].IsObject()) return Refuse(env, "injectFault(fault)");
  Napi::Object given = info[0].As<Napi::Object>();
  const auto number = [&](const char* name, int otherwise) {
    Napi::Value value = given.Get(name);
    return value.IsNumber() ? value.As<Napi::Number>().Int32Value() : otherwise;
  };
  Fault fault;
  fault.call = given.Get("call").ToString();
  if (given.Has("spoil")) fault.spoil = given.Get("spoil").ToString();
  fault.error = number("errno", 0);
  fault.after = number("after", 0);
  fault.times = number("times", INT_MAX);
  fault.above = number("above", -1);
  fault.partial = number("partial", 0);
  fault.gso = given.Get("gso").ToBoolean();
  faults.push_back(fault);
  return env.Undefined();
}

Napi::Value Clear(const Napi::CallbackInfo& info) {
  faults.clear();
  return info.Env().Undefined();
}

}  // namespace

namespace sys {

int Open(int family, int type) { return Fails("socket") ? -1 : socket(family, type, 0); }

int Bind(int fd, const sockaddr* address, socklen_t length) { return Fails("bind") ? -1 : bind(fd, address, length); }

int Set(int fd, int level, int name, const void* value, socklen_t length) {
  return Fails("setsockopt") ? -1 : setsockopt(fd, level, name, value, length);
}

// The messages before the one that fails are sent; it fails when it is the first of a call.
int SendMany(int fd, mmsghdr* messages, unsigned count, int flags) {
  unsigned pass = 0;
  for (; pass < count; pass++) {
    Fault* fault = Find("sendmmsg", &messages[pass].msg_hdr);
    if (fault == nullptr) continue;
    if (fault->partial > 0) {
      if (pass == 0) fault->times--;
      pass = std::min(count, pass + static_cast<unsigned>(fault->partial));
      break;
    }
    if (pass > 0) break;
    fault->times--;
    errno = fault->error;
    return -1;
  }
  return sendmmsg(fd, messages, pass, flags);
}

// An error comes instead of the call; what is spoilt is spoilt in the first message that the call brought.
int ReceiveMany(int fd, mmsghdr* messages, unsigned count, int flags) {
  Fault* fault = Find("recvmmsg", nullptr);
  if (fault != nullptr && fault->spoil.empty()) {
    fault->times--;
    errno = fault->error;
    return -1;
  }
  const int received = recvmmsg(fd, messages, count, flags, nullptr);
  if (fault == nullptr || received <= 0) return received;
  fault->times--;
  if (fault->spoil == "segment") StripSegment(&messages[0].msg_hdr);
  else messages[0].msg_hdr.msg_flags |= MSG_TRUNC;
  return received;
}

}  // namespace sys

void InitFaults(Napi::Env env, Napi::Object exports) {
  exports.Set("injectFault", Napi::Function::New<Inject>(env, "injectFault"));
  exports.Set("clearFaults", Napi::Function::New<Clear>(env, "clearFaults"));
}
#endif
