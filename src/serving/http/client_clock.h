// SPDX-License-Identifier: Apache-2.0
/// Says when virtual time may go on, where clients say when their requests arrive.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "base/units.h"

namespace orrery::http {

/// A client that gives its requests arrivals is registered by the first of them. Time stands until
/// as many as were announced have come, and then whenever one of these neither waits for an answer
/// nor has closed: it may still send a request that arrives before the next event. When all have
/// closed, time follows the world's clock again, and arrivals of the next ones count from its then.
///
/// Source: conservative synchronisation (Chandy and Misra, 1979), with people for processes.
class ClientClock {
 public:
  /// Requires announced >= 1.
  explicit ClientClock(std::int64_t announced) : announced_(announced) {}

  /// A client asks; `now`: the begin of arrivals, if it is the first.
  void asked(const std::string& client, Time now);
  void answered(const std::string& client);
  /// Asks no more; answers that it waits for may still come.
  void closed(const std::string& client);

  /// Returns whether time goes by clients, and if so whether it may.
  bool drives() const { return !clients_.empty(); }
  bool may_go_on() const { return waiting_ + closed_ >= announced_; }
  /// The begin of arrivals.
  Time begin() const { return begin_; }

 private:
  struct Client {
    std::int64_t unanswered = 0;
    bool closed = false;
  };
  void count(const Client& client, std::int64_t by);
  void settle();

  std::int64_t announced_;
  std::map<std::string, Client> clients_;
  std::int64_t waiting_ = 0;
  std::int64_t closed_ = 0;  ///< of those that wait for nothing
  Time begin_{0};
};

}  // namespace orrery::http
