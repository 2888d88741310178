// SPDX-License-Identifier: Apache-2.0
#include "workload/plan/axes.h"

#include <cassert>
#include <span>
#include <string>

#include "workload/plan/memory_category.h"

namespace orrery::plan {
namespace {

template <class E, class Row>
void append_rows(std::vector<Row>& rows) {
  for (const Named<E>& named : kNames<E>) {
    rows.push_back({std::string(named.name), std::string(named.meaning)});
  }
}

std::string stream_meaning(Axis axis) {
  switch (axis) {
    case Axis::pp:
      return "pipeline sends, and sums over stages";
    case Axis::to_host:
    case Axis::from_host:
      return "copy engine";
    default:
      return "collectives of one communicator";
  }
}

}  // namespace

Exposed exposed_of(Axis axis) {
  switch (axis) {
    case Axis::tp:
      return Exposed::tp;
    case Axis::cp:
    case Axis::cp_a2a:
    case Axis::cp_ring:
      return Exposed::cp;
    case Axis::ep:
    case Axis::etp:
      return Exposed::ep;
    case Axis::dp:
    case Axis::edp:
    case Axis::shard:
    case Axis::grad_shard:
    case Axis::optimizer_shard:
    case Axis::replica:
    case Axis::update:
    case Axis::secondary:
    case Axis::reduce_near:
    case Axis::reduce_far:
    case Axis::outer:
      return Exposed::dp;
    case Axis::embedding:
      return Exposed::embedding;
    case Axis::pp:
      return Exposed::pp;
    case Axis::to_host:
    case Axis::from_host:
      return Exposed::copy;
  }
  return Exposed::copy;
}

std::int64_t target_stage(Channel channel, std::int64_t stage, std::int64_t stages) {
  switch (channel) {
    case Channel::forward:
    case Channel::returning_backward:
      return (stage + 1) % stages;
    case Channel::backward:
    case Channel::returning_forward:
      return (stage + stages - 1) % stages;
    case Channel::mirror:
      return stages - 1 - stage;
  }
  return stage;
}

std::int64_t source_stage(Channel channel, std::int64_t stage, std::int64_t stages) {
  switch (channel) {
    case Channel::forward:
    case Channel::returning_backward:
      return (stage + stages - 1) % stages;
    case Channel::backward:
    case Channel::returning_forward:
      return (stage + 1) % stages;
    case Channel::mirror:
      return stages - 1 - stage;
  }
  return stage;
}

std::int64_t RankLayout::ranks() const {
  std::int64_t product = 1;
  for (const Entry& entry : axes) {
    product *= entry.size;
  }
  return product;
}

std::vector<graph::Digit> RankLayout::digits(Axis axis) const {
  for (const Communicator& communicator : communicators) {
    if (communicator.axis == axis) {
      return communicator.digits;
    }
  }
  const Axis wanted = axis == Axis::embedding ? Axis::pp : axis;
  std::int64_t stride = 1;
  for (const Entry& entry : axes) {
    if (entry.axis == wanted) {
      return entry.size > 1 ? std::vector<graph::Digit>{{entry.size, stride}}
                            : std::vector<graph::Digit>{};
    }
    stride *= entry.size;
  }
  return {};
}

graph::Members RankLayout::members(Axis axis) const {
  graph::Members members{.digits = digits(axis), .only = {}, .lists = {}, .list_of = {}};
  if (axis == Axis::embedding && !members.digits.empty()) {
    members.only = {0, members.digits.front().size - 1};
  }
  return members;
}

std::int64_t RankLayout::size(Axis axis) const {
  return members(axis).size();
}

std::int64_t RankLayout::stride(Axis axis) const {
  const std::vector<graph::Digit> parts = digits(axis);
  return parts.empty() ? 1 : parts.front().stride;
}

std::int64_t RankLayout::coordinate(std::int64_t rank, Axis axis) const {
  return graph::coordinate_of(digits(axis), rank);
}

std::int64_t RankLayout::with(std::int64_t rank, Axis axis, std::int64_t value) const {
  return graph::replaced(digits(axis), rank, value);
}

std::int64_t RankLayout::peer(graph::Node::Kind end, Channel channel, std::int64_t stage) const {
  const std::int64_t stages = size(Axis::pp);
  const bool sends = end == graph::Node::Kind::send;
  assert((sends || end == graph::Node::Kind::receive) && "an end of a message");
  const std::int64_t other =
      sends ? target_stage(channel, stage, stages) : source_stage(channel, stage, stages);
  return (other - stage) * stride(Axis::pp);
}

graph::Workload step_workload(const RankLayout& layout) {
  graph::Workload workload;
  workload.ranks = layout.ranks();
  workload.role_map.digits = layout.digits(Axis::pp);
  for (std::int64_t stage = 0; stage < layout.size(Axis::pp); ++stage) {
    workload.roles.push_back(
        {.name = "stage " + std::to_string(stage), .program = static_cast<std::size_t>(stage)});
  }
  append_rows<StepPhase>(workload.phases);
  append_rows<Exposed>(workload.categories);
  append_rows<MemoryCategory>(workload.memory);
  workload.streams = {{"compute", "kernels", graph::Order::issue},
                      {"receive", "pipeline receives", graph::Order::issue}};
  std::size_t rows = static_cast<std::size_t>(Axis::secondary);
  for (std::size_t axis = rows; axis < kNames<Axis>.size(); ++axis) {
    rows = layout.members(Axis(axis)).size() > 1 ? axis + 1 : rows;
  }
  for (const Named<Axis>& axis : std::span(kNames<Axis>).first(rows)) {
    const bool between_ranks = axis.value != Axis::to_host && axis.value != Axis::from_host;
    workload.groups.push_back({std::string(axis.name), std::string(axis.meaning),
                               between_ranks ? layout.members(axis.value) : graph::Members{},
                               exposed_of(axis.value)});
    workload.streams.push_back(
        {std::string(axis.name), stream_meaning(axis.value), graph::Order::issue});
  }
  return workload;
}

}  // namespace orrery::plan
