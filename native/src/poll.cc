// A Poll is deleted in libuv's close callback and nowhere else.
#include "poll.h"

#include <unistd.h>

Poll* Poll::Open(napi_env env, int fd, Ready ready, void* owner, int* error) {
  uv_loop_t* loop = nullptr;
  if (napi_get_uv_event_loop(env, &loop) != napi_ok) {
    close(fd);
    *error = UV_EINVAL;
    return nullptr;
  }
  Poll* poll = new Poll(ready, owner, fd);
  *error = uv_poll_init(loop, &poll->handle_, fd);
  if (*error != 0) {
    close(fd);
    delete poll;
    return nullptr;
  }
  poll->handle_.data = poll;
  napi_add_async_cleanup_hook(env, OnEnvironmentEnds, poll, &poll->hook_);
  poll->events_ = -1;
  poll->Watch(0);
  return poll;
}

void Poll::Watch(int events) {
  if (events == events_) return;
  events_ = events;
  // A datagram socket never disconnects: watching for that alone keeps the loop alive and costs nothing.
  uv_poll_start(&handle_, events == 0 ? UV_DISCONNECT : events, OnEvent);
}

void Poll::Ref(bool keepsLoopAlive) {
  auto* handle = reinterpret_cast<uv_handle_t*>(&handle_);
  if (keepsLoopAlive) uv_ref(handle);
  else uv_unref(handle);
}

void Poll::Close() {
  owner_ = nullptr;
  uv_close(reinterpret_cast<uv_handle_t*>(&handle_), OnClosed);
  close(fd_);
}

void Poll::OnEvent(uv_poll_t* handle, int status, int events) {
  Poll* poll = static_cast<Poll*>(handle->data);
  // After an error libuv has stopped watching.
  if (status < 0) {
    const int wanted = poll->events_;
    poll->events_ = -1;
    poll->Watch(wanted);
  }
  if (poll->owner_ != nullptr) poll->ready_(poll->owner_, status, events);
}

void Poll::OnClosed(uv_handle_t* handle) {
  Poll* poll = static_cast<Poll*>(handle->data);
  if (poll->hook_ != nullptr) napi_remove_async_cleanup_hook(poll->hook_);
  delete poll;
}

void Poll::OnEnvironmentEnds(napi_async_cleanup_hook_handle, void* data) {
  Poll* poll = static_cast<Poll*>(data);
  if (poll->owner_ == nullptr) return;  // closing already: OnClosed follows
  poll->ready_(poll->owner_, UV_ECANCELED, 0);
  poll->Close();
}
