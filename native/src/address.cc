// Between text, sockaddr and Peer. IPv4 seen through an IPv6 socket is plain IPv4 in text, as everywhere in this
// project.
#include "address.h"

#include <net/if.h>
#include <uv.h>

namespace {
constexpr uint8_t kMappedPrefix[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
constexpr uint8_t kZero[16] = {};
}  // namespace

bool Peer::HasLocal() const { return memcmp(local, kZero, sizeof local) != 0; }

uint32_t Peer::Fingerprint() const {
  uint64_t words[5];
  memcpy(words, this, sizeof words);
  uint64_t hash = port;
  for (uint64_t word : words) hash = (hash ^ word) * 0x9e3779b97f4a7c15u;
  return static_cast<uint32_t>(hash >> 32) | 1;  // never 0, which marks a free place
}

bool IsMapped(const uint8_t* address) { return memcmp(address, kMappedPrefix, sizeof kMappedPrefix) == 0; }

void MapIPv4(const in_addr& from, uint8_t* address) {
  memcpy(address, kMappedPrefix, sizeof kMappedPrefix);
  memcpy(address + sizeof kMappedPrefix, &from, sizeof from);
}

in_addr UnmapIPv4(const uint8_t* address) {
  in_addr out;
  memcpy(&out, address + sizeof kMappedPrefix, sizeof out);
  return out;
}

bool ParseHost(const char* host, uint8_t* address, uint32_t* scope) {
  *scope = 0;
  in_addr four;
  if (uv_inet_pton(AF_INET, host, &four) == 0) {
    MapIPv4(four, address);
    return true;
  }
  std::string plain(host);
  const size_t zone = plain.find('%');
  if (zone != std::string::npos) {
    const std::string name = plain.substr(zone + 1);
    *scope = if_nametoindex(name.c_str());
    if (*scope == 0) *scope = static_cast<uint32_t>(strtoul(name.c_str(), nullptr, 10));
    if (*scope == 0) return false;
    plain.resize(zone);
  }
  return uv_inet_pton(AF_INET6, plain.c_str(), address) == 0;
}

std::string FormatHost(const uint8_t* address, uint32_t scope) {
  char text[INET6_ADDRSTRLEN + 1];
  if (IsMapped(address)) {
    const in_addr four = UnmapIPv4(address);
    uv_inet_ntop(AF_INET, &four, text, sizeof text);
    return text;
  }
  uv_inet_ntop(AF_INET6, address, text, sizeof text);
  if (scope == 0) return text;
  char name[IF_NAMESIZE];
  return std::string(text) + "%" + (if_indextoname(scope, name) != nullptr ? name : std::to_string(scope));
}

socklen_t WriteSockaddr(const Peer& peer, int family, sockaddr_storage* out) {
  if (family == AF_INET) {
    if (!IsMapped(peer.remote)) return 0;
    auto* four = reinterpret_cast<sockaddr_in*>(out);
    *four = {};
    four->sin_family = AF_INET;
    four->sin_port = htons(peer.port);
    four->sin_addr = UnmapIPv4(peer.remote);
    return sizeof *four;
  }
  auto* six = reinterpret_cast<sockaddr_in6*>(out);
  *six = {};
  six->sin6_family = AF_INET6;
  six->sin6_port = htons(peer.port);
  six->sin6_scope_id = peer.scope;
  memcpy(&six->sin6_addr, peer.remote, sizeof peer.remote);
  return sizeof *six;
}

void ReadSockaddr(const sockaddr_storage& from, Peer* peer) {
  *peer = {};
  if (from.ss_family == AF_INET) {
    const auto& four = reinterpret_cast<const sockaddr_in&>(from);
    MapIPv4(four.sin_addr, peer->remote);
    peer->port = ntohs(four.sin_port);
  } else if (from.ss_family == AF_INET6) {
    const auto& six = reinterpret_cast<const sockaddr_in6&>(from);
    memcpy(peer->remote, &six.sin6_addr, sizeof peer->remote);
    peer->port = ntohs(six.sin6_port);
    peer->scope = six.sin6_scope_id;
  }
}
