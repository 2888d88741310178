// SPDX-License-Identifier: Apache-2.0
#include "study/critical_path.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <map>
#include <optional>
#include <utility>

#include "machine/compute/compute_model.h"
#include "study/run_history.h"

namespace orrery {
namespace {

struct KernelCost {
  const Operator* op = nullptr;
  Phase phase = Phase::forward;
  Time alone{0};
  std::array<Time, kBoundCount> bounds{};
};

/// A compute node's kernels, and how long it takes when the host limits it (docs/models/simulate):
/// host_span = max over i of (i+1) dispatches + kernels i..n-1; `tail` are those kernels.
struct NodeCost {
  std::vector<KernelCost> kernels;
  Time work{0};
  Time host_span{0};
  Time tail{0};
};

NodeCost cost_of(const Node& node, const Device& device, Time dispatch) {
  NodeCost cost;
  for (const Operator& op : node.operators) {
    cost.kernels.push_back({&op, node.phase, kernel_time(op, device).alone, bounds_of(op, device)});
  }
  for (auto kernel = cost.kernels.rbegin(); kernel != cost.kernels.rend(); ++kernel) {
    cost.work += kernel->alone;
    if (cost.work >= cost.host_span) {
      cost.tail = cost.work;
    }
    cost.host_span = dispatch * kernel->op->kernels + std::max(cost.work, cost.host_span);
  }
  return cost;
}

/// Adds pieces up by category and by name.
class PathSum {
 public:
  void add(PathKind kind, const std::string& category, const std::string& item, Time time) {
    if (time == Time(0)) {
      return;
    }
    path_.by_kind[static_cast<std::size_t>(kind)] += time;
    add_to(categories_, kind, category, time);
    add_to(items_, kind, item, time);
  }
  void add_kernel(const KernelCost& kernel, Time time) {
    const auto name = [&](std::string_view what) {
      const std::string_view phase = name_of(kernel.phase);
      return what == phase ? std::string(what) : fmt::format("{} {}", phase, what);
    };
    add(PathKind::kernel, name(name_of(kernel.op->kind)), name(kernel.op->name), time);
    Time rest = time;  // the whole kernel, or its last part
    for (std::size_t bound = 0; bound < kBoundCount; ++bound) {
      const Time share = std::min(rest, kernel.bounds[bound]);
      path_.kernels[bound] += share;
      rest -= share;
    }
  }
  CriticalPath finish(Time step_time) {
    path_.step_time = step_time;
    path_.categories = sorted(categories_);
    path_.items = sorted(items_);
    return std::move(path_);
  }

 private:
  using Sums = std::map<std::pair<PathKind, std::string>, PathEntry>;

  static void add_to(Sums& sums, PathKind kind, const std::string& name, Time time) {
    PathEntry& entry = sums[{kind, name}];
    entry.kind = kind;
    entry.name = name;
    entry.time += time;
    ++entry.count;
  }
  static std::vector<PathEntry> sorted(const Sums& sums) {
    std::vector<PathEntry> entries;
    for (const auto& [key, entry] : sums) {
      entries.push_back(entry);
    }
    std::stable_sort(entries.begin(), entries.end(),
                     [](const PathEntry& a, const PathEntry& b) { return a.time > b.time; });
    return entries;
  }

  CriticalPath path_;
  Sums categories_;
  Sums items_;
};

class Walk {
 public:
  Walk(const Workload& workload, const Timeline& timeline, const Machine& machine)
      : workload_(workload), timeline_(timeline), machine_(machine) {}

  CriticalPath run() {
    rank_ = timeline_.critical_rank;
    now_ = timeline_.step_time;
    next_ = history().last_before(now_);
    while (now_ > Time(0)) {
      if (on_host_) {
        step_host();
      } else if (next_) {
        step_node(*next_);
      } else {
        book_until(Time(0), PathKind::wait, "wait", "wait");
      }
    }
    return sum_.finish(timeline_.step_time);
  }

 private:
  RankHistory& history() { return history_of(rank_); }
  RankHistory& history_of(std::int64_t rank) {
    const auto found = histories_.find(rank);
    return found != histories_.end()
               ? found->second
               : histories_.try_emplace(rank, workload_, timeline_, rank).first->second;
  }
  const Span& span_of(const RankHistory::Entry& entry) const { return timeline_.spans[entry.span]; }

  /// Books [begin, now].
  void book_until(Time begin, PathKind kind, const std::string& category, const std::string& item) {
    sum_.add(kind, category, item, now_ - begin);
    now_ = begin;
  }

  /// `number` ended at `now_`, or before when nothing that was recorded explains the gap.
  void step_node(Execution number) {
    const RankHistory::Entry& entry = history()[number];
    if (entry.end < now_) {
      book_until(entry.end, PathKind::wait, "wait", "wait");
    }
    switch (history().node_of(number).kind) {
      case Node::Kind::compute:
        return step_compute(number);
      case Node::Kind::collective:
      case Node::Kind::copy:
        return entry.span == RankHistory::kNone ? go_to_cause(number) : step_collective(number);
      case Node::Kind::send:
        book_message(span_of(entry), history().node_of(number));
        return go_to_cause(number);
      case Node::Kind::receive:
        return step_receive(number);
      case Node::Kind::wait:
        return go_to_cause(number);
    }
  }

  void go_to_cause(Execution number) {
    next_ = history().cause_of(number);
    if (next_ && history()[*next_].end > now_) {  // not what it waited for
      next_ = history().last_before(now_);
    }
  }

  void go_to_host() { on_host_ = true; }

  const NodeCost& cost(Execution number) {
    const Node& node = history().node_of(number);
    const auto found = costs_.find(&node);
    return found != costs_.end()
               ? found->second
               : costs_.emplace(&node, cost_of(node, machine_.device, workload_.host_dispatch))
                     .first->second;
  }

  void step_compute(Execution number) {
    const Span& span = span_of(history()[number]);
    const NodeCost& cost = this->cost(number);
    if (span.host_stall > Time(0) && span.host_begin + cost.host_span == span.end) {
      book_kernels(cost, cost.tail);
      book_until(span.host_begin, PathKind::host, "host", "host");
      return go_to_host();
    }
    sum_.add(PathKind::host, "host", "host", span.host_stall);
    now_ -= span.host_stall;
    const Time slowed = now_ - span.begin - cost.work;
    if (slowed > Time(0)) {
      sum_.add(PathKind::slowdown, "slowdown by communication", "slowdown by communication",
               slowed);
      now_ -= slowed;
    }
    book_kernels(cost, now_ - span.begin);
    go_to_cause(number);
  }

  /// The last kernels of the node, `time` of them.
  void book_kernels(const NodeCost& cost, Time time) {
    now_ -= time;
    for (auto kernel = cost.kernels.rbegin(); kernel != cost.kernels.rend(); ++kernel) {
      const Time part = std::min(kernel->alone, time);
      sum_.add_kernel(*kernel, part);
      time -= part;
    }
    assert(time == Time(0) && "the node's kernels fill its time");
  }

  /// A copy is a collective of its own rank.
  void step_collective(Execution number) {
    const Node& node = history().node_of(number);
    const Span span = span_of(history()[number]);
    const bool copy = node.kind == Node::Kind::copy;
    book_until(span.begin, copy ? PathKind::copy : PathKind::collective,
               fmt::format("{} {}", name_of(span.axis), copy ? "copy" : name_of(node.collective)),
               node.name);
    const auto [member, execution] = copy ? std::pair(rank_, number) : last_to_arrive(span, number);
    rank_ = member;
    const Span& its = span_of(history()[execution]);
    if (its.host_end > its.ready && its.host_end == now_) {
      return go_to_host();
    }
    go_to_cause(execution);
  }

  /// Simulated member that the collective began with.
  std::pair<std::int64_t, Execution> last_to_arrive(const Span& span, Execution number) {
    for (const std::int64_t member : workload_.layout.group(rank_, span.axis)) {
      const bool simulated =
          std::binary_search(timeline_.ranks.begin(), timeline_.ranks.end(), member);
      const auto its =
          simulated ? history_of(member).during(span.stream, span.begin, span.end) : std::nullopt;
      if (its) {
        const Span& arrival = span_of(history_of(member)[*its]);
        const Time host = arrival.host_end > arrival.host_begin ? arrival.host_end : Time(0);
        if (std::max(arrival.ready, host) == span.begin) {
          return {member, *its};
        }
      }
    }
    return {rank_, number};
  }

  void book_message(const Span& span, const Node& node) {
    book_until(span.begin, PathKind::message, fmt::format("{} message", name_of(span.axis)),
               node.name);
  }

  /// A message that came before its receive was posted did not delay it.
  void step_receive(Execution number) {
    const RankHistory::Entry& entry = history()[number];
    const Span& message = span_of(entry);
    if (message.end < now_) {
      return go_to_cause(number);
    }
    rank_ = message.rank;
    const auto sent = history().with_span(entry.span);
    assert(sent && "a message has its sender");
    return sent ? step_node(*sent) : go_to_cause(number);
  }

  /// At `now_` the host became free, because of its own work or of what it waited for.
  void step_host() {
    if (const auto busy = history().host_until(now_)) {
      return book_until(span_of(history()[*busy]).host_begin, PathKind::host, "host", "host");
    }
    on_host_ = false;
    next_ = history().synchronised(now_);
    if (!next_) {
      next_ = history().last_before(now_);
    }
  }

  const Workload& workload_;
  const Timeline& timeline_;
  const Machine& machine_;
  std::map<std::int64_t, RankHistory> histories_;  ///< of the ranks that the path visits
  std::map<const Node*, NodeCost> costs_;
  PathSum sum_;
  std::int64_t rank_ = 0;
  Time now_{0};
  std::optional<Execution> next_;  ///< ended at now_
  bool on_host_ = false;
};

}  // namespace

CriticalPath critical_path(const Workload& workload, const Timeline& timeline,
                           const Machine& machine) {
  return Walk(workload, timeline, machine).run();
}

}  // namespace orrery
