// The UDP socket as JS sees it: tables of memory are handed over once, then calls carry integers. It is opened, may die
// and be opened again, and is closed; errors come back as negative errnos, and only misuse throws. See socket.d.ts.
#include "socket.h"

#include <sys/poll.h>

#include <cerrno>
#include <memory>

#include "arguments.h"
#include "collector.h"
#include "faults.h"
#include "poll.h"
#include "transmitter.h"

namespace {

constexpr double kMostBuffer = 1u << 30;
constexpr unsigned kRounds = 4;  // of the reader per event, while it takes everything and more has come

class Socket : public Napi::ObjectWrap<Socket> {
 public:
  explicit Socket(const Napi::CallbackInfo& info);
  ~Socket() { Release(); }
  Napi::Value Open(const Napi::CallbackInfo& info);
  Napi::Value Send(const Napi::CallbackInfo& info);
  Napi::Value Receive(const Napi::CallbackInfo& info);
  Napi::Value Watch(const Napi::CallbackInfo& info);
  Napi::Value Waits(const Napi::CallbackInfo& info);
  Napi::Value PeerAt(const Napi::CallbackInfo& info);
  Napi::Value Local(const Napi::CallbackInfo& info);
  Napi::Value Capabilities(const Napi::CallbackInfo& info);
  Napi::Value CopyCounters(const Napi::CallbackInfo& info);
  Napi::Value SetEcn(const Napi::CallbackInfo& info);
  Napi::Value Close(const Napi::CallbackInfo& info);

 private:
  bool ReadWishes(Napi::Object settings, double* queueBytes, double* longest);
  bool ReadTables(Napi::Object tables);
  template <typename T>
  bool ReadTable(Napi::Object tables, const char* name, napi_typedarray_type type, size_t least, View<T>* view);
  bool HasTables() const;
  static void OnReady(void* socket, int status, int events);
  void HandleEvents(int status, int events);
  void HandleReadable();
  bool IsReadable() const;
  int TakePendingError() const;
  void Call(int code);
  void Die(int error);
  void UpdateWatch();
  void Release();

  Counters counters_;
  std::unique_ptr<Transmitter> transmitter_;
  std::unique_ptr<Collector> collector_;
  Wishes wishes_;
  Granted granted_;
  Napi::FunctionReference callback_;
  Napi::ObjectReference buffers_[6];  // that the tables stand in
  size_t bufferCount_ = 0;
  Poll* poll_ = nullptr;
  int fd_ = -1;
  bool isWanted_ = false;  // the reader wants to be called
  bool isCalled_ = false;  // and was, and has not received since
  bool isPaused_ = false;  // so that watching for more is in vain
};

Napi::Object Describe(Napi::Env env, const Peer& peer) {
  Napi::Object address = Napi::Object::New(env);
  address.Set("host", FormatHost(peer.remote, peer.scope));
  address.Set("port", Napi::Number::New(env, peer.port));
  if (peer.HasLocal()) address.Set("local", FormatHost(peer.local, peer.localScope));
  return address;
}

// encodePeer(host, port, local?): 44 bytes for `send` and `open`, or undefined if a host is not numeric.
Napi::Value EncodePeer(const Napi::CallbackInfo& info) {
  Napi::Env env = info.Env();
  double port;
  const bool hasLocal = info.Length() > 2 && !info[2].IsUndefined();
  if (!info[0].IsString() || !ReadNumber(env, info[1], 0, 65'535, &port) || (hasLocal && !info[2].IsString())) {
    return Refuse(env, "encodePeer(host: string, port: 0 to 65535, local?: string)");
  }
  Peer peer = {};
  peer.port = static_cast<uint16_t>(port);
  if (!ParseHost(info[0].As<Napi::String>().Utf8Value().c_str(), peer.remote, &peer.scope)) return env.Undefined();
  if (hasLocal && !ParseHost(info[2].As<Napi::String>().Utf8Value().c_str(), peer.local, &peer.localScope)) {
    return env.Undefined();
  }
  Napi::Uint8Array bytes = Napi::Uint8Array::New(env, sizeof peer);
  memcpy(bytes.Data(), &peer, sizeof peer);
  return bytes;
}

bool ReadPeer(napi_env env, napi_value value, Peer* peer) {
  View<uint8_t> bytes;
  if (!ReadView(env, value, napi_uint8_array, &bytes) || bytes.length != sizeof *peer) return false;
  memcpy(peer, bytes.data, sizeof *peer);
  return true;
}

Socket::Socket(const Napi::CallbackInfo& info) : Napi::ObjectWrap<Socket>(info) {
  double queueBytes;
  double longest;
  if (!info[0].IsObject() || !info[1].IsObject() || !info[2].IsFunction() ||
      !ReadWishes(info[1].As<Napi::Object>(), &queueBytes, &longest)) {
    Refuse(info.Env(), "Socket(tables, settings, callback)");
    return;
  }
  collector_ = std::make_unique<Collector>(&counters_, static_cast<size_t>(longest));
  transmitter_ = std::make_unique<Transmitter>(&counters_, static_cast<size_t>(queueBytes));
  if (!ReadTables(info[0].As<Napi::Object>())) {
    collector_.reset();
    Refuse(info.Env(), "Socket(tables, …): a table is missing, of another type, or too short");
    return;
  }
  callback_ = Napi::Persistent(info[2].As<Napi::Function>());
}

bool Socket::ReadWishes(Napi::Object settings, double* queueBytes, double* longest) {
  double receiveBuffer, sendBuffer, ecn, gso, gro;
  if (!ReadNamedNumber(settings, "receiveBufferBytes", 0, kMostBuffer, &receiveBuffer) ||
      !ReadNamedNumber(settings, "sendBufferBytes", 0, kMostBuffer, &sendBuffer) ||
      !ReadNamedNumber(settings, "sendQueueBytes", 0, kMostBuffer, queueBytes) ||
      !ReadNamedNumber(settings, "longestDatagram", 1, 65'507, longest) ||
      !ReadNamedNumber(settings, "sendEcn", 0, 3, &ecn) || !ReadNamedNumber(settings, "gso", 0, 1, &gso) ||
      !ReadNamedNumber(settings, "gro", 0, 1, &gro)) {
    return false;
  }
  wishes_.receiveBuffer = static_cast<int>(receiveBuffer);
  wishes_.sendBuffer = static_cast<int>(sendBuffer);
  wishes_.sendEcn = static_cast<int>(ecn);
  wishes_.gso = gso != 0;
  wishes_.gro = gro != 0;
  return true;
}

template <typename T>
bool Socket::ReadTable(Napi::Object tables, const char* name, napi_typedarray_type type, size_t least, View<T>* view) {
  Napi::Value value = tables.Get(name);
  if (!ReadView(Env(), value, type, view) || view->length < least) return false;
  Napi::ArrayBuffer buffer = value.As<Napi::TypedArray>().ArrayBuffer();
  if (!buffer.IsArrayBuffer()) return false;  // memory that others may shrink or share is none to keep
  buffers_[bufferCount_++] = Napi::ObjectReference::New(buffer, 1);
  return true;
}

bool Socket::ReadTables(Napi::Object tables) {
  View<uint8_t> slab, ecn;
  View<uint32_t> starts, ends, peers, news;
  if (!ReadTable(tables, "starts", napi_uint32_array, 1, &starts)) return false;
  const size_t capacity = starts.length;
  if (!ReadTable(tables, "bytes", napi_uint8_array, Collector::kTrainSlot, &slab) ||
      !ReadTable(tables, "ends", napi_uint32_array, capacity, &ends) ||
      !ReadTable(tables, "ecn", napi_uint8_array, capacity, &ecn) ||
      !ReadTable(tables, "peers", napi_uint32_array, capacity, &peers) ||
      !ReadTable(tables, "news", napi_uint32_array, Collector::kNewsLength, &news)) {
    return false;
  }
  collector_->PointAt({slab.data, slab.length, starts.data, ends.data, ecn.data, peers.data, capacity, news.data});
  return true;
}

// Memory that JS gave away since is not ours to write to.
bool Socket::HasTables() const {
  for (size_t i = 0; i < bufferCount_; i++) {
    bool isDetached = true;
    napi_is_detached_arraybuffer(Env(), buffers_[i].Value(), &isDetached);
    if (isDetached) return false;
  }
  return bufferCount_ > 0;
}

// open(at): 0 or a negative errno. What was open is closed first.
Napi::Value Socket::Open(const Napi::CallbackInfo& info) {
  Peer at;
  if (!ReadPeer(info.Env(), info[0], &at) || callback_.IsEmpty()) return Refuse(info.Env(), "open(at: encoded peer)");
  Release();
  int fd = -1;
  int error = OpenDescriptor(at, wishes_, &fd, &granted_);
  Poll* poll = error == 0 ? Poll::Open(info.Env(), fd, OnReady, this, &error) : nullptr;
  if (poll != nullptr) {
    poll_ = poll;
    fd_ = fd;
    transmitter_->Use(fd, granted_);
    collector_->Use(fd, granted_);
    isCalled_ = isPaused_ = false;
    Ref();  // an open socket lives, whoever forgets it
    UpdateWatch();
  }
  return Napi::Number::New(info.Env(), error);
}

// send(slab, stride, lengths, count, to): how many were refused, or a negative errno if the socket died.
Napi::Value Socket::Send(const Napi::CallbackInfo& info) {
  Napi::Env env = info.Env();
  View<uint8_t> slab;
  View<uint32_t> lengths;
  double stride, count;
  Peer to;
  if (!ReadView(env, info[0], napi_uint8_array, &slab) || !ReadNumber(env, info[1], 0, UINT32_MAX, &stride) ||
      !ReadView(env, info[2], napi_uint32_array, &lengths) || !ReadNumber(env, info[3], 0, UINT32_MAX, &count) ||
      !ReadPeer(env, info[4], &to) || count > static_cast<double>(lengths.length)) {
    return Refuse(env, "send(slab: Uint8Array, stride, lengths: Uint32Array, count, to: encoded peer)");
  }
  const auto step = static_cast<size_t>(stride);
  const auto datagrams = static_cast<size_t>(count);
  for (size_t i = 0; i < datagrams; i++) {
    if (i * step + lengths.data[i] > slab.length) return Refuse(env, "send: a datagram ends behind the slab");
  }
  if (fd_ < 0) {
    counters_.AddError(kSendErrors, EBADF, count);
    return Napi::Number::New(env, count);
  }
  const double errors = counters_.Get(kSendErrors);
  const int result = transmitter_->Send(slab.data, step, lengths.data, datagrams, to);
  if (result < 0) Release();
  else if (transmitter_->IsWaiting()) UpdateWatch();
  return Napi::Number::New(env, result < 0 ? result : counters_.Get(kSendErrors) - errors);
}

// receive(most): how many datagrams stand in the tables, or a negative errno if the socket died.
Napi::Value Socket::Receive(const Napi::CallbackInfo& info) {
  double most;
  if (!ReadNumber(info.Env(), info[0], 0, UINT32_MAX, &most)) return Refuse(info.Env(), "receive(most: number)");
  if (!HasTables()) return Refuse(info.Env(), "receive: the tables are gone");
  const int result = collector_->Collect(static_cast<size_t>(most));
  if (result < 0) Release();
  isCalled_ = isPaused_ = false;
  UpdateWatch();
  return Napi::Number::New(info.Env(), result);
}

// watch(on): whether to call when datagrams wait. Not again until `receive` was called.
Napi::Value Socket::Watch(const Napi::CallbackInfo& info) {
  isWanted_ = info[0].ToBoolean();
  isCalled_ = isPaused_ = false;
  UpdateWatch();
  return info.Env().Undefined();
}

// waits(): whether datagrams wait now.
Napi::Value Socket::Waits(const Napi::CallbackInfo& info) {
  const bool waits = collector_ != nullptr && (collector_->HasLeft() || IsReadable());
  return Napi::Boolean::New(info.Env(), waits);
}

// peerAt(index): the address of a peer that `receive` told of.
Napi::Value Socket::PeerAt(const Napi::CallbackInfo& info) {
  double index;
  if (!ReadNumber(info.Env(), info[0], 0, Collector::kMostPeers - 1, &index) || collector_ == nullptr) {
    return Refuse(info.Env(), "peerAt(index: number)");
  }
  return Describe(info.Env(), collector_->PeerAt(static_cast<size_t>(index)));
}

// local(): the bound address, undefined when there is none.
Napi::Value Socket::Local(const Napi::CallbackInfo& info) {
  sockaddr_storage name = {};
  socklen_t length = sizeof name;
  if (fd_ < 0 || getsockname(fd_, reinterpret_cast<sockaddr*>(&name), &length) != 0) return info.Env().Undefined();
  Peer peer;
  ReadSockaddr(name, &peer);
  return Describe(info.Env(), peer);
}

// capabilities(): what the kernel granted at open, and what is left of it.
Napi::Value Socket::Capabilities(const Napi::CallbackInfo& info) {
  Napi::Env env = info.Env();
  Napi::Object out = Napi::Object::New(env);
  const auto number = [&](const char* name, int value) { out.Set(name, Napi::Number::New(env, value)); };
  const auto flag = [&](const char* name, bool value) { out.Set(name, Napi::Boolean::New(env, value)); };
  number("segments", fd_ < 0 ? 0 : transmitter_->Segments());
  flag("gro", fd_ >= 0 && collector_->HasGro());
  number("receiveBufferBytes", granted_.receiveBuffer);
  number("sendBufferBytes", granted_.sendBuffer);
  flag("dontFragment", granted_.dontFragment);
  flag("ecnReceive", granted_.ecnIn);
  flag("ecnSend", granted_.ecnOut);
  flag("packetInfo", granted_.packetInfo);
  flag("dropCounter", granted_.drops);
  return out;
}

// setEcn(codepoint): marks what is sent from now on. False if the kernel refuses.
Napi::Value Socket::SetEcn(const Napi::CallbackInfo& info) {
  double codepoint;
  if (!ReadNumber(info.Env(), info[0], 0, 3, &codepoint)) return Refuse(info.Env(), "setEcn(codepoint: 0 to 3)");
  wishes_.sendEcn = static_cast<int>(codepoint);
  if (fd_ >= 0) granted_.ecnOut = SetSendEcn(fd_, granted_.family, wishes_.sendEcn);
  return Napi::Boolean::New(info.Env(), fd_ >= 0 && granted_.ecnOut);
}

// counters(out: Float64Array): copies the table of counters.h.
Napi::Value Socket::CopyCounters(const Napi::CallbackInfo& info) {
  View<double> out;
  if (!ReadView(info.Env(), info[0], napi_float64_array, &out) || out.length < kCounters) {
    return Refuse(info.Env(), "counters(out: Float64Array of 256)");
  }
  counters_.CopyTo(out.data);
  return info.Env().Undefined();
}

Napi::Value Socket::Close(const Napi::CallbackInfo& info) {
  isWanted_ = false;
  if (transmitter_ != nullptr) transmitter_->LoseWaiting(ECANCELED);
  if (collector_ != nullptr) collector_->Forget();
  Release();
  return info.Env().Undefined();
}

void Socket::OnReady(void* socket, int status, int events) {
  auto* self = static_cast<Socket*>(socket);
  if (status == UV_ECANCELED) {  // the environment ends, and the descriptor with it
    self->poll_ = nullptr;
    self->fd_ = -1;
    self->transmitter_->Use(-1, self->granted_);
    self->collector_->Use(-1, self->granted_);
    return;
  }
  Napi::HandleScope scope(self->Env());
  const Napi::ObjectReference alive = Napi::Persistent(self->Value());
  self->HandleEvents(status, events);
}

void Socket::HandleEvents(int status, int events) {
  if (status < 0) {
    const int error = TakePendingError();
    if (!collector_->TakeError(error)) return Die(error != 0 ? error : EIO);
  }
  if ((events & UV_WRITABLE) != 0) {
    const int result = transmitter_->Flush();
    if (result < 0) return Die(-result);
    UpdateWatch();
  }
  if ((events & UV_READABLE) != 0) HandleReadable();
}

// Calls the reader, and again if it took everything at once and more has come since: that is cheaper than the way round
// through epoll. A reader that did not come yet is not called again; then nothing is watched until it does.
void Socket::HandleReadable() {
  if (isCalled_) {
    isPaused_ = true;
    return UpdateWatch();
  }
  for (unsigned round = 0; round < kRounds; round++) {
    isCalled_ = true;
    Call(0);
    if (isCalled_ || !isWanted_ || !IsReadable()) return;
  }
}

bool Socket::IsReadable() const {
  if (fd_ < 0) return false;
  pollfd what = {fd_, POLLIN, 0};
  return poll(&what, 1, 0) > 0 && (what.revents & POLLIN) != 0;
}

// The error that the descriptor holds, which asking takes away; or why it cannot be asked.
int Socket::TakePendingError() const {
  int error = 0;
  socklen_t length = sizeof error;
  return getsockopt(fd_, SOL_SOCKET, SO_ERROR, &error, &length) == 0 ? error : errno;
}

void Socket::Call(int code) { CallFromLoop(Env(), Value(), callback_.Value(), code); }

void Socket::Die(int error) {
  Release();
  Call(-error);
}

void Socket::UpdateWatch() {
  if (poll_ == nullptr) return;
  poll_->Watch((isWanted_ && !isPaused_ ? UV_READABLE : 0) | (transmitter_->IsWaiting() ? UV_WRITABLE : 0));
}

void Socket::Release() {
  if (poll_ == nullptr) return;
  Poll* poll = poll_;
  poll_ = nullptr;
  fd_ = -1;
  transmitter_->Use(-1, granted_);
  collector_->Use(-1, granted_);
  poll->Close();
  Unref();
}

}  // namespace

void InitSocket(Napi::Env env, Napi::Object exports) {
#ifdef PURE_LINK_FAULTS
  InitFaults(env, exports);
#endif
  exports.Set("encodePeer", Napi::Function::New<EncodePeer>(env, "encodePeer"));
  exports.Set("Socket", Socket::DefineClass(env, "Socket",
                                            {Socket::InstanceMethod<&Socket::Open>("open"),
                                             Socket::InstanceMethod<&Socket::Send>("send"),
                                             Socket::InstanceMethod<&Socket::Receive>("receive"),
                                             Socket::InstanceMethod<&Socket::Watch>("watch"),
                                             Socket::InstanceMethod<&Socket::Waits>("waits"),
                                             Socket::InstanceMethod<&Socket::PeerAt>("peerAt"),
                                             Socket::InstanceMethod<&Socket::Local>("local"),
                                             Socket::InstanceMethod<&Socket::Capabilities>("capabilities"),
                                             Socket::InstanceMethod<&Socket::SetEcn>("setEcn"),
                                             Socket::InstanceMethod<&Socket::CopyCounters>("counters"),
                                             Socket::InstanceMethod<&Socket::Close>("close")}));
}
