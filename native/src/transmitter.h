// Sends batches of datagrams to one destination at a time with as few calls as the kernel allows: equal lengths in a row as
// one GSO message, several messages per call. docs/errno.md says what each error does.
#pragma once

#include <sys/uio.h>

#include "address.h"
#include "counters.h"
#include "descriptor.h"
#include "send_queue.h"

class Transmitter {
 public:
  Transmitter(Counters* counters, size_t queueBytes) : counters_(counters), queue_(queueBytes) {}

  // Goes on with a descriptor just opened; what waited for the old one waits for it.
  void Use(int fd, const Granted& granted);

  // Sends, or keeps for `Flush`. The bytes are taken when it returns. Zero, or a negative errno if the socket is dead.
  int Send(const uint8_t* slab, size_t stride, const uint32_t* lengths, size_t count, const Peer& to);
  // Sends what waits, as far as there is room and up to a bound. Zero, or a negative errno if the socket is dead.
  int Flush();
  bool IsWaiting() const { return !queue_.IsEmpty(); }
  void LoseWaiting(int error);
  int Segments() const { return segments_; }

 private:
  enum class Outcome { kDone, kFull, kDead };
  // Datagrams for one destination, and what was learnt while sending them.
  struct Batch {
    const iovec* datagrams;
    size_t count;
    const Peer* to;
    const sockaddr_storage* name;
    socklen_t nameLength;
    bool gso;
    bool source;               // whether it leaves from `to->local`
    size_t next = 0;           // datagrams before this one are sent or lost
    size_t sent = 0;
    size_t tooLong = SIZE_MAX;  // from this length on the path takes none
    unsigned failures = 0;     // messages in a row
    bool isSecondTry = false;

    Batch Part(size_t length) const;
  };

  int Dispatch(size_t count, const Peer& to, size_t* done);
  Outcome Transmit(Batch* batch);
  Outcome Settle(Batch* batch, size_t failed, int error);
  Outcome SettleTooLong(Batch* batch, size_t failed);
  bool IsRefused(const Peer& to);
  Outcome StepDown(Batch* batch, size_t failed);
  void Lose(Batch* batch, size_t count, int error);
  unsigned BuildMessages(const Batch& batch);
  size_t CountTrain(const Batch& batch, size_t first) const;
  size_t WriteControl(const Batch& batch, size_t segment, char* control) const;
  void Keep(const iovec* datagrams, size_t count, const Peer& to);

  static constexpr size_t kMostDatagrams = 512;  // of one batch: more is cut into several
  static constexpr unsigned kMostMessages = 64;  // of one call
  static constexpr size_t kControlRoom = 64;

  Counters* counters_;
  SendQueue queue_;
  int fd_ = -1;
  int family_ = AF_INET;
  int segments_ = 0;  // most of one message; 0: GSO is off
  int deathError_ = 0;
  unsigned batchesRefused_ = 0;  // that went without it since
  Peer refusedSource_ = {};  // its local address is none that the kernel takes
  iovec datagrams_[kMostDatagrams];
  iovec parts_[kMostDatagrams];
  mmsghdr messages_[kMostMessages];
  size_t trains_[kMostMessages];  // datagrams of each message
  alignas(cmsghdr) char controls_[kMostMessages][kControlRoom];
};
