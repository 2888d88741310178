// SPDX-License-Identifier: Apache-2.0
#include "estimate/template_tables.h"

#include <algorithm>
#include <utility>

#include "estimate/mix.h"
#include "estimate/repeats.h"

namespace orrery::estimate {
namespace {

/// Kernels that follow others, as one node: the host issues the second when it has issued the
/// first.
void join(TimedNode& first, const TimedNode& second) {
  const Time work = first.work + second.work;
  const auto mean = [&](double one, double other) {
    return work > Time(0) ? one * (first.work / work) + other * (second.work / work) : one;
  };
  first.beside_message = mean(first.beside_message, second.beside_message);
  first.beside_collective = mean(first.beside_collective, second.beside_collective);
  first.host_span = std::max(first.host_span + second.work, first.host_cost + second.host_span);
  first.host_cost += second.host_cost;
  first.work = work;
  first.least += second.least;
}

}  // namespace

std::size_t TemplateTables::NodeHash::operator()(const TimedNode& node) const {
  Mix mix;
  mix.add(node.work.value());
  mix.add(node.host_span.value());
  mix.add(node.lane);
  mix.add(node.flow);
  mix.add(node.transfer);
  return mix.hash();
}

std::size_t TemplateTables::ShapeHash::operator()(const StepShape& shape) const {
  Mix mix;
  mix.add(shape.kind);
  mix.add(shape.reads);
  mix.add(shape.writes);
  mix.add(shape.lane);
  mix.add(shape.gathers_block);
  return mix.hash();
}

std::size_t TemplateTables::StepHash::operator()(const TimedStep& step) const {
  Mix mix;
  mix.add(step.shape);
  mix.add(step.node);
  return mix.hash();
}

std::size_t TemplateTables::KeyHash::operator()(const Key& key) const {
  Mix mix;
  for (const std::uint64_t part : key) {
    mix.add(part);
  }
  return mix.hash();
}

std::size_t TemplateTables::TransferHash::operator()(const std::vector<PortPhase>& phases) const {
  Mix mix;
  for (const PortPhase& phase : phases) {
    mix.add(phase.serialisation.value());
    mix.add(phase.latency.value());
    for (const PortLoad& port : phase.ports) {
      mix.add(port.port);
    }
  }
  return mix.hash();
}

int TemplateTables::add_transfer(const std::vector<PortPhase>& phases) {
  const auto [entry, is_new] =
      transfer_numbers_.try_emplace(phases, static_cast<int>(transfers_->size()));
  if (is_new) {
    transfers_->push_back(phases);
  }
  return entry->second;
}

std::uint32_t TemplateTables::add_node(const TimedNode& node) {
  const auto [entry, is_new] =
      node_numbers_.try_emplace(node, static_cast<std::uint32_t>(nodes_.size()));
  if (is_new) {
    nodes_.push_back(node);
  }
  return entry->second;
}

std::uint32_t TemplateTables::add_step(const parallel::Step& step, const TimedNode& timed) {
  const StepShape shape{.reads = step.reads,
                        .writes = step.writes,
                        .after_compute = step.after_compute,
                        .host_sync = timed.host_sync,
                        .lane = timed.lane,
                        .gathers_block = step.gathers_block,
                        .phase = step.node.phase,
                        .kind = step.node.kind};
  const auto [known, is_new_shape] =
      shape_numbers_.try_emplace(shape, static_cast<std::uint32_t>(shapes_.size()));
  if (is_new_shape) {
    shapes_.push_back(shape);
  }
  const TimedStep one{.shape = known->second, .node = add_node(timed)};
  const auto [entry, is_new] =
      step_numbers_.try_emplace(one, static_cast<std::uint32_t>(steps_.size()));
  if (is_new) {
    steps_.push_back(one);
  }
  return entry->second;
}

std::uint32_t TemplateTables::joined(std::uint32_t first, std::uint32_t second) {
  const auto known = joined_.find({first, second});
  if (known != joined_.end()) {
    return known->second;
  }
  TimedNode both = nodes_[first];
  join(both, nodes_[second]);
  return joined_.emplace(TimedStep{first, second}, add_node(both)).first->second;
}

std::shared_ptr<MappedTemplate> TemplateTables::find(const parallel::StepList& list,
                                                     const std::vector<std::uint32_t>& numbers) {
  key_.clear();
  for (const parallel::StepLane& lane : list.lanes) {
    key_.push_back(lane.blocks());
  }
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    key_.push_back((std::uint64_t{numbers[i]} << 32U) | place_of(list.steps[i]));
  }
  const auto known = templates_.find(key_);
  if (known != templates_.end()) {
    return known->second;
  }
  auto made = std::make_shared<MappedTemplate>();
  size_ += numbers.size();
  const auto& entry = templates_.emplace(key_, std::move(made)).first->second;
  entry->nodes = make(skeleton_of(list, numbers), numbers);
  return entry;
}

const TemplateTables::Skeleton& TemplateTables::skeleton_of(
    const parallel::StepList& list, const std::vector<std::uint32_t>& numbers) {
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    std::uint64_t& part = key_[list.lanes.size() + i];
    part = (std::uint64_t{steps_[numbers[i]].shape} << 32U) | (part & 0xffffffffU);
  }
  auto known = skeletons_.find(key_);
  if (known == skeletons_.end()) {
    known = skeletons_.emplace(key_, make_skeleton(list, numbers)).first;
  }
  return known->second;
}

/// Consecutive kernels for whose end nobody waits but the next of them are one node, as after pass
/// "fuse" (workload/parallel/pass_fuse.cc).
TemplateTables::Skeleton TemplateTables::make_skeleton(
    const parallel::StepList& list, const std::vector<std::uint32_t>& numbers) const {
  parallel::StepDependencies dependencies(list.lanes);
  std::vector<int> after;
  std::vector<std::size_t> first{0};  // by step, into `after`
  for (const parallel::PlacedStep& placed : list.steps) {
    dependencies.next(placed, after);
    first.push_back(after.size());
  }
  std::vector<bool> awaited(numbers.size(), false);
  for (const int before : after) {
    awaited[index_of(before)] = true;
  }
  Skeleton made;
  std::ptrdiff_t run = -1;  // kernels that may still grow
  graph::PhaseIndex phase{std::size_t{0}};
  int block = parallel::kNoBlock;
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    const parallel::PlacedStep& placed = list.steps[i];
    if (placed.lane == 0 && placed.block != parallel::kNoBlock && placed.block != block) {
      block = placed.block;
      made.starts.push_back(static_cast<std::uint32_t>(made.first_before.size()));
    }
    const StepShape& step = shapes_[steps_[numbers[i]].shape];
    const bool computes = step.kind == graph::Node::Kind::compute;
    if (computes && run >= 0 && first[i] == first[i + 1] && !step.host_sync &&
        phase == step.phase) {
      made.node_of.push_back(static_cast<std::uint32_t>(run));
    } else {
      made.node_of.push_back(static_cast<std::uint32_t>(made.first_before.size()));
      made.first_before.push_back(static_cast<std::uint32_t>(made.before.size()));
      for (std::size_t b = first[i]; b < first[i + 1]; ++b) {
        made.before.push_back(made.node_of[index_of(after[b])]);
      }
      if (step.lane == 0) {
        run = computes && !step.host_sync ? static_cast<std::ptrdiff_t>(made.node_of.back()) : -1;
        phase = step.phase;
      }
    }
    if (awaited[i] && run == static_cast<std::ptrdiff_t>(made.node_of.back())) {
      run = -1;
    }
  }
  made.first_before.push_back(static_cast<std::uint32_t>(made.before.size()));
  return made;
}

TimedTemplate TemplateTables::make(const Skeleton& skeleton,
                                   const std::vector<std::uint32_t>& numbers) {
  std::vector<std::uint32_t> nodes;  // numbers of distinct ones
  nodes.reserve(skeleton.first_before.size());
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    const std::uint32_t node = steps_[numbers[i]].node;
    if (skeleton.node_of[i] == nodes.size()) {
      nodes.push_back(node);
    } else {
      std::uint32_t& run = nodes[skeleton.node_of[i]];
      run = joined(run, node);
    }
  }
  TimedTemplate made;
  made.before = skeleton.before;
  made.nodes.reserve(nodes.size());
  for (std::size_t n = 0; n < nodes.size(); ++n) {
    TimedNode& node = made.nodes.emplace_back(nodes_[nodes[n]]);
    node.first_before = skeleton.first_before[n];
    node.befores = skeleton.first_before[n + 1] - node.first_before;
  }
  made.repeats = find_repeats(made, skeleton.starts, nodes);
  return made;
}

}  // namespace orrery::estimate
