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

std::size_t TemplateTables::StepHash::operator()(const TimedStep& step) const {
  Mix mix;
  mix.add(step.timed.work.value());
  mix.add(step.timed.host_span.value());
  mix.add(step.timed.lane);
  mix.add(step.timed.flow);
  mix.add(step.timed.transfer);
  mix.add(step.kind);
  mix.add(step.reads);
  mix.add(step.writes);
  mix.add(step.gathers_block);
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

std::uint32_t TemplateTables::add_step(const parallel::Step& step, const TimedNode& timed) {
  const TimedStep one{.timed = timed,
                      .reads = step.reads,
                      .writes = step.writes,
                      .after_compute = step.after_compute,
                      .gathers_block = step.gathers_block,
                      .phase = step.node.phase,
                      .kind = step.node.kind};
  const auto [entry, is_new] =
      step_numbers_.try_emplace(one, static_cast<std::uint32_t>(steps_.size()));
  if (is_new) {
    steps_.push_back(one);
  }
  return entry->second;
}

std::shared_ptr<MappedTemplate> TemplateTables::find(const parallel::StepList& list,
                                                     const std::vector<std::uint32_t>& numbers) {
  key_.clear();
  for (const parallel::StepLane& lane : list.lanes) {
    key_.push_back(lane.blocks());
  }
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    const parallel::PlacedStep& placed = list.steps[i];
    const auto where = static_cast<std::uint64_t>(placed.block + 1) * 2 + placed.lane;
    key_.push_back((std::uint64_t{numbers[i]} << 32U) | where);
  }
  const auto known = templates_.find(key_);
  if (known != templates_.end()) {
    return known->second;
  }
  auto made = std::make_shared<MappedTemplate>();
  made->nodes = make(list, numbers);
  size_ += numbers.size();
  return templates_.emplace(key_, std::move(made)).first->second;
}

/// Consecutive kernels for whose end nobody waits but the next of them are one node, as after pass
/// "fuse" (workload/parallel/pass_fuse.cc).
TimedTemplate TemplateTables::make(const parallel::StepList& list,
                                   const std::vector<std::uint32_t>& numbers) const {
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
  TimedTemplate made;
  made.nodes.reserve(numbers.size());
  made.before.reserve(after.size());
  std::vector<std::uint32_t> moved;
  moved.reserve(numbers.size());
  std::ptrdiff_t run = -1;  // kernels that may still grow
  graph::PhaseIndex phase{std::size_t{0}};
  std::vector<std::uint32_t> starts;  // nodes, of blocks
  int block = parallel::kNoBlock;
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    const parallel::PlacedStep& placed = list.steps[i];
    if (placed.lane == 0 && placed.block != parallel::kNoBlock && placed.block != block) {
      block = placed.block;
      starts.push_back(static_cast<std::uint32_t>(made.nodes.size()));
    }
    const TimedStep& step = steps_[numbers[i]];
    const bool computes = step.kind == graph::Node::Kind::compute;
    if (computes && run >= 0 && first[i] == first[i + 1] && !step.timed.host_sync &&
        phase == step.phase) {
      join(made.nodes[index_of(run)], step.timed);
      moved.push_back(static_cast<std::uint32_t>(run));
    } else {
      moved.push_back(static_cast<std::uint32_t>(made.nodes.size()));
      TimedNode& node = made.nodes.emplace_back(step.timed);
      node.first_before = static_cast<std::uint32_t>(made.before.size());
      node.befores = static_cast<std::uint32_t>(first[i + 1] - first[i]);
      for (std::size_t b = first[i]; b < first[i + 1]; ++b) {
        made.before.push_back(moved[index_of(after[b])]);
      }
      if (node.lane == 0) {
        run = computes && !node.host_sync ? static_cast<std::ptrdiff_t>(moved.back()) : -1;
        phase = step.phase;
      }
    }
    if (awaited[i] && run == static_cast<std::ptrdiff_t>(moved.back())) {
      run = -1;
    }
  }
  made.repeats = find_repeats(made, starts);
  return made;
}

}  // namespace orrery::estimate
