// Addresses as the packet path keeps them: 44 bytes, IPv4 as v4-mapped IPv6, compared as bytes, never as text. `local` is
// the address that the peer asked, as packet info told it, and the one that an answer leaves from; zero if not known.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include <cstdint>
#include <cstring>
#include <string>

struct Peer {
  uint8_t remote[16];
  uint8_t local[16];
  uint32_t scope;       // interface of a link-local remote address, else 0
  uint32_t localScope;  // interface of a link-local local address, else 0
  uint16_t port;        // host order
  uint16_t unused;      // zero: there is no padding, so that bytes compare

  bool operator==(const Peer& other) const { return memcmp(this, &other, sizeof(Peer)) == 0; }
  bool HasLocal() const;
  uint32_t Fingerprint() const;
};
static_assert(sizeof(Peer) == 44, "a Peer has no padding");

bool IsMapped(const uint8_t* address);
void MapIPv4(const in_addr& from, uint8_t* address);
in_addr UnmapIPv4(const uint8_t* address);

// Reads a numeric host, with its zone if it has one. False if it is none.
bool ParseHost(const char* host, uint8_t* address, uint32_t* scope);
std::string FormatHost(const uint8_t* address, uint32_t scope);

// The remote end as a socket of the family wants it; 0 if such a socket cannot reach it.
socklen_t WriteSockaddr(const Peer& peer, int family, sockaddr_storage* out);
void ReadSockaddr(const sockaddr_storage& from, Peer* peer);
