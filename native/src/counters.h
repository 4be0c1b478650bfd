// What a socket counts: the fixed ones first, then one per errno, as the table that JS gets a copy of.
#pragma once

#include <cstddef>
#include <cstring>

enum Counter : size_t {
  kSent,
  kReceived,
  kSendErrors,     // datagrams
  kReceiveErrors,  // errors, not datagrams
  kReceiveDrops,   // what the kernel says it dropped
  kTruncated,      // datagrams cut by a slot
  kQueued,         // datagrams that had to wait for the send buffer
  kStepDowns,      // times the path gave up GSO or GRO for good
  kSendCalls,     // that carried a datagram
  kReceiveCalls,
  kMessages,  // sent: one GSO message carries many datagrams
  kTrains,    // received: messages of more than one datagram
  kErrnos = 16
};
constexpr size_t kMostErrno = 240;
constexpr size_t kCounters = kErrnos + kMostErrno;

class Counters {
 public:
  void CopyTo(double* table) const { memcpy(table, table_, sizeof table_); }
  double Get(size_t counter) const { return table_[counter]; }
  void Add(size_t counter, double count) { table_[counter] += count; }
  void AddError(Counter counter, int error, double count) {
    Add(counter, count);
    Add(kErrnos + (error > 0 && error < static_cast<int>(kMostErrno) ? error : 0), count);
  }

 private:
  double table_[kCounters] = {};
};

// Errors after which a descriptor never works again; all others cost a datagram at most.
bool IsFatal(int error);
