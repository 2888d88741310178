// SPDX-License-Identifier: Apache-2.0
#include "serving/step/step_cost.h"

#include <fmt/format.h>

#include <algorithm>

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
                              kind.mixer == zoo::MixerKind::compressed_attention ||
                              kind.mixer == zoo::MixerKind::mamba ||
                              kind.mixer == zoo::MixerKind::gated_delta ||
                              kind.mixer == zoo::MixerKind::none;
           return mixes && kind.causal && !kind.cross_attention;
         });
}

bool encodes(const zoo::Model& model) {
  return model.head == zoo::HeadKind::projected && model.input == zoo::InputKind::patches &&
         std::ranges::all_of(model.kinds, [](const zoo::LayerKind& kind) {
           return kind.mixer == zoo::MixerKind::attention && !kind.causal;
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
               model.experts == 0
                   ? "1 without experts: copies that share nothing are engines of their own"
                   : "1 with pp"});
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

void check_experts(const zoo::Model& model, const StepOptions& options, Error& error) {
  const auto refuse = [&](bool wrong, const char* field, std::string found, const char* expected) {
    if (wrong) {
      error.add({"", field, std::move(found), expected});
    }
  };
  refuse(options.redundant > 0 && model.experts == 0, "redundant_experts",
         std::to_string(options.redundant), "0: the model has no experts");
  refuse(options.precision.experts_fp4 && model.experts == 0, "experts_fp4", "true",
         "false: the model has no experts");
  refuse(options.two_batch && options.degrees.dp == 1, "two_batch", "true",
         "false without dp: only dp copies exchange tokens");
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
  if (options.degrees.ffn > 0) {
    return make_apart(model, machine, options);
  }
  Error error;
  if (!generates(model) && !encodes(model) && !step::embeds(model)) {
    error.add(
        {"", "model", model.name,
         "a decoder of attention (also latent, compressed or windowed), recurrent layers, MLPs "
         "and experts, or an encoder of attention"});
  }
  zoo::Model with_redundant = model;
  with_redundant.experts += options.redundant;
  check_experts(model, options, error);
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
  PassPrices prices(model, *sized, options, measured);
  if (auto known = prices.check_links(); !known) {
    return fail(std::move(known.error()));
  }
  StepCost cost(std::move(prices));
  if (measured) {
    StepCost plain(PassPrices(model, std::move(*sized), options, nullptr));
    if (are_alike(cost, plain)) {
      return fail(Error(Mistake{"", "kernels.tables", options.kernels,
                                "tables that have layers, products or attention of the model"}));
    }
  }
  return cost;
}

StepCost::StepCost(PassPrices prices)
    : parts_(std::make_unique<Parts>(std::move(prices))),
      weights_(parts_->table.weights()),
      cache_(embeds() ? CacheBytes() : parts_->attention.cache()) {}

bool StepCost::is_captured(std::int64_t tokens, bool prompts) const {
  return !options().captures.empty() && tokens <= options().captures.back() &&
         !(prompts && options().eager_prompts);
}

const PassRows& StepCost::rows_of(const StepShape& shape) {
  const std::int64_t tokens = parts_->attention.rows_of(shape);
  return parts_->table.rows(is_captured(tokens, !shape.prompts.empty()) ? padded(tokens) : tokens);
}

Time StepCost::collectives(const StepShape& shape, int dimension) {
  if (apart_) {
    return Time(0);
  }
  const PassRows& rows = rows_of(shape);
  const auto here = [&](const RankGroup& group, Time taken) {
    const bool crosses = !group.extents.empty() && group.extents.back().dimension == dimension;
    return crosses ? taken : Time(0);
  };
  return here(parts_->prices.tensor_group(), rows.reducing) +
         here(parts_->prices.exchange_group(), rows.exchange);
}

compute::ClockPoint StepCost::encode(const StepShape& shape) {
  if (!encoder_ || shape.tiles.empty()) {
    return {};
  }
  StepShape images{.samples = shape.encoded, .prompts = shape.tiles, .visible = {}};
  for (const Prompt& tile : shape.tiles) {
    images.tokens += tile.queries;
  }
  return encoder_->run(images);
}

compute::ClockPoint StepCost::run(const StepShape& shape) {
  if (apart_) {
    return run_apart(shape);
  }
  const std::int64_t tokens = parts_->attention.rows_of(shape);
  const bool captured = is_captured(tokens, !shape.prompts.empty());
  const PassRows& rows = rows_of(shape);
  const Part& head = parts_->table.head(shape.samples);
  Part total = rows.all;
  total.add(head);
  parts_->attention.add(shape, total);
  parts_->recurrent.add(shape, total);
  if (shape.adapted > 0) {
    total.add(parts_->table.adapters(shape.adapted, shape.adapters));
  }
  if (options().window > 0) {
    total.time = through_window(rows, head.time, total.time);
    return clocked(total, Time(0));
  }
  if (options().two_batch && rows.exchange > Time(0) && tokens > 1) {
    take_two_batches(rows, captured ? padded(tokens) : tokens, captured, total);
  }
  Part saved = total;
  saved.time -= rows.fused.time;
  saved.kernels += rows.fused.kernels;
  if (compute::fuses(machine().device)) {
    saved.time += compute::launches(machine().device.spatial, model().layers + 2);
    return clocked(saved, Time(0));
  }
  if (captured) {
    return clocked(saved, Time(0));
  }
  const Time plain_host = options().launch * total.kernels;
  const Time saved_host = options().launch * saved.kernels;
  return std::max(total.time, plain_host) <= std::max(saved.time, saved_host)
             ? clocked(total, plain_host)
             : clocked(saved, saved_host);
}

void StepCost::take_two_batches(const PassRows& rows, std::int64_t tokens, bool captured,
                                Part& total) {
  const PassRows& half = parts_->table.rows((tokens + 1) / 2);
  const Time others = total.time - rows.all.time;
  const Time kernels = 2 * (half.all.time - half.exchange) + others;
  const Time exchange = 2 * half.exchange;
  const Time fill = std::min(kernels, exchange) / (2 * model().layers);
  Part halves = total;
  halves.time = std::max(kernels, exchange) + fill;
  halves.kernels += rows.all.kernels;
  const auto taken = [&](const Part& part) {
    return captured ? part.time : std::max(part.time, options().launch * part.kernels);
  };
  total = taken(halves) < taken(total) ? halves : total;
}

compute::ClockPoint StepCost::clocked(const Part& kernels, Time host) const {
  compute::Load load = kernels.load;
  load.seconds = to_seconds(std::max(kernels.time, host));
  load.busy = std::min(load.busy, load.seconds);
  compute::ClockPoint point = compute::at_own_clock(load, machine().device);
  if (host > kernels.time) {  // kernels that take longer first fill the gaps between them
    const double longer = compute::longer_by(load, point.clock, machine().device);
    point.time = std::max(host, kernels.time + from_seconds(longer));
  }
  return point;
}

void StepCost::guess_by(std::shared_ptr<StepCost> drafter) {
  drafter_ = std::move(drafter);
  weights_.all += drafter_ ? drafter_->weights_.all : weights_.all / model().layers;
  cache_.per_token += drafter_ ? drafter_->cache_.per_token : cache_.per_token / model().layers;
}

void StepCost::see_by(std::shared_ptr<StepCost> encoder) {
  encoder_ = std::move(encoder);
  weights_.all += encoder_->weights_.all;
}

Time StepCost::draft(const StepShape& shape) {
  StepShape pass;
  pass.tokens = pass.samples = pass.decodes = shape.decodes;
  const std::size_t seen = (drafter_ ? *drafter_ : *this).windows().size();
  for (std::size_t w = 0; w < seen; ++w) {
    pass.visible.push_back(shape.visible[drafter_ ? 0 : w]);
  }
  if (drafter_) {
    return drafter_->time(pass);
  }
  const Time output = parts_->table.head(shape.decodes).time;
  return (time(pass) - output) / model().layers + output;
}

Time StepCost::interval(Time step) const {
  // Layers are split evenly; the stage with one more is the longest.
  const std::int64_t pp = options().degrees.pp;
  const std::int64_t most = (model().layers + pp - 1) / pp;
  return step * (static_cast<double>(most) / static_cast<double>(model().layers));
}

Time StepCost::through_window(const PassRows& rows, Time head, Time kernels) const {
  const Bandwidth disk = machine().device.memory[1].bandwidth;
  const std::int64_t layers = model().layers;
  const Time outside = rows.outside + head;
  const Time first = kernels - outside - rows.second - rows.reducing;
  const BlockTimes times{.attention = first / layers,
                         .mlp = rows.second / layers,
                         .all_reduce = rows.reducing / (2 * layers),
                         .load_attention = weights_.first_branch / disk,
                         .load_mlp = weights_.second_branch / disk};
  const WeightWindow window{
      .layers = layers, .blocks = options().window, .retain = options().retain};
  return outside + stream_tokens(window, times, 2).next;
}

Bytes StepCost::activations(std::int64_t tokens, std::int64_t samples) const {
  if (apart_) {
    return Bytes(4) * tokens * model().hidden + Bytes(10) * samples * model().vocab;
  }
  const Degrees& d = options().degrees;
  const bool gated = zoo::is_gated(model().mlp);
  std::int64_t widest = std::max(model().ffn, model().expert.shared_ffn);
  if (cache_.state > Bytes(0)) {  // x, z, B, C and dt, and what the convolution makes of them
    widest = std::max(widest, model().mamba.inner() + model().mamba.convolved());
  }
  // Gate and up beside their product, two rows of the stream; logits in 2 bytes and twice in fp32,
  // or sorted, when those rows are free: 40 bytes (1.25 GiB of 256 x 131,072 logits, published:
  // vllm-project/vllm pull request 32558).
  std::int64_t most = tokens * ((gated ? 3 : 2) * widest / d.tp + 2 * model().hidden);
  if (model().experts > 0) {
    const bool gathers = options().dispatch == plan::MoeDispatch::all_gather;
    const std::int64_t inner = model().expert.ffn * d.ep / (d.tp * d.dp);
    const std::int64_t row = std::max((gated ? 2 : 1) * inner, model().hidden) + inner;
    most =
        std::max(most, (gathers ? d.dp : 1) * tokens * (model().top_k * row + 2 * model().hidden));
  }
  const std::int64_t logits = samples * model().vocab;
  return options().profiles_top_p ? std::max(Bytes(2) * most, Bytes(40) * logits)
                                  : Bytes(2) * most + Bytes(10) * logits;
}

}  // namespace orrery::step
