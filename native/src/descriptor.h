// Opens and binds a UDP descriptor and asks the kernel for everything that the packet path can use. What is refused is
// reported, and the path does without.
#pragma once

#include "address.h"

#ifndef SOL_UDP
#define SOL_UDP 17
#endif
#ifndef UDP_SEGMENT
#define UDP_SEGMENT 103
#endif
#ifndef UDP_GRO
#define UDP_GRO 104
#endif

struct Wishes {
  int receiveBuffer = 0;  // bytes
  int sendBuffer = 0;     // bytes
  int sendEcn = 0;        // codepoint of every datagram sent
  bool gso = true;
  bool gro = true;
};

struct Granted {
  int family = AF_INET;
  int receiveBuffer = 0;  // bytes, without the kernel's own share
  int sendBuffer = 0;
  int segments = 0;  // most of one GSO message; 0 without GSO
  bool gro = false;
  bool dontFragment = false;
  bool ecnIn = false;
  bool ecnOut = false;
  bool packetInfo = false;  // only asked for when bound to a wildcard
  bool drops = false;       // the kernel tells what it dropped
};

// Zero or a negative errno.
int OpenDescriptor(const Peer& at, const Wishes& wishes, int* fd, Granted* granted);
bool SetSendEcn(int fd, int family, int codepoint);
bool SetGro(int fd, bool on);
