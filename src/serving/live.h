// SPDX-License-Identifier: Apache-2.0
/// Engines that serve requests which come while they run: the fleet of serve(), with a source of
/// work that does not know what comes next.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <queue>
#include <utility>
#include <vector>

#include "serving/client.h"
#include "serving/serve.h"

namespace orrery::serving {

class Fleet;

enum class Ending : std::uint8_t { answered, refused, rejected, aborted };

/// A LiveListener is told what becomes of requests, in the order in which steps are computed: of
/// several engines not in that of times.
class LiveListener {
 public:
  virtual ~LiveListener() = default;
  /// `tokens` of the answer in all are there at `at`.
  virtual void emitted(std::size_t request, Time at, std::int64_t tokens) = 0;
  /// Blocks of a copy can be found from `at` on, or no longer (Inbox::changed).
  virtual void changed(std::int64_t /*rank*/, Time /*at*/, std::size_t /*request*/,
                       const scheduler::KvChange& /*change*/) {}
  /// `served` has no meaning unless it was answered.
  virtual void ended(std::size_t request, Time at, Ending how, const Served& served) = 0;
};

/// Every step is scheduled. A request that is sent at t sees what serve() gives one that arrives at
/// t: with the same requests, times are equal to the picosecond. The memory of a request that has
/// ended is kept (about 0.5 KB).
///
/// Requires of what is sent: arrival >= the horizon of the last run_until(), else it is late.
class Live : private Inbox {
 public:
  /// `server` and `listener` outlive it.
  Live(Server& server, LiveListener& listener);
  ~Live() override;
  Live(const Live&) = delete;
  Live& operator=(const Live&) = delete;

  /// Returns the request's number, from 0 on in the order of calls.
  std::size_t send(requests::Request request);
  /// Ends a request that nobody waits for; nothing where it has ended.
  void abort(std::size_t request, Time at);
  /// Returns when the next step may begin or a request may reach a queue; Time::max(): never,
  /// before one is sent.
  Time next_event();
  /// Takes the steps that begin before `horizon`, to their ends.
  void run_until(Time horizon);

  /// Requests in steps, requests in queues or on the way, and the share of KV blocks in use.
  struct Load {
    std::int64_t running = 0;
    std::int64_t waiting = 0;
    double kv_use = 0;
  };
  Load load() const;
  const Run& run() const { return run_; }
  /// Says whether an engine can hold a request at all.
  bool takes(const requests::Request& request) const;
  /// Returns the run of all requests that were answered. Requires that nothing is asked after.
  Run finish(Time at);

 private:
  Time next() const override;
  std::optional<Delivery> pop(Time now) override;
  void ended(std::size_t request, Time at) override;
  void emitted(std::size_t request, Time at, std::int64_t tokens) override;
  void changed(std::int64_t rank, Time at, std::size_t request,
               const scheduler::KvChange& change) override {
    listener_.changed(rank, at, request, change);
  }

  struct Known {
    bool popped = false;
    bool over = false;
    bool aborted = false;
  };
  using Way = std::pair<Time, std::size_t>;  ///< when it is in the queue

  Run run_;
  ServeOptions options_;
  LiveListener& listener_;
  std::vector<requests::Request> requests_;
  std::vector<Known> known_;  ///< by request
  std::priority_queue<Way, std::vector<Way>, std::greater<>> on_the_way_;
  std::int64_t rejected_ = 0;
  std::int64_t blocks_ = 0;  ///< of all engines
  std::size_t open_ = 0;     ///< requests that are not over
  std::unique_ptr<Fleet> fleet_;
};

}  // namespace orrery::serving
