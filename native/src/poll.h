// A descriptor watched on the loop of the environment. It owns the descriptor, outlives its owner until libuv has let go,
// and holds the environment back until then, so that a worker or the process may end at any moment.
#pragma once

#include <node_api.h>
#include <uv.h>

class Poll {
 public:
  // Called with the events, or a negative status. UV_ECANCELED: the environment ends, the Poll is gone, call no JS.
  using Ready = void (*)(void* owner, int status, int events);

  // Takes the descriptor over, also if it fails. Null with a negative errno if it fails.
  static Poll* Open(napi_env env, int fd, Ready ready, void* owner, int* error);

  // What to watch for: UV_READABLE, UV_WRITABLE, both or 0. The loop stays alive in any case, unless `Unref`.
  void Watch(int events);
  void Ref(bool keepsLoopAlive);
  // Closes the descriptor at once. The Poll is no longer the owner's.
  void Close();

 private:
  Poll(Ready ready, void* owner, int fd) : ready_(ready), owner_(owner), fd_(fd) {}
  static void OnEvent(uv_poll_t* handle, int status, int events);
  static void OnClosed(uv_handle_t* handle);
  static void OnEnvironmentEnds(napi_async_cleanup_hook_handle hook, void* poll);

  uv_poll_t handle_;
  Ready ready_;
  void* owner_;
  int fd_;
  int events_ = 0;
  napi_async_cleanup_hook_handle hook_ = nullptr;
};
