// SPDX-License-Identifier: Apache-2.0
#include "estimate/stage_loads.h"

#include <algorithm>

#include "machine/copy_time.h"
#include "workload/plan/recompute.h"
#include "workload/plan/schedule.h"
#include "workload/plan/shard.h"

namespace orrery::estimate {
namespace {

void add(StagePasses& load, const PassCost& cost, bool transfers) {
  load.kernels += cost.kernels;
  for (std::size_t i = 0; i < kSlowdowns.size(); ++i) {
    load.by_slowdown[i] += cost.by_slowdown[i];
  }
  if (transfers) {
    load.exchanges += cost.exchanges;
    for (std::size_t lane = 0; lane < kBlockLanes; ++lane) {
      load.lanes[lane] += cost.lanes[lane];
    }
    add_ports(load.ports, cost.ports);
  }
}

std::array<CopyUse, 2> copy_uses(const Placement& placement) {
  std::array<CopyUse, 2> uses{};
  if (const auto port = machine::copy_port(1, placement.machine())) {
    const double load = topology::counted(port->share);
    uses = {{{placement.port(*port, graph::CopyDirection::out), load},
             {placement.port(*port, graph::CopyDirection::in), load}}};
  }
  for (CopyUse& use : uses) {
    use = use.port < PortTimes().size() ? use : CopyUse{};
  }
  return uses;
}

}  // namespace

Bytes StagePasses::kept() const {
  Bytes sum{0};
  for (const ChunkPasses& chunk : chunks) {
    sum += chunk.kept;
  }
  return sum;
}

double StagePasses::slowdown() const {
  double sum = 0;
  double all = 0;
  for (std::size_t i = 0; i < kSlowdowns.size(); ++i) {
    sum += static_cast<double>(by_slowdown[i].value()) * kSlowdowns[i];
    all += static_cast<double>(by_slowdown[i].value());
  }
  return all > 0 ? sum / all : 1;
}

Time StagePasses::lost_beside(Time lane, Time path, std::int64_t microbatches) const {
  Time rest = lane - (path - kernels * microbatches);
  Time lost{0};
  for (std::size_t i = 0; i < kSlowdowns.size() && rest > Time(0); ++i) {
    const Time beside = std::min(rest, by_slowdown[i] * microbatches * kSlowdowns[i]);
    lost += beside * (1 - 1 / kSlowdowns[i]);
    rest -= beside;
  }
  return lost;
}

Time StagePasses::on_ports(const StageState& state, Time copied, std::int64_t microbatches) const {
  PortTimes always = ports;
  add_ports(always, state.always);
  for (const CopyUse& copy : copies) {
    always[copy.port] += copied * copy.load;
  }
  PortTimes all = state.once;
  add_ports(all, always, microbatches);
  return busiest_port(all);
}

/// Returns the bytes that a layer keeps per microbatch, from forward to backward.
Bytes StageLoads::kept_by_layer(const plan::ModelPart& part, std::int64_t layer) const {
  const plan::BlockKind kind = plan::layer_block(model, plan, part.first_layer + layer);
  return (plan::recomputes_layer(plan, layer) ? memories.blocks : memories.plain)[kind].kept;
}

PassTimes StageLoads::times_of(const PassCost& cost) const {
  return {.least = hides ? cost.kernels : cost.chain,
          .chain = cost.chain,
          .kernels = cost.kernels,
          .host = plan.cuda_graphs == plan::CudaGraphs::none ? cost.host : Time(0)};
}

void StageLoads::add_chunk(const plan::ModelPart& part, StagePasses& load) const {
  const PassCost forward = blocks.forward(part);
  const PassCost backward = blocks.backward(part, recomputed_of(part));
  load.chunks.push_back({.forward = times_of(forward),
                         .backward = times_of(backward),
                         .weights = times_of(blocks.weights(part)).least,
                         .kept = Bytes(0)});
  ChunkPasses& chunk = load.chunks.back();
  for (std::int64_t i = 0; i < part.layers; ++i) {
    const Bytes kept = kept_by_layer(part, i);
    chunk.kept += kept;
    chunk.kept_last = part.head ? Bytes(0) : kept;
  }
  add(load, forward, !plan.fuse_communication);
  add(load, backward, !plan.fuse_communication);
  load.host += chunk.forward.host + chunk.backward.host;
}

Time StageLoads::pair_waits(const std::vector<plan::ModelPart>& chunks) const {
  Time least = Time::max();
  for (const plan::ModelPart& forward : chunks) {
    for (const plan::ModelPart& backward : chunks) {
      least = std::min(least, blocks.pair_waits(forward, backward, recomputed_of(backward)));
    }
  }
  return least;
}

/// Says whether two stages have the same blocks in the same chunks.
bool StageLoads::are_alike(const std::vector<plan::ModelPart>& one,
                           const std::vector<plan::ModelPart>& other) const {
  return std::ranges::equal(one, other, [&](const plan::ModelPart& a, const plan::ModelPart& b) {
    bool same = a.embedding == b.embedding && a.head == b.head && a.layers == b.layers;
    for (std::int64_t i = 0; same && i < a.layers; ++i) {
      same = plan::layer_block(model, plan, a.first_layer + i) ==
             plan::layer_block(model, plan, b.first_layer + i);
    }
    return same;
  });
}

/// Adds the stage's messages as the lowering joins parts (workload/parallel/pass_pipeline.cc).
void StageLoads::add_messages(std::int64_t stage, Placement& placement, Messages& known,
                              StagePasses& load) const {
  const plan::PipelineShape shape = plan::pipeline_shape(plan);
  const auto send = [&](plan::Channel channel, PassTimes& pass) {
    const int number = placement.way(channel, stage);
    const auto [found, is_new] = known.try_emplace(number);
    Message& message = found->second;
    if (is_new) {
      const MessageWay& way = placement.way(number);
      const Bytes bytes = plan::message_bytes(model, plan);
      const PortPhase phase = way.phase(bytes);
      message.time = phase.time();
      message.least = way.least(bytes);
      if (way.alike && own_ports && !plan.fuse_communication) {  // else one's are not the other's
        add_ports(message.ports, {phase});
      }
    }
    pass.message = message.time;
    pass.least_message = message.least;
    add_ports(load.ports, message.ports);
  };
  for (std::int64_t chunk = 0; chunk < shape.chunks; ++chunk) {
    ChunkPasses& passes = load.chunks[static_cast<std::size_t>(chunk)];
    const std::int64_t part = plan::part_of(shape, stage, chunk);
    const bool back = plan::flows_back(shape, chunk);
    const bool turns = plan::turns(shape, stage);
    if (part > 0 && !(turns && back)) {
      send(back ? plan::Channel::returning_backward : plan::Channel::backward, passes.backward);
    }
    if (part + 1 < plan::part_count(shape) && !(turns && !back)) {
      send(back ? plan::Channel::returning_forward : plan::Channel::forward, passes.forward);
    }
  }
}

std::vector<StagePasses> StageLoads::all(Placement& placement) const {
  std::vector<StagePasses> loads(parts.size());
  for (std::size_t stage = 0; stage < parts.size(); ++stage) {
    if (stage > 0 && are_alike(parts[stage - 1], parts[stage])) {
      loads[stage] = loads[stage - 1];
      continue;
    }
    for (const plan::ModelPart& part : parts[stage]) {
      add_chunk(part, loads[stage]);
    }
    if (hides && !plan.fuse_communication) {
      loads[stage].pair_waits = pair_waits(parts[stage]);
    }
  }
  const bool shares_ports = own_ports && !plan.fuse_communication;
  const std::array<CopyUse, 2> copies =
      shares_ports ? copy_uses(placement) : std::array<CopyUse, 2>{};
  Messages known;
  for (std::size_t stage = 0; stage < parts.size(); ++stage) {
    add_messages(static_cast<std::int64_t>(stage), placement, known, loads[stage]);
    loads[stage].copies = copies;
  }
  return loads;
}

}  // namespace orrery::estimate
