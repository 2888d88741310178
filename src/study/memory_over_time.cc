// SPDX-License-Identifier: Apache-2.0
#include "study/memory_over_time.h"

#include <algorithm>
#include <map>
#include <span>
#include <tuple>
#include <utility>

namespace orrery::study {
namespace {

/// An allocation's uses in its template.
struct Held {
  std::size_t tensor = 0;
  bool begins = false;
  bool ends = false;
  std::vector<graph::Use> uses;  ///< `tensor` is the node here
};

std::vector<Held> allocations_of(const graph::Template& t) {
  std::vector<std::vector<graph::Use>> used(t.tensors.size());
  for (std::size_t n = 0; n < t.nodes.size(); ++n) {
    for (const auto* uses : {&t.nodes[n].writes, &t.nodes[n].reads}) {
      for (const graph::Use& use : *uses) {
        used[static_cast<std::size_t>(use.tensor)].push_back(
            {.tensor = static_cast<int>(n), .at = use.at});
      }
    }
  }
  std::vector<Held> allocations;
  const graph::Use end{.tensor = static_cast<int>(t.nodes.size()) - 1};
  for (std::size_t i = 0; i < used.size(); ++i) {
    const graph::Tensor& tensor = t.tensors[i];
    if (!tensor.memory.none() && tensor.tier == 0) {
      if (used[i].empty()) {
        used[i].push_back(end);
      }
      allocations.push_back({.tensor = i,
                             .begins = tensor.lifetime != graph::Tensor::Lifetime::enters,
                             .ends = tensor.lifetime != graph::Tensor::Lifetime::leaves,
                             .uses = std::move(used[i])});
    }
  }
  return allocations;
}

struct Change {
  Time at{0};
  const graph::Tensor* tensor = nullptr;
  bool begins = false;
};

/// The spans of an instance, by node; those of waits and receives are not there.
using InstanceSpans = std::vector<const simulate::Span*>;

struct Interval {
  Time begin{0};
  Time end{0};
};

/// Returns when the nodes of an instance ran whose kernels run in the order of the list. Without a
/// span: the begin of the next one that has one, else the end of the last.
std::vector<Interval> times_by_place(const InstanceSpans& spans) {
  std::vector<Interval> times(spans.size());
  const auto is_there = [](const simulate::Span* span) { return span != nullptr; };
  Time next = (*std::find_if(spans.rbegin(), spans.rend(), is_there))->end;
  for (std::size_t n = spans.size(); n-- > 0;) {
    times[n] = spans[n] ? Interval{spans[n]->begin, spans[n]->end} : Interval{next, next};
    next = times[n].begin;
  }
  return times;
}

/// Returns the same where they run as they become ready. Without a span: when what it waits for has
/// ended, else when the first node could begin.
std::vector<Interval> times_by_dependency(const graph::Template& t, const InstanceSpans& spans) {
  Time begin = Time::max();
  for (const simulate::Span* span : spans) {
    begin = span ? std::min(begin, span->ready) : begin;
  }
  std::vector<Interval> times(spans.size());
  for (std::size_t n = 0; n < spans.size(); ++n) {
    times[n] = spans[n] ? Interval{spans[n]->begin, spans[n]->end} : Interval{begin, begin};
    if (spans[n] == nullptr) {
      for (const int before : t.nodes[n].after) {
        times[n].begin = std::max(times[n].begin, times[static_cast<std::size_t>(before)].end);
      }
      times[n].end = times[n].begin;
    }
  }
  return times;
}

class RankMemory {
 public:
  RankMemory(const graph::Workload& workload, std::span<const simulate::Span* const> spans_of_rank,
             std::int64_t rank)
      : role_(workload.role(workload.role_of(rank))),
        program_(workload.program_of(workload.role_of(rank))),
        in_order_(workload.streams[*graph::kComputeStream].order == graph::Order::issue) {
    for (const graph::Template& t : program_.templates) {
      held_.push_back(allocations_of(t));
    }
    std::map<std::tuple<int, int, std::int64_t, std::int64_t>, InstanceSpans> instances;
    for (const simulate::Span* span : spans_of_rank) {
      InstanceSpans& spans =
          instances[{span->template_index, span->chunk, span->microbatch, span->step}];
      spans.resize(shape(span->template_index).nodes.size());
      spans[static_cast<std::size_t>(span->node)] = span;
    }
    for (const auto& [instance, spans] : instances) {
      add(std::get<0>(instance), spans);
    }
  }

  std::vector<MemorySample> samples() {
    std::stable_sort(changes_.begin(), changes_.end(),
                     [](const Change& a, const Change& b) { return a.at < b.at; });
    MemorySample now{.at = Time(0), .bytes = graph::state_of(role_)};
    std::vector<MemorySample> samples;
    for (const Change& change : changes_) {
      if (change.at > now.at) {
        samples.push_back(now);
        now.at = change.at;
      }
      apply(change, now.bytes);
    }
    samples.push_back(now);
    return samples;
  }

 private:
  const graph::Template& shape(int index) const {
    return program_.templates[static_cast<std::size_t>(index)];
  }

  void add(int template_index, const InstanceSpans& spans) {
    const graph::Template& t = shape(template_index);
    const std::vector<Interval> times =
        in_order_ ? times_by_place(spans) : times_by_dependency(t, spans);
    for (const Held& held : held_[static_cast<std::size_t>(template_index)]) {
      const graph::Tensor* tensor = &t.tensors[held.tensor];
      Time begin = Time::max();
      Time end{0};
      for (const graph::Use& use : held.uses) {
        begin = std::min(begin, moment(t, times, use, 0));
        end = std::max(end, moment(t, times, use, 1));
      }
      if (held.begins) {
        changes_.push_back({begin, tensor, true});
      }
      if (held.ends) {
        changes_.push_back({end, tensor, false});
      }
    }
  }

  /// Begin (0) or end (1) of the operator that uses it.
  static Time moment(const graph::Template& t, const std::vector<Interval>& times,
                     const graph::Use& use, int end) {
    const auto node = static_cast<std::size_t>(use.tensor);
    const auto operators = std::max<std::int64_t>(1, std::ssize(t.nodes[node].operators));
    const auto [from, to] = times[node];
    return from + (to - from) * (use.at + end) / operators;
  }

  void apply(const Change& change, graph::MemoryBytes& bytes) {
    if (change.tensor->shared > 0) {
      std::int64_t& users = in_flight_[change.tensor->shared];
      const bool before = users > 0;
      users += change.begins ? 1 : -1;
      if (before == (users > 0)) {
        return;
      }
    }
    Bytes& held = bytes[change.tensor->memory];
    held = change.begins ? held + change.tensor->bytes : held - change.tensor->bytes;
  }

  const graph::Role& role_;
  const graph::Program& program_;
  bool in_order_;
  std::vector<std::vector<Held>> held_;  // by template
  std::vector<Change> changes_;
  std::map<std::uint32_t, std::int64_t> in_flight_;  // of shared allocations
};

}  // namespace

MemoryOverTime::MemoryOverTime(const graph::Workload& workload, const simulate::Timeline& timeline)
    : workload_(workload) {
  if (workload.memory.empty()) {
    return;
  }
  for (const simulate::Span& span : timeline.spans) {
    if (span.kind != graph::Node::Kind::receive) {
      spans_.push_back(&span);
    }
  }
  std::stable_sort(
      spans_.begin(), spans_.end(),
      [](const simulate::Span* a, const simulate::Span* b) { return a->rank < b->rank; });
}

std::vector<MemorySample> MemoryOverTime::of(std::int64_t rank) const {
  if (workload_.memory.empty()) {
    return {};
  }
  const auto first = std::lower_bound(
      spans_.begin(), spans_.end(), rank,
      [](const simulate::Span* span, std::int64_t wanted) { return span->rank < wanted; });
  const auto last = std::find_if(first, spans_.end(),
                                 [rank](const simulate::Span* span) { return span->rank != rank; });
  return RankMemory(workload_, {first, last}, rank).samples();
}

std::vector<RankPeak> fullest_moments(const graph::Workload& workload,
                                      const simulate::Timeline& timeline) {
  const MemoryOverTime memory(workload, timeline);
  std::vector<RankPeak> peaks;
  for (const std::int64_t rank : timeline.ranks) {
    const std::vector<MemorySample> samples = memory.of(rank);
    const auto fullest = std::max_element(samples.begin(), samples.end(),
                                          [](const MemorySample& a, const MemorySample& b) {
                                            return a.bytes.total() < b.bytes.total();
                                          });
    if (fullest != samples.end()) {
      peaks.push_back({rank, *fullest});
    }
  }
  return peaks;
}

}  // namespace orrery::study
