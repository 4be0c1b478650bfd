// Every option is asked for by itself: an old or odd kernel refuses some and gives the others.
#include "descriptor.h"

#include <netinet/udp.h>

#include <algorithm>
#include <cerrno>
#include <mutex>

#include "system.h"

namespace {

constexpr int kSmallestBuffer = 65'536;

bool Set(int fd, int level, int name, int value) { return sys::Set(fd, level, name, &value, sizeof value) == 0; }

// Asks by force first, which root may, and halves what is refused. Returns what was granted.
int SetBuffer(int fd, int forced, int plain, int bytes) {
  for (int size = bytes; size >= kSmallestBuffer; size /= 2) {
    if (Set(fd, SOL_SOCKET, forced, size) || Set(fd, SOL_SOCKET, plain, size)) break;
  }
  int granted = 0;
  socklen_t length = sizeof granted;
  getsockopt(fd, SOL_SOCKET, plain, &granted, &length);
  return granted / 2;  // Linux reports twice what it granted
}

// Whether the kernel takes a message of so many segments; tried on loopback with bytes to itself.
bool TakesSegments(int fd, const sockaddr_in& self, int segments) {
  char bytes[128] = {};
  iovec data = {bytes, static_cast<size_t>(segments)};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(uint16_t))] = {};
  msghdr message = {};
  message.msg_name = const_cast<sockaddr_in*>(&self);
  message.msg_namelen = sizeof self;
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  cmsghdr* header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_UDP;
  header->cmsg_type = UDP_SEGMENT;
  header->cmsg_len = CMSG_LEN(sizeof(uint16_t));
  const uint16_t size = 1;
  memcpy(CMSG_DATA(header), &size, sizeof size);
  return sendmsg(fd, &message, MSG_DONTWAIT) == segments;
}

// Kernels take 64 segments, newer ones 128. Where loopback tells nothing, 64 is safe.
int ProbeSegments() {
  int most = 64;
  const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return most;
  sockaddr_in self = {};
  self.sin_family = AF_INET;
  self.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof self;
  if (bind(fd, reinterpret_cast<sockaddr*>(&self), sizeof self) == 0 &&
      getsockname(fd, reinterpret_cast<sockaddr*>(&self), &length) == 0 && TakesSegments(fd, self, 128)) {
    most = 128;
  }
  close(fd);
  return most;
}

int MostSegments() {
  static std::once_flag once;
  static int most;
  std::call_once(once, [] { most = ProbeSegments(); });
  return most;
}

// A size of 0 leaves the choice to each message; that the option can be set at all shows that the kernel has it.
bool HasGso(int fd) { return Set(fd, SOL_UDP, UDP_SEGMENT, 1'200) && Set(fd, SOL_UDP, UDP_SEGMENT, 0); }

// Datagrams carry DF and are never cut, and what the path refuses is for the owner to find out: PROBE takes no word of
// ICMP.
bool SetDontFragment(int fd, int family) {
  const bool four = Set(fd, IPPROTO_IP, IP_MTU_DISCOVER, IP_PMTUDISC_PROBE) ||
                    Set(fd, IPPROTO_IP, IP_MTU_DISCOVER, IP_PMTUDISC_DO);
  if (family == AF_INET) return four;
  const bool six = Set(fd, IPPROTO_IPV6, IPV6_MTU_DISCOVER, IPV6_PMTUDISC_PROBE) ||
                   Set(fd, IPPROTO_IPV6, IPV6_MTU_DISCOVER, IPV6_PMTUDISC_DO);
  return six && Set(fd, IPPROTO_IPV6, IPV6_DONTFRAG, 1);
}

bool AskForEcn(int fd, int family) {
  const bool four = Set(fd, IPPROTO_IP, IP_RECVTOS, 1);
  return family == AF_INET ? four : Set(fd, IPPROTO_IPV6, IPV6_RECVTCLASS, 1);
}

bool AskForPacketInfo(int fd, int family) {
  return family == AF_INET ? Set(fd, IPPROTO_IP, IP_PKTINFO, 1) : Set(fd, IPPROTO_IPV6, IPV6_RECVPKTINFO, 1);
}

bool IsWildcard(const Peer& at) {
  static constexpr uint8_t zero[16] = {};
  if (IsMapped(at.remote)) return UnmapIPv4(at.remote).s_addr == 0;
  return memcmp(at.remote, zero, sizeof zero) == 0;
}

}  // namespace

bool SetSendEcn(int fd, int family, int codepoint) {
  const bool four = Set(fd, IPPROTO_IP, IP_TOS, codepoint);
  return family == AF_INET ? four : Set(fd, IPPROTO_IPV6, IPV6_TCLASS, codepoint);
}

bool SetGro(int fd, bool on) { return Set(fd, SOL_UDP, UDP_GRO, on ? 1 : 0); }

int OpenDescriptor(const Peer& at, const Wishes& wishes, int* out, Granted* granted) {
  *granted = {};
  const int family = granted->family = IsMapped(at.remote) ? AF_INET : AF_INET6;
  const int fd = sys::Open(family, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC);
  if (fd < 0) return -errno;
  const bool wildcard = IsWildcard(at);
  // Dual stack for the wildcard; any other IPv6 address is what it is.
  if (family == AF_INET6) Set(fd, IPPROTO_IPV6, IPV6_V6ONLY, wildcard ? 0 : 1);
  sockaddr_storage address;
  const socklen_t length = WriteSockaddr(at, family, &address);
  if (sys::Bind(fd, reinterpret_cast<sockaddr*>(&address), length) != 0) {
    const int error = errno;
    close(fd);
    return -error;
  }
  granted->receiveBuffer = SetBuffer(fd, SO_RCVBUFFORCE, SO_RCVBUF, wishes.receiveBuffer);
  granted->sendBuffer = SetBuffer(fd, SO_SNDBUFFORCE, SO_SNDBUF, wishes.sendBuffer);
  granted->segments = wishes.gso && HasGso(fd) ? MostSegments() : 0;
  granted->gro = wishes.gro && SetGro(fd, true);
  granted->dontFragment = SetDontFragment(fd, family);
  granted->ecnIn = AskForEcn(fd, family);
  granted->ecnOut = SetSendEcn(fd, family, wishes.sendEcn);
  granted->packetInfo = wildcard && AskForPacketInfo(fd, family);
  granted->drops = Set(fd, SOL_SOCKET, SO_RXQ_OVFL, 1);
  *out = fd;
  return 0;
}
