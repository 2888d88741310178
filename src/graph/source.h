// SPDX-License-Identifier: Apache-2.0
/// A Source says what the roles of a workload do, one instance of a template after the other.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "base/units.h"

namespace orrery::graph {

struct Instance {
  int template_index = 0;
  int chunk = 0;  ///< model chunk (virtual stage) on this rank
  std::int64_t microbatch = 0;
  std::int64_t step = 0;  ///< of a run of several

  friend bool operator==(const Instance&, const Instance&) = default;
};

/// Next is what a role is to do next: an instance now, nothing before a moment or before something
/// has finished, or nothing any more.
struct Next {
  enum class Kind : std::uint8_t { issue, wait, done };
  Kind kind = Kind::done;
  Instance instance;         ///< of issue
  Time until = Time::max();  ///< of wait: ask again then, or when an instance has finished

  static Next issue(const Instance& instance) { return {Kind::issue, instance, Time::max()}; }
  static Next wait(Time until) { return {Kind::wait, {}, until}; }
  static Next done() { return {}; }
};

class IssueList;

/// A stream of work. Every rank of a role is given the same instances in the same order: `index` is
/// how many it has been given before. A run asks its own copy (restart), in time order, so a source
/// may keep state and react to what has finished: a stream of requests does, a training step does
/// not.
class Source {
 public:
  virtual ~Source() = default;
  virtual std::unique_ptr<Source> restart() const = 0;
  virtual Next next(int role, std::int64_t index, Time now) = 0;
  /// Instance number `index` of a rank of the role is done.
  virtual void finished(int /*role*/, std::int64_t /*index*/, Time /*now*/) {}
  /// Returns whether finished() can change what comes next; otherwise it need not be called.
  virtual bool listens() const { return false; }
  /// Returns the source as a list, if it is one whatever happens.
  virtual const IssueList* list() const { return nullptr; }
};

/// From instance `first` on, instance i + length is instance i again, `microbatches` and `steps`
/// later, as long as both come before `end`. An inner period lies in one step (steps = 0), an outer
/// one is made of whole steps.
struct Period {
  std::int64_t first = 0;
  std::int64_t end = 0;
  std::int64_t length = 1;
  std::int64_t microbatches = 1;
  std::int64_t steps = 0;

  friend bool operator==(const Period&, const Period&) = default;
};

/// Work that is known beforehand, as a pure function: no memory per instance.
class IssueList : public Source {
 public:
  /// Requires 0 <= index < length(role).
  virtual Instance at(int role, std::int64_t index) const = 0;
  virtual std::int64_t length(int role) const = 0;
  /// Returns the longest steady part of the role's list, if it has one.
  virtual std::optional<Period> period(int /*role*/) const { return std::nullopt; }
  /// Returns the steady parts that end after instance `from`: the next inner one, if there is one,
  /// then the outer one, if there is one.
  virtual std::vector<Period> periods(int role, std::int64_t from) const;
  /// Returns the number of steps that the list is made of; Instance::step says which an instance
  /// belongs to.
  virtual std::int64_t steps() const { return 1; }

  Next next(int role, std::int64_t index, Time /*now*/) override {
    return index < length(role) ? Next::issue(at(role, index)) : Next::done();
  }
  const IssueList* list() const override { return this; }
};

/// The same list without its steady middle: every role leaves out as many microbatches, or steps,
/// and keeps at least `kept` periods. What holds for the order of messages and collectives in it
/// holds in the whole list.
class Excerpt {
 public:
  /// Requires that `list` outlives the excerpt; kept >= 1.
  Excerpt(const IssueList& list, std::size_t roles, std::int64_t kept);

  /// Periods that are left out in every role.
  std::int64_t left_out() const { return left_out_; }
  /// Calls visit(instance, times) for every instance of the excerpt in order; `times`: how often
  /// the whole list has it (of the last kept period also for those left out).
  template <class Visit>
  void for_each(int role, Visit&& visit) const {
    const Period& period = periods_[static_cast<std::size_t>(role)];
    const std::int64_t gap = period.first + kept_ * period.length;
    const std::int64_t length = list_.length(role);
    for (std::int64_t i = 0; i < length; ++i) {
      const bool last_kept = left_out_ > 0 && i >= gap - period.length && i < gap;
      visit(list_.at(role, i), last_kept ? 1 + left_out_ : 1);
      if (left_out_ > 0 && i + 1 == gap) {
        i += left_out_ * period.length;
      }
    }
  }

 private:
  const IssueList& list_;
  std::vector<Period> periods_;
  std::int64_t kept_;
  std::int64_t left_out_ = 0;
};

/// The lists as they stand, by role: imported traces, small examples, what a run has issued.
class InstanceLists final : public IssueList {
 public:
  explicit InstanceLists(std::vector<std::vector<Instance>> lists) : lists_(std::move(lists)) {}
  std::unique_ptr<Source> restart() const override {
    return std::make_unique<InstanceLists>(*this);
  }
  Instance at(int role, std::int64_t index) const override {
    return lists_[static_cast<std::size_t>(role)][static_cast<std::size_t>(index)];
  }
  std::int64_t length(int role) const override {
    return static_cast<std::int64_t>(lists_[static_cast<std::size_t>(role)].size());
  }

 private:
  std::vector<std::vector<Instance>> lists_;
};

}  // namespace orrery::graph
