// SPDX-License-Identifier: Apache-2.0
#include "study/run_history.h"

#include <algorithm>
#include <cassert>
#include <numeric>

namespace orrery {
namespace {

constexpr std::size_t index_of(Stream stream) {
  return static_cast<std::size_t>(stream);
}

std::size_t role_of(const Workload& workload, std::int64_t rank) {
  return static_cast<std::size_t>(workload.layout.coordinate(rank, Axis::pp));
}

const Node& node_of_span(const Workload& workload, const Span& span) {
  return workload.programs[role_of(workload, span.rank)]
      .templates[static_cast<std::size_t>(span.template_index)]
      .nodes[static_cast<std::size_t>(span.node)];
}

}  // namespace

RankHistory::RankHistory(const Workload& workload, const Timeline& timeline, std::int64_t rank)
    : role_(static_cast<int>(role_of(workload, rank))),
      rank_(rank),
      program_(workload.programs[role_of(workload, rank)]),
      all_spans_(timeline.spans) {
  list_executions(workload);
  sort_spans(workload);
  for (Execution number = 0; number < entries_.size(); ++number) {
    match(number);
    replay(number);
  }
  index();
}

void RankHistory::list_executions(const Workload& workload) {
  std::array<Execution, kStreamCount> last{};
  last.fill(kNone);
  for (;;) {
    const std::optional<Instance> instance =
        workload.source->issue(role_, static_cast<std::int64_t>(instances_.size()));
    if (!instance) {
      break;
    }
    first_.push_back(static_cast<Execution>(entries_.size()));
    const auto& nodes =
        program_.templates[static_cast<std::size_t>(instance->template_index)].nodes;
    for (std::uint32_t node = 0; node < nodes.size(); ++node) {
      Execution& previous = last[index_of(nodes[node].stream)];
      entries_.push_back({.instance = static_cast<std::uint32_t>(instances_.size()),
                          .node = node,
                          .previous = previous});
      previous = static_cast<Execution>(entries_.size() - 1);
    }
    instances_.push_back(*instance);
    last_compute_.push_back(last[index_of(Stream::compute)]);
  }
  first_.push_back(static_cast<Execution>(entries_.size()));
}

void RankHistory::sort_spans(const Workload& workload) {
  for (std::uint32_t i = 0; i < all_spans_.size(); ++i) {
    const Span& span = all_spans_[i];
    if (span.rank != rank_) {
      continue;
    }
    if (span.stream == Stream::receive) {  // the send stands just before it
      const auto channel =
          static_cast<std::size_t>(node_of_span(workload, all_spans_[i - 1]).channel);
      messages_[channel].push_back(i - 1);
    } else {
      spans_[index_of(span.stream)].push_back(i);
    }
  }
}

void RankHistory::match(Execution number) {
  Entry& entry = entries_[number];
  const Node& node = node_of(number);
  if (node.kind == Node::Kind::receive) {
    const auto channel = static_cast<std::size_t>(node.channel);
    assert(next_message_[channel] < messages_[channel].size() && "every receive has its message");
    entry.span = messages_[channel][next_message_[channel]++];
    return;
  }
  const auto& list = spans_[index_of(node.stream)];
  std::size_t& next = next_span_[index_of(node.stream)];
  if (next == list.size()) {
    return;
  }
  const Span& span = all_spans_[list[next]];
  const Instance& instance = instances_[entry.instance];
  if (span.template_index == instance.template_index && span.chunk == instance.chunk &&
      span.microbatch == instance.microbatch && span.node == static_cast<int>(entry.node)) {
    entry.span = list[next++];
    spanned_[index_of(node.stream)].push_back(number);
  }
}

void RankHistory::replay(Execution number) {
  Entry& entry = entries_[number];
  if (entry.span != kNone) {
    entry.end = all_spans_[entry.span].end;
    if (node_of(number).kind != Node::Kind::receive) {
      return;
    }
  }
  if (const auto cause = cause_of(number)) {
    entry.end = std::max(entry.end, entries_[*cause].end);
  }
}

std::optional<Execution> RankHistory::issue_of(std::uint32_t instance) const {
  constexpr std::uint32_t kAhead = 2;  // the loop keeps one instance beyond the one that computes
  if (instance < kAhead || last_compute_[instance - kAhead] == kNone) {
    return std::nullopt;
  }
  return last_compute_[instance - kAhead];
}

std::optional<Execution> RankHistory::cause_of(Execution number) const {
  const Entry& entry = entries_[number];
  std::optional<Execution> cause = issue_of(entry.instance);
  const auto consider = [&](Execution other) {
    if (!cause || entries_[other].end >= entries_[*cause].end) {
      cause = other;
    }
  };
  if (entry.previous != kNone) {
    consider(entry.previous);
  }
  for (const int before : node_of(number).after) {
    consider(first_[entry.instance] + static_cast<Execution>(before));
  }
  return cause;
}

void RankHistory::index() {
  by_end_.resize(entries_.size());
  std::iota(by_end_.begin(), by_end_.end(), Execution{0});
  for (const Execution number : by_end_) {
    const Entry& entry = entries_[number];
    const Node& node = node_of(number);
    if (node.host_sync) {
      by_sync_.push_back(number);
    }
    if (entry.span != kNone && node.kind != Node::Kind::receive &&
        all_spans_[entry.span].host_end > all_spans_[entry.span].host_begin) {
      by_host_end_.push_back(number);
    }
  }
  const auto by_end = [&](Execution a, Execution b) { return entries_[a].end < entries_[b].end; };
  std::stable_sort(by_end_.begin(), by_end_.end(), by_end);
  std::stable_sort(by_sync_.begin(), by_sync_.end(), by_end);
  std::stable_sort(by_host_end_.begin(), by_host_end_.end(), [&](Execution a, Execution b) {
    return all_spans_[entries_[a].span].host_end < all_spans_[entries_[b].span].host_end;
  });
}

std::optional<Execution> RankHistory::with_span(std::uint32_t span) const {
  const auto& list = spanned_[index_of(all_spans_[span].stream)];
  const auto found =
      std::lower_bound(list.begin(), list.end(), span,
                       [&](Execution a, std::uint32_t b) { return entries_[a].span < b; });
  return found != list.end() && entries_[*found].span == span ? std::optional(*found)
                                                              : std::nullopt;
}

std::optional<Execution> RankHistory::during(Stream stream, Time begin, Time end) const {
  const auto& list = spanned_[index_of(stream)];
  auto found = std::lower_bound(list.begin(), list.end(), end,
                                [&](Execution a, Time b) { return entries_[a].end < b; });
  for (; found != list.end() && entries_[*found].end == end; ++found) {
    if (all_spans_[entries_[*found].span].begin == begin) {
      return *found;
    }
  }
  return std::nullopt;
}

std::optional<Execution> RankHistory::host_until(Time end) const {
  const auto found = std::lower_bound(
      by_host_end_.begin(), by_host_end_.end(), end,
      [&](Execution a, Time b) { return all_spans_[entries_[a].span].host_end < b; });
  return found != by_host_end_.end() && all_spans_[entries_[*found].span].host_end == end
             ? std::optional(*found)
             : std::nullopt;
}

std::optional<Execution> RankHistory::last_at(const std::vector<Execution>& by_time,
                                              Time end) const {
  const auto after = std::upper_bound(by_time.begin(), by_time.end(), end,
                                      [&](Time a, Execution b) { return a < entries_[b].end; });
  return after == by_time.begin() ? std::nullopt : std::optional(*(after - 1));
}

std::optional<Execution> RankHistory::synchronised(Time end) const {
  const auto last = last_at(by_sync_, end);
  return last && entries_[*last].end == end ? last : std::nullopt;
}

std::optional<Execution> RankHistory::last_before(Time end) const {
  return last_at(by_end_, end);
}

}  // namespace orrery
