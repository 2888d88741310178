// SPDX-License-Identifier: Apache-2.0
#include "serving/step/ffn_apart.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "collective/cost.h"
#include "machine/compute/spatial.h"
#include "serving/step/step_cost.h"
#include "workload/plan/shard.h"

namespace orrery::step {

Time ping_pong(const PingPong& of) {
  const Time fill = of.attention + of.there + of.ffn + of.back;
  const Time slowest = std::max({of.attention, of.there, of.ffn, of.back});
  return fill + (of.micro_batches - 1) * slowest +
         (of.layers - 1) * std::max(of.micro_batches * slowest, fill);
}

Result<machine::Machine> with_room(const machine::Machine& machine, std::int64_t devices) {
  const std::int64_t node = machine.network.empty() ? 1 : machine.network.front().size;
  const std::int64_t whole = (devices + node - 1) / node * node;
  return machine::with_devices(machine, devices < node ? devices : whole);
}

/// FfnDevices are the devices that compute MLPs and experts, and the way to them.
struct FfnDevices {
  /// Layers whose tokens go to so many devices each.
  struct Way {
    std::int64_t layers = 0;
    std::int64_t copies = 0;
    bool routes = false;
  };

  StepCost cost;             ///< of which they run the layers' second branches
  machine::Machine machine;  ///< of both sides
  std::vector<collective::Extent> across;
  Degrees degrees;
  std::vector<Way> ways;
};

namespace {

/// Returns the tokens of all copies' `tokens` that one of the devices computes.
std::int64_t tokens_there(const zoo::Model& model, const Degrees& degrees, std::int64_t tokens) {
  const std::int64_t all = tokens * degrees.dp;
  return model.experts > 0 ? (all + degrees.ffn - 1) / degrees.ffn : all;
}

/// Returns the mean time over layers of rows of this type between the sides (ffn_apart.h).
Time between(const FfnDevices& apart, const zoo::Model& model, std::int64_t tokens, double load,
             graph::DataType type) {
  const Degrees& d = apart.degrees;
  const std::int64_t sent = (tokens + d.tp - 1) / d.tp;
  Time all{0};
  std::int64_t layers = 0;
  for (const FfnDevices::Way& way : apart.ways) {
    const double came =
        static_cast<double>(tokens * d.dp) * (way.routes ? load : 1) / static_cast<double>(d.ffn);
    const std::int64_t rows = std::max(sent, static_cast<std::int64_t>(std::ceil(came)));
    all += way.layers * collective::collective_time(
                            graph::CollectiveKind::send_recv,
                            graph::bytes_of(type, rows * way.copies * model.hidden), apart.across,
                            collective::CollectiveAlgorithm::automatic, apart.machine);
    layers += way.layers;
  }
  return all / layers;
}

void check_apart(const zoo::Model& model, const machine::Machine& machine,
                 const StepOptions& options, Error& error) {
  const Degrees& d = options.degrees;
  const std::string found = std::to_string(d.ffn);
  const std::int64_t experts = model.experts + options.redundant;
  if (experts % d.ffn != 0) {
    error.add({"", "ffn", found,
               fmt::format("a divisor of the {} experts, or redundant_experts {} more", experts,
                           d.ffn - experts % d.ffn)});
  }
  if (d.pp * d.cp * d.ep > 1 || options.two_batch || options.fuse || options.window > 0 ||
      options.adapter_rank > 0 || !options.kernels.empty() ||
      options.overlap_tensor != plan::TensorOverlap::none || options.gateway != Gateway::none) {
    error.add({"", "ffn", found,
               "0 with pp, cp, ep, two_batch, fuse, overlap_tensor, gateway, adapters, measured "
               "kernels or weights that are streamed"});
  }
  if (machine.wires.graph || options.network || machine.network.empty() ||
      compute::fuses(machine.device)) {
    error.add({"", "ffn", found,
               "0 on one device, on one that runs a layer as one kernel, with a topology and with "
               "a model of the network"});
  }
  if (model.parallel_residual) {
    error.add({"", "ffn", found, "0: attention and MLPs of the model read the same tokens"});
  }
}

}  // namespace

Result<StepCost> StepCost::make_apart(const zoo::Model& model, const machine::Machine& machine,
                                      const StepOptions& options) {
  Error error;
  check_apart(model, machine, options, error);
  const Degrees& d = options.degrees;
  StepOptions attention = options;
  attention.degrees = {.tp = d.tp};
  attention.redundant = 0;
  StepOptions experts = options;
  experts.degrees = model.experts > 0 ? Degrees{.dp = d.ffn, .ep = d.ffn} : Degrees{.tp = d.ffn};
  experts.dispatch = plan::MoeDispatch::all_to_all;
  auto cost = make(model, machine, attention);
  if (!cost) {
    error.add(std::move(cost.error()));
  }
  auto ffn = make(model, machine, experts);
  auto all = with_room(machine, d.tp * d.dp + d.ffn);
  if (!error.empty() || !ffn || !all) {
    if (error.empty()) {
      error = ffn ? std::move(all.error()) : std::move(ffn.error());
      for (Mistake& mistake : error.mistakes) {
        mistake.field = "ffn";
      }
    }
    return fail(std::move(error));
  }
  std::vector<FfnDevices::Way> ways;
  const std::vector<std::int64_t>& kinds = cost->parts_->prices.kinds();
  for (std::size_t kind = 0; kind < kinds.size(); ++kind) {
    const bool routes = cost->parts_->table.layer_nodes(kind, 1).routes;
    const std::int64_t copies = routes ? model.top_k + (model.expert.shared_ffn > 0 ? 1 : 0)
                                       : (model.experts > 0 ? 1 : d.ffn);
    ways.push_back({kinds[kind], std::min(copies, d.ffn), routes});
  }
  auto across = collective::extents_of(d.tp * d.dp, 2, *all);
  cost->weights_.all -= cost->weights_.second_branch * model.layers;
  cost->apart_ = std::make_shared<FfnDevices>(
      FfnDevices{std::move(*ffn), std::move(*all), std::move(across), d, std::move(ways)});
  return cost;
}

Part StepCost::attending(const StepShape& shape, std::int64_t tokens, std::int64_t parts) {
  Part total = parts_->table.rows(tokens).attending;
  const auto share = static_cast<double>(parts);
  if (!shape.prompts.empty()) {
    StepShape prompts = shape;
    prompts.decodes = 0;
    Part all;
    parts_->attention.add(prompts, all);
    parts_->recurrent.add(prompts, all);
    total.add(Timed(all.time / parts, all.load * (1 / share)), all.kernels);
  }
  if (shape.decodes > 0) {
    StepShape decodes = shape;
    decodes.prompts.clear();
    decodes.decodes = (shape.decodes + parts - 1) / parts;
    for (double& keys : decodes.visible) {
      keys /= share;
    }
    parts_->attention.add(decodes, total);
    parts_->recurrent.add(decodes, total);
  }
  return total;
}

compute::ClockPoint StepCost::run_apart(const StepShape& shape) {
  const Degrees& d = apart_->degrees;
  const std::int64_t parts =
      std::clamp<std::int64_t>(options().micro_batches, 1, std::max<std::int64_t>(shape.tokens, 1));
  const std::int64_t cut = (shape.tokens + parts - 1) / parts;
  const bool captured = is_captured(cut, !shape.prompts.empty());
  const std::int64_t tokens = captured ? padded(cut) : cut;
  StepCost& there = apart_->cost;
  const std::int64_t own = tokens_there(model(), d, tokens);
  const Part attention = attending(shape, tokens, parts);
  const Part& ffn = there.parts_->table.rows(own).ffn;
  const Part& head = parts_->table.head(shape.samples);
  const double load = plan::expert_load(there.parts_->prices.plan_for(own), there.model().experts);
  const auto way = [&](graph::DataType type) {
    return between(*apart_, model(), tokens, load, type);
  };
  const std::int64_t layers = model().layers;
  Part total;
  total.time = ping_pong({.attention = attention.time / layers,
                          .there = way(options().precision.activations),
                          .ffn = ffn.time / layers,
                          .back = way(graph::DataType::bf16),
                          .micro_batches = parts,
                          .layers = layers}) +
               parts * parts_->table.rows(tokens).outside + head.time;
  const auto share = static_cast<double>(d.ffn) / static_cast<double>(d.tp * d.dp + d.ffn);
  const auto times = static_cast<double>(parts);
  total.load = (attention.load * times + head.load) * (1 - share) + ffn.load * (times * share);
  const std::int64_t launches = parts * std::max(attention.kernels, ffn.kernels);
  return clocked(total, captured ? Time(0) : options().launch * launches);
}

Bytes StepCost::ffn_bytes(std::int64_t tokens) const {
  if (!apart_) {
    return Bytes(0);
  }
  const StepCost& there = apart_->cost;
  return there.weights_.second_branch * model().layers +
         there.activations(tokens_there(model(), apart_->degrees, tokens), 0);
}

}  // namespace orrery::step
