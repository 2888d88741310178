// SPDX-License-Identifier: Apache-2.0
/// Several engines behind one router: replicas, and pools that compute prompts or decode.
/// Internal to this folder.
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <queue>
#include <vector>

#include "serving/driver.h"
#include "serving/kv_transfers.h"

namespace orrery::serving {

/// FleetParts are what a fleet is made of: an empty run of an engine that decodes (or does all),
/// one of an engine that computes prompts, if there are such.
struct FleetParts {
  const Run* one = nullptr;
  step::StepCost* cost = nullptr;
  const Run* prefill = nullptr;
  step::StepCost* prefill_cost = nullptr;
  const machine::Machine* machine = nullptr;  ///< of all of them
};

/// A step of one engine is taken when no other can still change what it sees: engines advance in
/// the order of their clocks, to the next event of the router, the network or an answer.
///
/// Where the number of engines follows the load, `wanted` = ceil(unanswered / target_requests) of
/// them, within replicas and most_replicas (as the Kubernetes autoscaler's ratio): more are started
/// at once and take requests `start_up` later; if fewer have been wanted for `cool_down`, the last
/// ones get no more requests and stop with their last answer. A token bucket of `admit_burst` and
/// `admit_rate` rejects what comes too fast.
///
/// Engines have any degrees, those of the prefill pool their own.
///
/// With a prefill pool a request is computed there to its first token, keeps its blocks, gets
/// blocks in an engine of the decode pool, moves (kv_transfers.h) and decodes; a preempted one is
/// computed again where it decodes. What that engine's prefix cache has does not move.
class Fleet {
 public:
  Fleet(Run& run, const FleetParts& parts, const std::vector<requests::Request>& requests,
        Inbox& client, const ServeOptions& options);
  /// Takes what happens before `horizon`, as Driver::run_until().
  void run_until(Time horizon);
  /// Returns when the next of all that may happen does; Time::max(): nothing before a request.
  Time clock();
  /// Makes one run of all.
  void join();
  /// Takes every request from the engine that answered it, but those on their way to one.
  void join_requests();
  /// Says that somebody acts on answers: each is told of when no engine has passed its time.
  void couple() { coupled_ = true; }
  /// Ends a request that nobody waits for, at once or, where its keys and values move, after that.
  void abort(std::size_t request, Time at);
  /// Says whether a request was neither refused nor rejected.
  bool has(std::size_t request) const;
  bool takes(const requests::Request& request) const;
  /// Returns the times of a request that it has.
  Served served(std::size_t request) const;
  /// Returns the requests of all engines, and the blocks that they use.
  Measures::State load() const;

 private:
  /// One engine, and what the router knows of it.
  struct Member : Inbox {
    Fleet* fleet = nullptr;
    std::size_t index = 0;
    bool prefills = false;
    std::int64_t first = 0;       ///< device
    std::int64_t first_copy = 0;  ///< of all engines'
    Run run;
    std::unique_ptr<Driver> driver;
    std::deque<Delivery> arrived;
    std::deque<std::size_t> coming;  ///< requests whose keys and values want blocks here
    std::size_t numbered = 0;        ///< requests that it has or will have in its run
    std::int64_t requests = 0;       ///< unanswered
    std::int64_t tokens = 0;         ///< of their prompts and answers
    Time ready{0};                   ///< takes requests from then on; Time::max(): it is off
    Time since{0};                   ///< started
    bool leaves = false;             ///< gets no more requests

    Time next() const override { return arrived.empty() ? Time::max() : arrived.front().queued; }
    std::optional<Delivery> pop(Time now) override;
    void ended(std::size_t request, Time at) override;
    void freed(Time at) override;
    void emitted(std::size_t request, Time at, std::int64_t tokens) override {
      fleet->client_.emitted(request, at, tokens);
    }
    void changed(std::int64_t rank, Time at, std::size_t request,
                 const scheduler::KvChange& change) override {
      fleet->client_.changed(first_copy + rank, at, request, change);
    }
  };
  /// A request ends, or without one (kFreed) blocks are free.
  struct End {
    Time at{0};
    std::uint64_t order = 0;
    std::size_t member = 0;
    std::size_t request = 0;
    bool operator>(const End& other) const {
      return at != other.at ? at > other.at : order > other.order;
    }
  };
  static constexpr std::size_t kFreed = static_cast<std::size_t>(-1);
  /// Says where a request is.
  struct Place {
    std::int32_t prefill = -1;  ///< member that has computed its prompt
    std::size_t prefilled = 0;  ///< its number there
    std::int32_t member = -1;   ///< that answers it
    std::size_t served = 0;
    bool moving = false;   ///< its keys and values are on the network
    bool aborted = false;  ///< nobody waits for it
  };
  /// A Move is a transfer of keys and values.
  struct Move {
    std::size_t request = 0;
    int crossed = 0;  ///< outermost dimension of the machine
  };
  /// Ahead says what may happen next.
  struct Ahead {
    Member* first = nullptr;    ///< whose next step begins first
    Time clock{0};              ///< when
    Time second = Time::max();  ///< when that of the next one does
    Time event{0};              ///< of the router, the network or an answer
    bool over = false;          ///< nobody will ask or answer any more
  };
  /// Requires that nothing is asked for before `horizon`.
  Ahead look(Time horizon);

  /// Adds engines on the devices behind those of the last one.
  void add_members(const FleetParts& parts, bool prefill, std::int64_t count);
  static Placement place_of(const Member& member, std::size_t served);
  /// Engines as many as wanted from `at` on.
  void scale(Time at);
  void start(Member& member, Time at);
  void stop(Member& member, Time at);
  /// Withdraws so many engines: they take no more requests and stop when they have none.
  void withdraw(std::int64_t count, Time at);
  /// Returns when the next engine is ready or may go; Time::max(): none.
  Time next_change() const;
  /// Says whether the token bucket lets a request in.
  bool let_in(Time at);
  Member& choose(bool prefill, const requests::Request& request, std::size_t& turn);
  void take_arrivals(Time at);
  void take_ends(Time at);
  void hand_over(std::size_t request, Time at);
  void begin_transfers(Member& member, Time at);
  /// Tells the engines of a transfer that its links are shared, or are so no more.
  void meet(const Move& move, std::int64_t more);
  void follow_transfers(Time at);

  Run& run_;
  const std::vector<requests::Request>& requests_;
  Inbox& client_;
  const ServeOptions& options_;
  ServeOptions member_options_;
  bool coupled_;  ///< what one engine does may change what another sees
  std::vector<std::unique_ptr<Member>> members_;
  std::shared_ptr<KvStore> store_;  ///< behind the network, of all; none: no such tier
  std::optional<KvTransfers> network_;
  std::vector<Move> moving_;   ///< by transfer
  std::vector<Place> places_;  ///< by request
  std::priority_queue<End, std::vector<End>, std::greater<>> ends_;
  std::uint64_t order_ = 0;
  std::size_t arrival_turn_ = 0;
  std::size_t decode_turn_ = 0;
  std::size_t reported_ = 0;
  Time now_{0};               ///< of the last event
  Time fewer_ = Time::max();  ///< since when fewer engines have been wanted
  double bucket_ = 0;
  Time filled_{0};
};

}  // namespace orrery::serving
