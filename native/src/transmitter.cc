// A batch goes out as messages; an error concerns the first message of a call and is settled for it alone, by what the
// same datagrams do in a plainer form. Whatever is settled is never sent again.
#include "transmitter.h"

#include <algorithm>
#include <cerrno>

#include "system.h"

namespace {

constexpr size_t kMostBytes = 65'507;    // of one message, headers excluded
constexpr unsigned kBatchesRefused = 64;  // without the refused address, after which it is tried again
constexpr unsigned kPatience = 8;        // messages refused in a row, after which the rest of a batch is given up
constexpr unsigned kFlushedBatches = 8;  // per turn of the loop

bool IsFull(int error) { return error == EAGAIN || error == EWOULDBLOCK; }

// May belong to an earlier datagram, of another destination: the kernel tells it to whoever sends next, once.
bool IsPerhapsOfAnother(int error) {
  return error == ECONNREFUSED || error == EHOSTUNREACH || error == ENETUNREACH || error == EMSGSIZE ||
         error == ECONNRESET || error == EPROTO || error == ENOPROTOOPT;
}

// What devices and kernels say that cannot do what a control message asks for.
bool IsOfControl(int error) { return error == EIO || error == EINVAL || error == EOPNOTSUPP; }

// What they say of an address to leave from that is not, or no longer, one of this machine.
bool IsOfSource(int error) {
  return IsOfControl(error) || error == ENETUNREACH || error == EHOSTUNREACH || error == EADDRNOTAVAIL;
}

}  // namespace

bool IsFatal(int error) { return error == EBADF || error == ENOTSOCK || error == EPIPE || error == ENOTCONN; }

void Transmitter::Use(int fd, const Granted& granted) {
  fd_ = fd;
  family_ = granted.family;
  segments_ = granted.segments;
  refusedSource_ = {};
}

int Transmitter::Send(const uint8_t* slab, size_t stride, const uint32_t* lengths, size_t count, const Peer& to) {
  for (size_t first = 0; first < count; first += kMostDatagrams) {
    const size_t length = std::min(kMostDatagrams, count - first);
    for (size_t i = 0; i < length; i++) {
      datagrams_[i] = {const_cast<uint8_t*>(slab) + (first + i) * stride, lengths[first + i]};
    }
    size_t done = 0;
    const int result = queue_.IsEmpty() ? Dispatch(length, to, &done) : 0;
    if (result < 0) {
      counters_->AddError(kSendErrors, -result, static_cast<double>(count - first - length));
      return result;
    }
    if (done < length) Keep(datagrams_ + done, length - done, to);
  }
  return 0;
}

int Transmitter::Flush() {
  for (unsigned round = 0; round < kFlushedBatches && !queue_.IsEmpty(); round++) {
    Peer to;
    const size_t count = queue_.Front(datagrams_, kMostDatagrams, &to);
    size_t done = 0;
    const int result = Dispatch(count, to, &done);
    queue_.Pop(done);
    if (result < 0) return result;
    if (done < count) return 0;
  }
  return 0;
}

void Transmitter::LoseWaiting(int error) {
  counters_->AddError(kSendErrors, error, static_cast<double>(queue_.Count()));
  queue_.Pop(queue_.Count());
}

void Transmitter::Keep(const iovec* datagrams, size_t count, const Peer& to) {
  for (size_t i = 0; i < count; i++) {
    if (queue_.Push(datagrams[i].iov_base, datagrams[i].iov_len, to)) continue;
    // What came later must not overtake, and a shorter one might fit.
    counters_->AddError(kSendErrors, ENOBUFS, static_cast<double>(count - i));
    counters_->Add(kQueued, static_cast<double>(i));
    return;
  }
  counters_->Add(kQueued, static_cast<double>(count));
}

// Sends the first `count` of datagrams_. Zero, with what is sent or lost in `done`, or a negative errno.
int Transmitter::Dispatch(size_t count, const Peer& to, size_t* done) {
  sockaddr_storage name;
  Batch batch = {};
  batch.datagrams = datagrams_;
  batch.count = count;
  batch.to = &to;
  batch.name = &name;
  batch.nameLength = to.port == 0 ? 0 : WriteSockaddr(to, family_, &name);
  batch.gso = true;
  batch.source = to.HasLocal() && !IsRefused(to);
  if (batch.nameLength == 0) Lose(&batch, count, EINVAL);
  const Outcome outcome = Transmit(&batch);
  *done = batch.next;
  return outcome == Outcome::kDead ? -deathError_ : 0;
}

// Whether the address to leave from was refused; now and then it is tried again, as it may have come back.
bool Transmitter::IsRefused(const Peer& to) {
  const bool isRefused = memcmp(to.local, refusedSource_.local, sizeof to.local) == 0 &&
                         to.localScope == refusedSource_.localScope;
  if (!isRefused || ++batchesRefused_ < kBatchesRefused) return isRefused;
  refusedSource_ = {};
  return false;
}

Transmitter::Outcome Transmitter::Transmit(Batch* batch) {
  while (batch->next < batch->count) {
    if (batch->datagrams[batch->next].iov_len >= batch->tooLong) {
      Lose(batch, 1, EMSGSIZE);
      continue;
    }
    const unsigned built = BuildMessages(*batch);
    const int sent = sys::SendMany(fd_, messages_, built, MSG_DONTWAIT | MSG_NOSIGNAL);
    const int error = errno;
    if (sent > 0) {
      counters_->Add(kSendCalls, 1);
      size_t datagrams = 0;
      for (int i = 0; i < sent; i++) datagrams += trains_[i];
      counters_->Add(kMessages, sent);
      counters_->Add(kSent, static_cast<double>(datagrams));
      batch->next += datagrams;
      batch->sent += datagrams;
      batch->failures = 0;
      batch->isSecondTry = false;
      continue;
    }
    if (sent < 0 && error == EINTR) continue;
    if (sent == 0 || IsFull(error)) return Outcome::kFull;
    const Outcome outcome = Settle(batch, trains_[0], error);
    if (outcome != Outcome::kDone) return outcome;
  }
  return Outcome::kDone;
}

// Decides about the `failed` datagrams of the message that was refused.
Transmitter::Outcome Transmitter::Settle(Batch* batch, size_t failed, int error) {
  if (IsFatal(error)) {
    deathError_ = error;
    Lose(batch, batch->count - batch->next, error);
    return Outcome::kDead;
  }
  if (IsPerhapsOfAnother(error) && !batch->isSecondTry) {
    batch->isSecondTry = true;
    return Outcome::kDone;
  }
  if (error == EMSGSIZE) return SettleTooLong(batch, failed);
  if ((failed > 1 && IsOfControl(error)) || (batch->source && IsOfSource(error))) return StepDown(batch, failed);
  Lose(batch, failed, error);
  if (++batch->failures == kPatience) Lose(batch, batch->count - batch->next, error);
  return Outcome::kDone;
}

// Is it the datagrams that are too long, or the train? The first of them alone tells.
Transmitter::Outcome Transmitter::SettleTooLong(Batch* batch, size_t failed) {
  if (failed == 1) {
    batch->tooLong = batch->datagrams[batch->next].iov_len;
    Lose(batch, 1, EMSGSIZE);
    return Outcome::kDone;
  }
  Batch first = batch->Part(1);
  first.gso = false;
  const Outcome outcome = Transmit(&first);
  batch->next += first.next;
  batch->isSecondTry = false;
  batch->tooLong = std::min(batch->tooLong, first.tooLong);
  if (first.sent > 0) batch->gso = false;
  if (outcome == Outcome::kDead) Lose(batch, batch->count - batch->next, deathError_);
  return outcome;
}

// Sends the same datagrams at once in the next plainer form: a train as a plain batch, a plain datagram without the
// address to leave from. If that does it, the form that failed is given up: GSO for good, the address until the next.
Transmitter::Outcome Transmitter::StepDown(Batch* batch, size_t failed) {
  Batch plainer = batch->Part(failed);
  if (failed > 1) plainer.gso = false;
  else plainer.source = false;
  const Outcome outcome = Transmit(&plainer);
  batch->next += plainer.next;
  batch->sent += plainer.sent;
  // Kernels before 6.14 refuse a train above the path's MTU as they refuse one that the device cannot cut.
  const bool wasLength = plainer.tooLong < batch->tooLong;
  batch->tooLong = plainer.tooLong;
  const bool wasSource = batch->source && !plainer.source && plainer.sent > 0;
  if (wasSource) {
    refusedSource_ = *batch->to;
    batchesRefused_ = 0;
    batch->source = false;
  } else if (failed > 1 && plainer.sent > 0 && segments_ != 0 && !wasLength) {
    segments_ = 0;
    counters_->Add(kStepDowns, 1);
  }
  if (outcome == Outcome::kDead) Lose(batch, batch->count - batch->next, deathError_);
  return outcome;
}

Transmitter::Batch Transmitter::Batch::Part(size_t length) const {
  Batch part = *this;
  part.datagrams += next;
  part.count = length;
  part.next = part.sent = 0;
  part.failures = 0;
  part.isSecondTry = false;
  return part;
}

void Transmitter::Lose(Batch* batch, size_t count, int error) {
  if (count == 0) return;
  counters_->AddError(kSendErrors, error, static_cast<double>(count));
  batch->next += count;
  batch->isSecondTry = false;
}

// Fills messages_, parts_ and trains_ from the next datagrams on; returns how many messages.
unsigned Transmitter::BuildMessages(const Batch& batch) {
  unsigned built = 0;
  iovec* part = parts_;
  size_t next = batch.next;
  while (built < kMostMessages && next < batch.count && batch.datagrams[next].iov_len < batch.tooLong) {
    const size_t train = CountTrain(batch, next);
    msghdr& header = messages_[built].msg_hdr;
    header.msg_name = const_cast<sockaddr_storage*>(batch.name);
    header.msg_namelen = batch.nameLength;
    header.msg_iov = part;
    header.msg_flags = 0;
    const size_t segment = train > 1 ? batch.datagrams[next].iov_len : 0;
    header.msg_controllen = segment > 0 || batch.source ? WriteControl(batch, segment, controls_[built]) : 0;
    header.msg_control = header.msg_controllen > 0 ? controls_[built] : nullptr;
    // Datagrams that stand side by side are one part.
    *part = batch.datagrams[next];
    for (size_t i = next + 1; i < next + train; i++) {
      const iovec& datagram = batch.datagrams[i];
      if (static_cast<char*>(part->iov_base) + part->iov_len == datagram.iov_base) part->iov_len += datagram.iov_len;
      else *++part = datagram;
    }
    part++;
    header.msg_iovlen = static_cast<size_t>(part - header.msg_iov);
    trains_[built++] = train;
    next += train;
  }
  return built;
}

// How many datagrams from the first on go into one message: equal ones, and a shorter one at the end.
size_t Transmitter::CountTrain(const Batch& batch, size_t first) const {
  const size_t length = batch.datagrams[first].iov_len;
  if (!batch.gso || segments_ < 2 || length == 0) return 1;
  const size_t most = std::min({static_cast<size_t>(segments_), kMostBytes / length, batch.count - first});
  size_t count = 1;
  while (count < most && batch.datagrams[first + count].iov_len == length) count++;
  if (count >= most) return count == 0 ? 1 : count;
  const size_t last = batch.datagrams[first + count].iov_len;
  return last > 0 && last < length ? count + 1 : count;
}

size_t Transmitter::WriteControl(const Batch& batch, size_t segment, char* control) const {
  msghdr message = {};
  message.msg_control = control;
  message.msg_controllen = kControlRoom;
  memset(control, 0, kControlRoom);
  cmsghdr* header = CMSG_FIRSTHDR(&message);
  size_t used = 0;
  const auto write = [&](int level, int type, const void* data, size_t length) {
    header->cmsg_level = level;
    header->cmsg_type = type;
    header->cmsg_len = CMSG_LEN(length);
    memcpy(CMSG_DATA(header), data, length);
    used += CMSG_SPACE(length);
    header = reinterpret_cast<cmsghdr*>(control + used);
  };
  if (segment > 0) {
    const uint16_t size = static_cast<uint16_t>(segment);
    write(SOL_UDP, UDP_SEGMENT, &size, sizeof size);
  }
  if (batch.source && IsMapped(batch.to->local)) {
    in_pktinfo info = {};
    info.ipi_spec_dst = UnmapIPv4(batch.to->local);
    write(IPPROTO_IP, IP_PKTINFO, &info, sizeof info);
  } else if (batch.source) {
    in6_pktinfo info = {};
    memcpy(&info.ipi6_addr, batch.to->local, sizeof batch.to->local);
    info.ipi6_ifindex = batch.to->localScope;
    write(IPPROTO_IPV6, IPV6_PKTINFO, &info, sizeof info);
  }
  return used;
}
