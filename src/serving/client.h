// SPDX-License-Identifier: Apache-2.0
/// Clients send requests; this is the way of those to an engine's queue. Internal to this folder.
#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <optional>
#include <queue>
#include <utility>
#include <vector>

#include "serving/requests/request.h"
#include "serving/scheduler/kv_book.h"

namespace orrery::serving {

/// A request that has reached a queue.
struct Delivery {
  std::size_t request = 0;  ///< number in the client's list
  Time sent{0};
  Time queued{0};
};

/// An Inbox is what an engine asks for work and tells of its end.
class Inbox {
 public:
  virtual ~Inbox() = default;
  /// Returns when the next request reaches the queue; Time::max() if none does before another ends.
  virtual Time next() const = 0;
  /// Returns one that is there at `now`, in order of arrival.
  virtual std::optional<Delivery> pop(Time now) = 0;
  /// Hears that a request is answered, or refused.
  virtual void ended(std::size_t request, Time at) = 0;
  /// Hears that `tokens` of a request's answer in all are there at `at`. It hears nothing of steps
  /// that are skipped.
  virtual void emitted(std::size_t /*request*/, Time /*at*/, std::int64_t /*tokens*/) {}
  /// Hears that blocks of a copy (`rank`: of all engines') can be found, or no longer. Of those
  /// that a request has stored, `request` is its number.
  virtual void changed(std::int64_t /*rank*/, Time /*at*/, std::size_t /*request*/,
                       const scheduler::KvChange& /*change*/) {}
  /// Blocks of requests that have ended are free at last: a lower tier has its copy of them.
  virtual void freed(Time /*at*/) {}
};

/// Sends a list of requests, each at its arrival, a further turn of a session so long after the
/// answer to the one before, or later if `max_concurrency` of them are
/// unanswered (0: no limit); a user of these thinks between an answer and the next request.
/// A request is in the queue `front_end` after it was sent.
class Client : public Inbox {
 public:
  Client(const std::vector<requests::Request>& requests, std::int64_t max_concurrency, Time think,
         Time front_end);

  Time next() const override;
  std::optional<Delivery> pop(Time now) override;
  void ended(std::size_t request, Time at) override;

 private:
  /// Returns the request that is sent next; requests_.size(): none before another ends.
  std::size_t next_request() const;
  Time next_sent() const;

  const std::vector<requests::Request>& requests_;
  bool limited_;
  Time think_;
  Time front_end_;
  std::size_t next_ = 0;                                                ///< the next first turn
  std::priority_queue<Time, std::vector<Time>, std::greater<>> users_;  ///< when each may send
  std::deque<Delivery> on_the_way_;
  std::vector<std::size_t> turn_after_;  ///< by request, of sessions; 0: none
  using Turn = std::pair<Time, std::size_t>;
  std::priority_queue<Turn, std::vector<Turn>, std::greater<>> turns_;  ///< that may be sent
};

}  // namespace orrery::serving
