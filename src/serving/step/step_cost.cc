// SPDX-License-Identifier: Apache-2.0
#include "serving/step/step_cost.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "machine/compute/compute_model.h"
#include "machine/compute/spatial.h"
#include "machine/device_groups.h"

namespace orrery::step {
namespace {

bool generates(const zoo::Model& model) {
  const auto kinds = model.kinds.empty() ? std::vector<zoo::LayerKind>{{}} : model.kinds;
  return model.head == zoo::HeadKind::next_token && model.input == zoo::InputKind::tokens &&
         std::all_of(kinds.begin(), kinds.end(), [](const zoo::LayerKind& kind) {
           const bool mixes = kind.mixer == zoo::MixerKind::attention ||
                              kind.mixer == zoo::MixerKind::latent_attention ||
                              kind.mixer == zoo::MixerKind::mamba ||
                              kind.mixer == zoo::MixerKind::gated_delta ||
                              kind.mixer == zoo::MixerKind::none;
           return mixes && kind.causal && !kind.cross_attention;
         });
}

/// Says how many copies of experts would make them as many as parts of `ep`.
std::string with_copies(std::int64_t experts, std::int64_t ep) {
  const std::int64_t more = (ep - experts % ep) % ep;
  return more == 0 ? "" : fmt::format(", or redundant_experts {} more", more);
}

void check_degrees(const zoo::Model& model, const Degrees& degrees, Error& error) {
  for (const auto& [name, value] : {std::pair{"tp", degrees.tp},
                                    {"pp", degrees.pp},
                                    {"dp", degrees.dp},
                                    {"ep", degrees.ep},
                                    {"cp", degrees.cp}}) {
    if (value < 1) {
      error.add({"", name, std::to_string(value), "a whole number from 1 on"});
    }
  }
  if (!error.empty()) {
    return;
  }
  for (const zoo::TensorExtent& extent : zoo::tensor_extents(model)) {
    // Key-value heads are copied where there are fewer than ranks.
    const bool copied = extent.dim == graph::Dim::key_value_heads && extent.extent < degrees.tp &&
                        degrees.tp % extent.extent == 0;
    if (extent.extent % degrees.tp != 0 && !copied) {
      error.add({"", "tp", std::to_string(degrees.tp),
                 fmt::format("a divisor of the {} {}", extent.extent, extent.what)});
    }
  }
  if (degrees.pp > model.layers) {
    error.add(
        {"", "pp", std::to_string(degrees.pp), fmt::format("at most {} layers", model.layers)});
  }
  const std::int64_t ranks = degrees.tp * degrees.dp;
  const bool splits = degrees.ep > 0 && ranks % degrees.ep == 0 && model.experts > 0 &&
                      model.experts % degrees.ep == 0;
  const bool parts = splits && model.expert.ffn % (ranks / degrees.ep) == 0;
  if (degrees.ep > 1 ? !parts : model.experts > 0 && model.expert.ffn % ranks != 0) {
    error.add({"", "ep", std::to_string(degrees.ep),
               model.experts == 0
                   ? "1: the model has no experts"
                   : fmt::format("a divisor of tp x dp = {} and of the {} experts{}, so that its "
                                 "groups of tp x dp / ep ranks divide an expert's width {}",
                                 ranks, model.experts, with_copies(model.experts, degrees.ep),
                                 model.expert.ffn)});
  }
  if (degrees.dp > 1 && (model.experts == 0 || degrees.pp > 1)) {
    error.add({"", "dp", std::to_string(degrees.dp),
               "1 without experts: copies that share nothing are engines of their own; and with "
               "pp"});
  }
  const auto apart = [](const zoo::LayerKind& kind) {
    return kind.mixer != zoo::MixerKind::attention && kind.mixer != zoo::MixerKind::none;
  };
  if (degrees.cp > 1 && (degrees.dp > 1 || degrees.pp > 1 || degrees.ep > 1 ||
                         std::any_of(model.kinds.begin(), model.kinds.end(), apart))) {
    error.add({"", "cp", std::to_string(degrees.cp),
               "1 with pp, dp, ep, latent attention or Mamba layers"});
  }
}

void check_overlap(const machine::Machine& machine, const StepOptions& options, Error& error) {
  if (options.overlap_tensor == plan::TensorOverlap::none) {
    return;
  }
  const auto refuse = [&](bool wrong, std::string_view expected) {
    if (wrong) {
      error.add({"", "overlap_tensor", std::string(name_of(options.overlap_tensor)),
                 std::string(expected)});
    }
  };
  refuse(options.overlap_tensor == plan::TensorOverlap::chunked,
         "none, cu_split, tracked or tracked_mca: pieces with kernels of their own are those of a "
         "training step");
  refuse(options.degrees.tp == 1, "none with tp 1: no product's result is summed over ranks");
  refuse(options.gateway != Gateway::none,
         "none with a gateway: its all-reduces are no rings whose steps could follow tiles");
  refuse(options.fuse, "none with fuse, which prices sums that wait for their products");
  refuse(compute::fuses(machine.device),
         "none on a device that runs a layer as one kernel: no product ends before its layer");
}

void check_window(const zoo::Model& model, const machine::Machine& machine,
                  const StepOptions& options, Error& error) {
  const Degrees& degrees = options.degrees;
  if (options.gateway != Gateway::none && machine.network.empty()) {
    error.add({"", "gateway", std::string(name_of(options.gateway)), "none without a network"});
  }
  if (options.window == 0) {
    return;
  }
  if (options.window > 2 * model.layers || degrees.pp * degrees.dp * degrees.cp > 1 ||
      options.fuse) {
    error.add({"", "window", std::to_string(options.window),
               fmt::format("at most {} blocks, and 0 with pp, dp, cp or fuse", 2 * model.layers)});
  }
  if (machine.device.memory.size() < 2) {
    error.add({"", "window", machine.name, "a machine with a second memory tier"});
  }
}

/// A token after 16 others takes as long with measured kernels as without: none of them is used.
bool are_alike(StepCost& with, StepCost& without) {
  const StepShape token{.tokens = 1,
                        .samples = 1,
                        .prompts = {},
                        .decodes = 1,
                        .visible = std::vector<double>(with.windows().size(), 16)};
  return with.time(token) == without.time(token);
}

}  // namespace

Result<StepCost> StepCost::make(const zoo::Model& model, const machine::Machine& machine,
                                const StepOptions& options) {
  Error error;
  if (!generates(model)) {
    error.add({"", "model", model.name,
               "a decoder of attention (also latent or windowed), Mamba layers, MLPs and experts"});
  }
  zoo::Model with_redundant = model;
  with_redundant.experts += options.redundant;
  if (options.redundant > 0 && model.experts == 0) {
    error.add({"", "redundant_experts", std::to_string(options.redundant),
               "0: the model has no experts"});
  }
  check_degrees(with_redundant, options.degrees, error);
  const graph::DataType type = options.precision.activations;
  if (machine.device.peak[static_cast<std::size_t>(type)] == FlopRate(0)) {
    error.add({"", "activations", std::string(name_of(type)),
               fmt::format("a type that {} computes in", machine.device.name)});
  }
  std::shared_ptr<const MeasuredKernels> measured;
  if (!options.kernels.empty()) {
    if (auto tables = MeasuredKernels::load(options.kernels)) {
      measured = std::make_shared<const MeasuredKernels>(std::move(*tables));
    } else {
      error.add(std::move(tables.error()));
    }
  }
  check_overlap(machine, options, error);
  check_window(model, machine, options, error);
  if (!error.empty()) {
    return fail(std::move(error));
  }
  const Degrees& degrees = options.degrees;
  auto sized = machine::with_devices(machine, degrees.tp * degrees.cp * degrees.dp * degrees.pp);
  if (!sized) {
    return fail(std::move(sized.error()));
  }
  if (auto alike = machine::check_alike(*sized, "serving"); !alike) {
    return fail(std::move(alike.error()));
  }
  StepCost cost(model, *sized, options, measured);
  if (auto known = cost.check_links(); !known) {
    return fail(std::move(known.error()));
  }
  if (measured) {
    StepCost plain(model, std::move(*sized), options, nullptr);
    if (are_alike(cost, plain)) {
      return fail(Error(Mistake{"", "kernels.tables", options.kernels,
                                "tables that have layers, products or attention of the model"}));
    }
  }
  return cost;
}

StepCost::StepCost(const zoo::Model& model, machine::Machine machine, const StepOptions& options,
                   std::shared_ptr<const MeasuredKernels> measured)
    : model_(model),
      machine_(std::move(machine)),
      options_(options),
      windows_{0},
      measured_(std::move(measured)) {
  model_.mtp = 0;
  model_.experts += options_.redundant;
  if (machine_.device.power_model.known()) {
    machine_.device.clock = 1;  // every step finds its own
  }
  const auto names = zoo::layer_kinds(model_);
  kinds_.assign(names.size(), 0);
  for (std::int64_t layer = 0; layer < model_.layers; ++layer) {
    ++kinds_[static_cast<std::size_t>(zoo::layer_kind(model_, layer))];
  }
  for (std::size_t i = 0; i < kinds_.size(); ++i) {
    const zoo::LayerKind kind = model_.kinds.empty() ? zoo::LayerKind{} : model_.kinds[i];
    if (kind.mixer == zoo::MixerKind::none || is_recurrent(i)) {
      continue;
    }
    // A chunk is seen half on the mean: as a window of half its length.
    const std::int64_t window = kind.window > 0 ? kind.window : kind.chunk / 2;
    auto found = std::find(windows_.begin(), windows_.end(), window);
    if (found == windows_.end()) {
      found = windows_.insert(windows_.end(), window);
    }
    attention_.push_back({.layers = kinds_[i],
                          .window = window,
                          .kept = kind.window > 0 ? kind.window : kind.chunk,
                          .visible = static_cast<std::size_t>(found - windows_.begin()),
                          .latent = kind.mixer == zoo::MixerKind::latent_attention,
                          .measured = measures_attention(i)});
  }
  decode_.type = wide_type();
  const auto group = [&](std::int64_t stride, std::int64_t count) -> RankGroup {
    return {stride, count, collective::extents_of(stride, count, machine_)};
  };
  const Degrees& degrees = options_.degrees;
  tensor_group_ = group(1, degrees.tp);
  data_group_ = group(degrees.tp, degrees.dp);
  expert_group_ = group(1, degrees.tp * degrees.dp);
  context_group_ = group(degrees.tp, degrees.cp);
  stage_group_ = group(degrees.tp, degrees.pp);
  if (machine_.wires.graph || options_.network) {
    on_links_.emplace(machine_, options_.network.value_or(simulate::NetworkModel::flow));
  }
  measure_weights();
  measure_cache();
}

Result<void> StepCost::check_links() const {
  if (!on_links_) {
    return {};
  }
  constexpr auto kAutomatic = collective::CollectiveAlgorithm::automatic;
  const bool gathers = options_.dispatch == plan::MoeDispatch::all_gather;
  const RankGroup none;
  for (const auto& [kind, group, algorithm] :
       {std::tuple(graph::CollectiveKind::all_reduce, &tensor_group_, options_.all_reduce),
        {graph::CollectiveKind::all_gather, gathers ? &data_group_ : &none, kAutomatic},
        {graph::CollectiveKind::all_to_all, gathers ? &none : &expert_group_, kAutomatic},
        {graph::CollectiveKind::all_reduce, &context_group_, kAutomatic}}) {
    if (auto known = on_links_->check(kind, *group, algorithm); !known) {
      return known;
    }
  }
  return {};
}

std::int64_t StepCost::padded(std::int64_t tokens) const {
  const auto found = std::lower_bound(options_.captures.begin(), options_.captures.end(), tokens);
  return found == options_.captures.end() ? tokens : *found;
}

bool StepCost::is_captured(std::int64_t tokens, bool prompts) const {
  return !options_.captures.empty() && tokens <= options_.captures.back() &&
         !(prompts && options_.eager_prompts);
}

const StepCost::Alike& StepCost::alike(std::int64_t tokens, std::int64_t samples, bool prompts) {
  if (alike_.tokens == tokens && alike_.samples == samples && alike_.prompts == prompts) {
    return alike_;
  }
  const bool captured = is_captured(tokens, prompts);
  const std::int64_t rows = captured ? padded(tokens) : tokens;
  const auto [of_rows, new_rows] = layers_.try_emplace(rows);
  if (new_rows) {
    const StreamChoice held = stream(rows);
    of_rows->second = layers(rows);
    of_rows->second.fused = {held.saved, held.kernels};
  }
  const auto [of_samples, new_samples] = heads_.try_emplace(samples);
  if (new_samples) {
    of_samples->second = head(samples);
  }
  alike_ = {.tokens = tokens,
            .samples = samples,
            .prompts = prompts,
            .captured = captured,
            .rows = of_rows->second};
  alike_.rows.all.add(of_samples->second);
  alike_.rows.outside += of_samples->second.time;
  return alike_;
}

std::int64_t StepCost::rows_of(const StepShape& shape) const {
  const std::int64_t cp = options_.degrees.cp;
  if (cp == 1) {
    return shape.tokens;
  }
  std::int64_t rows = shape.tokens;
  for (const Prompt& prompt : shape.prompts) {
    rows += (prompt.queries + cp - 1) / cp - prompt.queries;
  }
  return rows;
}

compute::ClockPoint StepCost::run(const StepShape& shape) {
  const Alike& fixed = alike(rows_of(shape), shape.samples, !shape.prompts.empty());
  Part total = fixed.rows.all;
  for (const AttentionKind& kind : attention_) {
    total.add(attend(kind, shape) * kind.layers, kind.layers);
  }
  if (recurs_) {
    total.add(recur(shape));
  }
  if (shape.adapted > 0) {
    const auto [part, fresh] = adapters_.try_emplace({shape.adapted, shape.adapters});
    if (fresh) {
      part->second = adapters(shape.adapted, shape.adapters);
    }
    total.add(part->second);
  }
  if (options_.window > 0) {
    total.time = through_window(fixed.rows, total.time);
    return clocked(total, Time(0));
  }
  Part saved = total;
  saved.time -= fixed.rows.fused.time;
  saved.kernels += fixed.rows.fused.kernels;
  if (compute::fuses(machine_.device)) {
    saved.time += compute::launches(machine_.device.spatial, model_.layers + 2);
    return clocked(saved, Time(0));
  }
  if (fixed.captured) {
    return clocked(saved, Time(0));
  }
  const Time plain_host = options_.launch * total.kernels;
  const Time saved_host = options_.launch * saved.kernels;
  return std::max(total.time, plain_host) <= std::max(saved.time, saved_host)
             ? clocked(total, plain_host)
             : clocked(saved, saved_host);
}

compute::ClockPoint StepCost::clocked(const Part& kernels, Time host) const {
  compute::Load load = kernels.load;
  load.seconds = to_seconds(std::max(kernels.time, host));
  load.busy = std::min(load.busy, load.seconds);
  compute::ClockPoint point = compute::at_own_clock(load, machine_.device);
  if (host > kernels.time) {  // kernels that take longer first fill the gaps between them
    const double longer = load.clocked * (1 / point.rate - 1);
    point.time = std::max(host, kernels.time + from_seconds(longer));
  }
  return point;
}

void StepCost::guess_by(std::shared_ptr<StepCost> drafter) {
  drafter_ = std::move(drafter);
  weights_ += drafter_ ? drafter_->weights_ : weights_ / model_.layers;
  cache_.per_token += drafter_ ? drafter_->cache_.per_token : cache_.per_token / model_.layers;
}

Time StepCost::draft(const StepShape& shape) {
  StepShape pass;
  pass.tokens = pass.samples = pass.decodes = shape.decodes;
  const std::size_t windows = drafter_ ? drafter_->windows_.size() : windows_.size();
  for (std::size_t w = 0; w < windows; ++w) {
    pass.visible.push_back(shape.visible[drafter_ ? 0 : w]);
  }
  if (drafter_) {
    return drafter_->time(pass);
  }
  const Time output = head(shape.decodes).time;
  return (time(pass) - output) / model_.layers + output;
}

Time StepCost::interval(Time step) const {
  // Layers are split evenly; the stage with one more is the longest.
  const std::int64_t pp = options_.degrees.pp;
  const std::int64_t most = (model_.layers + pp - 1) / pp;
  return step * (static_cast<double>(most) / static_cast<double>(model_.layers));
}

}  // namespace orrery::step
