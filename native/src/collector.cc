// One take fills slots of the slab; `Split` walks through them, over as many calls as their reader likes. A train
// without its segment size, or one that was cut, would be garbage in the shape of one datagram: it is noticed, and GRO
// given up.
#include "collector.h"

#include <algorithm>
#include <cerrno>

#include "system.h"

namespace {
constexpr unsigned kTries = 8;          // of one call that meets errors
constexpr unsigned kMostErrors = 64;    // in a row: the socket would only keep the CPU busy
constexpr unsigned kMostSuspicions = 4;  // in a row
}  // namespace

void Collector::Use(int fd, const Granted& granted) {
  fd_ = fd;
  gro_ = granted.gro;
  errorsInARow_ = suspicions_ = 0;
  drops_ = 0;
  isFull_ = false;
}

int Collector::Collect(size_t most) {
  tables_.news[0] = tables_.news[1] = 0;
  if (!HasLeft()) {
    const int error = Take();
    if (error != 0) return error;
  }
  const size_t count = Split(std::min(most, tables_.capacity));
  tables_.news[0] = HasLeft() || isFull_ ? 1 : 0;
  counters_->Add(kReceived, static_cast<double>(count));
  return static_cast<int>(count);
}

bool Collector::TakeError(int error) {
  counters_->AddError(kReceiveErrors, error, 1);
  return !IsFatal(error) && ++errorsInARow_ < kMostErrors;
}

// One call to the kernel, or a few if it reports errors. Zero, or a negative errno if the socket is dead.
int Collector::Take() {
  taken_ = current_ = 0;
  isFull_ = false;
  if (fd_ < 0) return 0;
  slotBytes_ = gro_ ? kTrainSlot : kPlainSlot;
  const size_t slots = std::min(kMostSlots, tables_.slabLength / slotBytes_);
  for (unsigned tries = 0; tries < kTries; tries++) {
    Prepare(slots);
    const int count = sys::ReceiveMany(fd_, headers_, static_cast<unsigned>(slots), MSG_DONTWAIT);
    const int error = errno;
    if (count > 0) {
      counters_->Add(kReceiveCalls, 1);
      errorsInARow_ = 0;
      taken_ = static_cast<size_t>(count);
      isFull_ = taken_ == slots;
      takes_++;
      for (size_t i = 0; i < taken_; i++) Examine(i, headers_[i]);
      return 0;
    }
    if (count == 0 || error == EAGAIN || error == EWOULDBLOCK) return 0;
    if (error != EINTR && !TakeError(error)) return -error;
  }
  isFull_ = true;  // there may be datagrams behind the errors
  return 0;
}

void Collector::Prepare(size_t slots) {
  for (size_t i = 0; i < slots; i++) {
    slots_[i] = {tables_.slab + i * slotBytes_, slotBytes_};
    msghdr& header = headers_[i].msg_hdr;
    header.msg_name = &names_[i];
    header.msg_namelen = sizeof names_[i];
    header.msg_iov = &slots_[i];
    header.msg_iovlen = 1;
    header.msg_control = controls_[i];
    header.msg_controllen = kControlRoom;
    header.msg_flags = 0;
  }
}

void Collector::Examine(size_t index, const mmsghdr& from) {
  Message& message = messages_[index];
  message = {from.msg_len, 0, 0, 0, 0};
  Peer peer;
  ReadSockaddr(names_[index], &peer);
  msghdr header = from.msg_hdr;
  ReadControl(&header, &message, &peer);
  WatchTrains(message, header.msg_flags);
  if (message.segment == 0 || message.segment > message.length) message.segment = message.length;
  else counters_->Add(kTrains, 1);
  if ((header.msg_flags & MSG_TRUNC) != 0) {
    // The last datagram is cut; those before it are whole.
    counters_->Add(kTruncated, 1);
    counters_->AddError(kReceiveErrors, EMSGSIZE, 1);
    message.length = message.segment == message.length ? SIZE_MAX : message.length / message.segment * message.segment;
  }
  message.peer = IndexOf(peer);
}

void Collector::ReadControl(msghdr* header, Message* message, Peer* peer) {
  for (cmsghdr* control = CMSG_FIRSTHDR(header); control != nullptr; control = CMSG_NXTHDR(header, control)) {
    const int level = control->cmsg_level;
    const int type = control->cmsg_type;
    const void* data = CMSG_DATA(control);
    if (level == SOL_UDP && type == UDP_GRO) {
      int size = 0;
      memcpy(&size, data, sizeof size);
      message->segment = size > 0 ? static_cast<size_t>(size) : 0;
    } else if (level == IPPROTO_IP && type == IP_TOS) {
      message->ecn = *static_cast<const uint8_t*>(data) & 3;
    } else if (level == IPPROTO_IPV6 && type == IPV6_TCLASS) {
      int trafficClass = 0;
      memcpy(&trafficClass, data, sizeof trafficClass);
      message->ecn = trafficClass & 3;
    } else if (level == IPPROTO_IP && type == IP_PKTINFO) {
      in_pktinfo info;
      memcpy(&info, data, sizeof info);
      MapIPv4(info.ipi_spec_dst, peer->local);
    } else if (level == IPPROTO_IPV6 && type == IPV6_PKTINFO) {
      in6_pktinfo info;
      memcpy(&info, data, sizeof info);
      memcpy(peer->local, &info.ipi6_addr, sizeof peer->local);
      if (IN6_IS_ADDR_LINKLOCAL(&info.ipi6_addr)) peer->localScope = info.ipi6_ifindex;
    } else if (level == SOL_SOCKET && type == SO_RXQ_OVFL) {
      uint32_t drops;
      memcpy(&drops, data, sizeof drops);
      counters_->Add(kReceiveDrops, drops - drops_);  // modulo 2^32
      drops_ = drops;
    }
  }
}

// With GRO, a message longer than any datagram that is expected and without segment size is a train that lost it, or a
// stranger's joke: only when trains never come whole is GRO to blame.
void Collector::WatchTrains(const Message& message, int flags) {
  if (!gro_) return;
  const bool isCut = (flags & MSG_TRUNC) != 0;
  const bool isSuspect = message.segment == 0 && (message.length > longest_ || (flags & MSG_CTRUNC) != 0);
  if (message.segment > 0 && !isCut) suspicions_ = 0;
  if (isCut || (isSuspect && ++suspicions_ == kMostSuspicions)) GiveUpGro();
}

void Collector::GiveUpGro() {
  gro_ = false;
  SetGro(fd_, false);
  counters_->Add(kStepDowns, 1);
}

size_t Collector::Split(size_t most) {
  size_t count = 0;
  while (count < most && current_ < taken_) {
    Message& message = messages_[current_];
    if (message.length == SIZE_MAX) {
      current_++;
      continue;
    }
    const size_t base = current_ * slotBytes_;
    do {
      const size_t end = std::min(message.next + message.segment, message.length);
      tables_.starts[count] = static_cast<uint32_t>(base + message.next);
      tables_.ends[count] = static_cast<uint32_t>(base + end);
      tables_.peers[count] = message.peer;
      tables_.ecn[count++] = message.ecn;
      message.next = end;
    } while (message.next < message.length && count < most);
    if (message.next >= message.length) current_++;
  }
  return count;
}

// The place of a peer in the memory of peers; a new one takes the place of the one that was silent longest.
uint32_t Collector::IndexOf(const Peer& peer) {
  uint32_t index = lastPeer_;
  if (!(peers_[index] == peer)) {
    const uint32_t fingerprint = peer.Fingerprint();
    for (index = 0; index < kMostPeers; index++) {
      if (fingerprints_[index] == fingerprint && peers_[index] == peer) break;
    }
    if (index == kMostPeers) {
      // A take has fewer messages than there are places: none of its own is taken away.
      index = static_cast<uint32_t>(std::min_element(lastUse_, lastUse_ + kMostPeers) - lastUse_);
      peers_[index] = peer;
      fingerprints_[index] = fingerprint;
      tables_.news[2 + tables_.news[1]++] = index;
    }
  }
  lastUse_[index] = takes_;
  return lastPeer_ = index;
}
