// The system calls of the packet path, in one place, so that the test build (PURE_LINK_FAULTS, see faults.cc) can make
// them fail. Everywhere else these are the calls themselves.
#pragma once

#include <sys/socket.h>
#include <unistd.h>

namespace sys {
#ifdef PURE_LINK_FAULTS
int Open(int family, int type);
int Bind(int fd, const sockaddr* address, socklen_t length);
int Set(int fd, int level, int name, const void* value, socklen_t length);
int SendMany(int fd, mmsghdr* messages, unsigned count, int flags);
int ReceiveMany(int fd, mmsghdr* messages, unsigned count, int flags);
#else
inline int Open(int family, int type) { return socket(family, type, 0); }
inline int Bind(int fd, const sockaddr* address, socklen_t length) { return bind(fd, address, length); }
inline int Set(int fd, int level, int name, const void* value, socklen_t length) {
  return setsockopt(fd, level, name, value, length);
}
inline int SendMany(int fd, mmsghdr* messages, unsigned count, int flags) {
  return sendmmsg(fd, messages, count, flags);
}
inline int ReceiveMany(int fd, mmsghdr* messages, unsigned count, int flags) {
  return recvmmsg(fd, messages, count, flags, nullptr);
}
#endif
}  // namespace sys
