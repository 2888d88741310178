// SPDX-License-Identifier: Apache-2.0
#include "study/critical_path.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <map>
#include <string_view>
#include <utility>

#include "base/lists.h"
#include "machine/compute/compute_model.h"
#include "machine/device_groups.h"

namespace orrery::study {
namespace {

struct KernelCost {
  const graph::Operator* op = nullptr;
  std::string_view phase;
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

NodeCost cost_of(const graph::Node& node, std::string_view phase, const compute::Device& device,
                 Time dispatch) {
  NodeCost cost;
  for (const graph::Operator& op : node.operators) {
    cost.kernels.push_back(
        {&op, phase, compute::kernel_time(op, device).alone, bounds_of(op, device)});
  }
  for (auto kernel = cost.kernels.rbegin(); kernel != cost.kernels.rend(); ++kernel) {
    cost.work += kernel->alone;
    if (cost.work >= cost.host_span) {
      cost.tail = cost.work;
    }
    cost.host_span = graph::issue_time(*kernel->op, dispatch) + std::max(cost.work, cost.host_span);
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
      const std::string_view phase = kernel.phase;
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
    std::vector<PathEntry> entries = mapped(sums, [](const auto& entry) { return entry.second; });
    std::stable_sort(entries.begin(), entries.end(),
                     [](const PathEntry& a, const PathEntry& b) { return a.time > b.time; });
    return entries;
  }

  CriticalPath path_;
  Sums categories_;
  Sums items_;
};

/// Back from the end of the step: every span says which one let it begin.
class Walk {
 public:
  Walk(const graph::Workload& workload, const simulate::Timeline& timeline,
       const machine::Machine& machine)
      : workload_(workload), timeline_(timeline), machine_(machine) {}

  CriticalPath run() {
    now_ = timeline_.run_time;
    next_ = last_of(timeline_.critical_rank);
    while (now_ > Time(0)) {
      if (next_ == simulate::Span::kNone) {
        book_until(Time(0), PathKind::wait, "wait", "wait");
      } else if (on_host_) {
        step_host();
      } else {
        step(span(next_));
      }
    }
    return sum_.finish(timeline_.run_time);
  }

 private:
  const simulate::Span& span(std::uint32_t number) const { return timeline_.spans[number]; }
  const graph::Node& node_of(const simulate::Span& of) const {
    const graph::Program& program = workload_.program_of(workload_.role_of(of.rank));
    return program.templates[static_cast<std::size_t>(of.template_index)]
        .nodes[static_cast<std::size_t>(of.node)];
  }

  /// Returns the rank's span that ended last.
  std::uint32_t last_of(std::int64_t rank) const {
    std::uint32_t last = simulate::Span::kNone;
    for (std::uint32_t i = 0; i < timeline_.spans.size(); ++i) {
      const bool its = span(i).rank == rank && span(i).kind != graph::Node::Kind::receive;
      last = its && (last == simulate::Span::kNone || span(i).end >= span(last).end) ? i : last;
    }
    return last;
  }

  /// Books [begin, now].
  void book_until(Time begin, PathKind kind, const std::string& category, const std::string& item) {
    sum_.add(kind, category, item, now_ - begin);
    now_ = begin;
  }

  void step(const simulate::Span& its) {
    if (its.end < now_) {  // a moment of the source's
      book_until(its.end, PathKind::wait, "wait", "wait");
    }
    switch (its.kind) {
      case graph::Node::Kind::compute:
        return step_compute(its);
      case graph::Node::Kind::collective:
      case graph::Node::Kind::copy:
      case graph::Node::Kind::host:
        return step_collective(its);
      case graph::Node::Kind::send:
        book_until(its.begin, PathKind::message,
                   fmt::format("{} message", workload_.group(its.group).name), node_of(its).name);
        next_ = its.cause;
        return;
      case graph::Node::Kind::receive:
        next_ = its.cause;
        return;
      case graph::Node::Kind::wait:
        break;
    }
    assert(false && "a wait has no span");
  }

  const NodeCost& cost(const graph::Node& node, const compute::Device& device) {
    const auto found = costs_.find(&node);
    return found != costs_.end()
               ? found->second
               : costs_
                     .emplace(&node, cost_of(node, workload_.phases[*node.phase].name, device,
                                             workload_.host_dispatch))
                     .first->second;
  }

  void step_compute(const simulate::Span& its) {
    const compute::Device& device =
        machine_.parts.empty()
            ? machine_.device
            : machine_.parts[machine::device_group_of(machine_, its.rank)].device;
    const NodeCost& cost = this->cost(node_of(its), device);
    if (its.host_stall > Time(0) && its.host_begin + cost.host_span == its.end) {
      book_kernels(cost, cost.tail);
      book_until(its.host_begin, PathKind::host, "host", "host");
      return go_to_host(its);
    }
    sum_.add(PathKind::host, "host", "host", its.host_stall);
    now_ -= its.host_stall;
    const Time slowed = now_ - its.begin - cost.work;
    if (slowed > Time(0)) {
      sum_.add(PathKind::slowdown, "slowdown by communication", "slowdown by communication",
               slowed);
      now_ -= slowed;
    }
    book_kernels(cost, now_ - its.begin);
    next_ = its.cause;
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

  /// A copy, or work on the host, is a collective of its own rank. It began with its last member.
  void step_collective(const simulate::Span& its) {
    const graph::Node& node = node_of(its);
    const std::string& group = workload_.group(its.group).name;
    if (its.kind == graph::Node::Kind::host) {
      book_until(its.begin, PathKind::host, group, node.name);
    } else if (its.kind == graph::Node::Kind::copy) {
      book_until(its.begin, PathKind::copy, fmt::format("{} copy", group), node.name);
    } else {
      book_until(its.begin, PathKind::collective,
                 fmt::format("{} {}", group, name_of(node.collective)), node.name);
    }
    const simulate::Span& last = span(its.last_member);
    if (last.host_end > last.ready && last.host_end == now_) {
      book_until(last.host_begin, PathKind::host, "host", "host");
      return go_to_host(last);
    }
    next_ = last.cause;
  }

  void go_to_host(const simulate::Span& its) {
    next_ = its.host_cause;
    on_host_ = !its.host_waited;
  }

  /// Steps back to the host, which had issued `next_` at `now_`.
  void step_host() {
    const simulate::Span its = span(next_);
    book_until(its.host_begin, PathKind::host, "host", "host");
    go_to_host(its);
  }

  const graph::Workload& workload_;
  const simulate::Timeline& timeline_;
  const machine::Machine& machine_;
  std::map<const graph::Node*, NodeCost> costs_;
  PathSum sum_;
  Time now_{0};
  std::uint32_t next_ = simulate::Span::kNone;  ///< ended at now_, or was issued then
  bool on_host_ = false;
};

}  // namespace

CriticalPath critical_path(const graph::Workload& workload, const simulate::Timeline& timeline,
                           const machine::Machine& machine) {
  return Walk(workload, timeline, machine).run();
}

}  // namespace orrery::study
