// SPDX-License-Identifier: Apache-2.0
/// The seam between what answers and the network: requests in, answers out, a clock of the world.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/units.h"

namespace orrery::http {

struct HttpRequest {
  std::uint64_t exchange = 0;    ///< number of this request, of all connections
  std::uint64_t connection = 0;  ///< that it came on
  std::string method;
  std::string path;                                          ///< without its query
  std::string query;                                         ///< what follows "?"
  std::vector<std::pair<std::string, std::string>> headers;  ///< names in lower case
  std::string body;

  /// Returns the value of the first header of a name; empty: there is none.
  std::string_view header(std::string_view name) const;
  /// Returns how often a header stands there.
  std::int64_t count(std::string_view name) const;
};

/// An Answer is the way back to one client. All calls after the client has left do nothing.
class Answer {
 public:
  virtual ~Answer() = default;
  /// Sends all at once. `fields`: further lines of the header, each with its CRLF.
  virtual void send(int status, std::string_view type, std::string body,
                    std::string_view fields) = 0;
  void send(int status, std::string_view type, std::string body) {
    send(status, type, std::move(body), {});
  }
  /// Begins a stream of pieces, which end() ends.
  virtual void begin(std::string_view type) = 0;
  virtual void piece(std::string_view text) = 0;
  virtual void end() = 0;
};

/// A Handler answers, now or later. It is called by one thread, and never while it calls.
class Handler {
 public:
  virtual ~Handler() = default;
  virtual void asked(HttpRequest request, std::shared_ptr<Answer> answer) = 0;
  /// The client of an exchange left before the end of its answer.
  virtual void left(std::uint64_t exchange) = 0;
  virtual void closed(std::uint64_t connection) = 0;
  /// The time of Wall::wake_at() has come.
  virtual void woken() = 0;
};

/// A Wall is the clock of the world, from the begin of its run on.
class Wall {
 public:
  virtual ~Wall() = default;
  virtual Time now() const = 0;
  /// Wakes the handler at `at`, instead of what was asked before.
  virtual void wake_at(Time at) = 0;
};

/// Limits are what a client may take, of header, body, and time without a sign of life.
struct Limits {
  Bytes header = 16_KiB;
  Bytes body = 8_MiB;
  Bytes bodies = 256_MiB;   ///< of all requests that are being read
  Bytes buffered = 16_MiB;  ///< of a stream, not yet read by its client; beyond it is closed
  Time idle = 30_s;
  std::int64_t connections = 20'000;
  bool signals = true;               ///< SIGINT and SIGTERM stop it
  std::function<bool()> go_on = {};  ///< asked once signals stop it: false where one came before
  std::string fields = {};           ///< lines of the header of every answer, each with its CRLF
};

/// An HTTP/1.1 server on one thread. A client that is slow, leaves, or sends what is no request
/// costs others nothing: its answer waits in memory up to a limit, then its connection is closed.
class HttpServer : public Wall {
 public:
  /// Listens for requests. `address`: "127.0.0.1:8000", "[::1]:8000"; port 0: a free one. `handler`
  /// outlives it. Raises the process's limit of open files to what it may be. Mistakes: no such
  /// address, one in use.
  static Result<std::unique_ptr<HttpServer>> listen(const std::string& address,
                                                    const Limits& limits, Handler& handler);
  /// Returns where it listens, with its port.
  virtual std::string address() const = 0;
  /// Runs `job` on a thread of its own and what that returns on the server's.
  virtual void work(std::function<std::function<void()>()> job) = 0;
  /// Runs until stop() or a signal.
  virtual void run() = 0;
  /// Stops it, from any thread.
  virtual void stop() = 0;
};

}  // namespace orrery::http
