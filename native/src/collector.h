// Takes datagrams out of the kernel, several messages per call and many datagrams per message (GRO), into one slab, and
// says where each begins and ends, whose it is and how it was marked, in tables that JS reads.
#pragma once

#include <sys/uio.h>

#include "address.h"
#include "counters.h"
#include "descriptor.h"

// The memory of JS that results go to.
struct Tables {
  uint8_t* slab;
  size_t slabLength;
  uint32_t* starts;
  uint32_t* ends;
  uint8_t* ecn;
  uint32_t* peers;  // index of each datagram's peer
  size_t capacity;  // of these four
  uint32_t* news;   // [more may wait, number of new peers, their indices…]
};

class Collector {
 public:
  static constexpr size_t kMostPeers = 256;  // remembered
  static constexpr size_t kNewsLength = 2 + kMostPeers;
  static constexpr size_t kTrainSlot = 65'536;

  Collector(Counters* counters, size_t longest) : counters_(counters), longest_(longest) {}
  void PointAt(const Tables& tables) { tables_ = tables; }

  // Goes on with a descriptor just opened. What was taken from the old one stays.
  void Use(int fd, const Granted& granted);

  // Fills the tables with at most `most` datagrams; how many, or a negative errno if the socket is dead.
  int Collect(size_t most);
  // Whether taken datagrams are left for the next call.
  bool HasLeft() const { return current_ < taken_; }
  // Drops what was taken.
  void Forget() { taken_ = current_ = 0; }
  // Takes note of an error that came without a call. False if the socket is dead.
  bool TakeError(int error);
  const Peer& PeerAt(size_t index) const { return peers_[index]; }
  bool HasGro() const { return gro_; }

 private:
  struct Message {
    size_t length;
    size_t segment;
    size_t next;
    uint32_t peer;
    uint8_t ecn;
  };
  static constexpr size_t kMostSlots = 64;
  static constexpr size_t kPlainSlot = 16'384;
  static constexpr size_t kControlRoom = 192;

  int Take();
  void Prepare(size_t slots);
  void Examine(size_t index, const mmsghdr& from);
  void ReadControl(msghdr* header, Message* message, Peer* peer);
  void WatchTrains(const Message& message, int flags);
  void GiveUpGro();
  size_t Split(size_t most);
  uint32_t IndexOf(const Peer& peer);

  Counters* counters_;
  size_t longest_;
  Tables tables_ = {};
  int fd_ = -1;
  bool gro_ = false;
  size_t slotBytes_ = kTrainSlot;
  size_t taken_ = 0;    // messages
  size_t current_ = 0;  // the one that is being split
  bool isFull_ = false;  // the last call filled every slot
  unsigned errorsInARow_ = 0;
  unsigned suspicions_ = 0;
  uint32_t drops_ = 0;
  Message messages_[kMostSlots];
  mmsghdr headers_[kMostSlots];
  iovec slots_[kMostSlots];
  sockaddr_storage names_[kMostSlots];
  alignas(cmsghdr) char controls_[kMostSlots][kControlRoom];

  Peer peers_[kMostPeers] = {};
  uint32_t fingerprints_[kMostPeers] = {};
  uint64_t lastUse_[kMostPeers] = {};  // the take in which it was last heard
  uint64_t takes_ = 0;
  uint32_t lastPeer_ = 0;
};
