// SPDX-License-Identifier: Apache-2.0
#include "study/memory_over_time.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <tuple>
#include <utility>

namespace orrery {
namespace {

/// An allocation's uses in its template.
struct Held {
  std::size_t tensor = 0;
  bool begins = false;
  bool ends = false;
  Use first;  ///< `tensor` is the node here
  Use last;
};

std::vector<Held> allocations_of(const Template& t) {
  std::vector<std::optional<Held>> held(t.tensors.size());
  for (std::size_t n = 0; n < t.nodes.size(); ++n) {
    for (const auto* uses : {&t.nodes[n].writes, &t.nodes[n].reads}) {
      for (const Use& use : *uses) {
        const Use at{.tensor = static_cast<int>(n), .at = use.at};
        std::optional<Held>& one = held[static_cast<std::size_t>(use.tensor)];
        one = one.value_or(Held{.first = at, .last = at});
        const auto earlier = [](const Use& x, const Use& y) {
          return std::pair(x.tensor, x.at) < std::pair(y.tensor, y.at);
        };
        one->first = std::min(one->first, at, earlier);
        one->last = std::max(one->last, at, earlier);
      }
    }
  }
  std::vector<Held> allocations;
  const Use end{.tensor = static_cast<int>(t.nodes.size()) - 1};
  for (std::size_t i = 0; i < held.size(); ++i) {
    const Tensor& tensor = t.tensors[i];
    if (!tensor.memory.none() && tensor.tier == 0) {
      Held one = held[i].value_or(Held{.first = end, .last = end});
      one.tensor = i;
      one.begins = tensor.lifetime != Tensor::Lifetime::enters;
      one.ends = tensor.lifetime != Tensor::Lifetime::leaves;
      allocations.push_back(one);
    }
  }
  return allocations;
}

struct Change {
  Time at{0};
  const Tensor* tensor = nullptr;
  bool begins = false;
};

/// The spans of an instance, by node; those of waits and receives are not there.
using InstanceSpans = std::vector<const Span*>;

class RankMemory {
 public:
  RankMemory(const Workload& workload, const Timeline& timeline, std::int64_t rank)
      : role_(workload.role(workload.role_of(rank))),
        program_(workload.program_of(workload.role_of(rank))) {
    for (const Template& t : program_.templates) {
      held_.push_back(allocations_of(t));
    }
    std::map<std::tuple<int, int, std::int64_t>, InstanceSpans> instances;
    for (const Span& span : timeline.spans) {
      if (span.rank == rank && span.kind != Node::Kind::receive) {
        InstanceSpans& spans = instances[{span.template_index, span.chunk, span.microbatch}];
        spans.resize(shape(span.template_index).nodes.size());
        spans[static_cast<std::size_t>(span.node)] = &span;
      }
    }
    for (const auto& [instance, spans] : instances) {
      add(std::get<0>(instance), spans);
    }
  }

  std::vector<MemorySample> samples() {
    std::stable_sort(changes_.begin(), changes_.end(),
                     [](const Change& a, const Change& b) { return a.at < b.at; });
    MemorySample now{.at = Time(0), .bytes = state_of(role_)};
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
  const Template& shape(int index) const {
    return program_.templates[static_cast<std::size_t>(index)];
  }

  void add(int template_index, const InstanceSpans& spans) {
    const Template& t = shape(template_index);
    for (const Held& held : held_[static_cast<std::size_t>(template_index)]) {
      const Tensor* tensor = &t.tensors[held.tensor];
      if (held.begins) {
        changes_.push_back({moment(t, spans, held.first, 0), tensor, true});
      }
      if (held.ends) {
        changes_.push_back({moment(t, spans, held.last, 1), tensor, false});
      }
    }
  }

  /// Begin (0) or end (1) of the operator that uses it; of a node without a span, the begin of the
  /// next one that has one, else the end of the last.
  static Time moment(const Template& t, const InstanceSpans& spans, const Use& use, int end) {
    const auto node = static_cast<std::size_t>(use.tensor);
    if (const Span* span = spans[node]) {
      const auto operators = std::max<std::int64_t>(1, std::ssize(t.nodes[node].operators));
      return span->begin + (span->end - span->begin) * (use.at + end) / operators;
    }
    const auto is_there = [](const Span* span) { return span != nullptr; };
    const auto at = spans.begin() + static_cast<std::ptrdiff_t>(node);
    const auto next = std::find_if(at, spans.end(), is_there);
    return next != spans.end()
               ? (*next)->begin
               : (*std::find_if(std::reverse_iterator(at), spans.rend(), is_there))->end;
  }

  void apply(const Change& change, MemoryBytes& bytes) {
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

  const Role& role_;
  const Program& program_;
  std::vector<std::vector<Held>> held_;  // by template
  std::vector<Change> changes_;
  std::map<std::uint32_t, std::int64_t> in_flight_;  // of shared allocations
};

}  // namespace

std::vector<MemorySample> memory_over_time(const Workload& workload, const Timeline& timeline,
                                           std::int64_t rank) {
  if (workload.memory.empty()) {
    return {};
  }
  return RankMemory(workload, timeline, rank).samples();
}

}  // namespace orrery
