// SPDX-License-Identifier: Apache-2.0
/// Chimera's experiments, published and fused, cycle by cycle: pairs alone, and passes of models.
#include <fmt/format.h>

#include "base/reader.h"
#include "collective/chimera/synthetic.h"
#include "collective/chimera/training.h"
#include "study/sweep/kind.h"

namespace orrery::sweep {
namespace {

using chimera::Topology;
using layout::Pair;

constexpr std::int64_t kMostMessage = std::int64_t{1} << 30;  // every flit may be simulated
constexpr std::int32_t kMostExtent = 64;
constexpr std::int32_t kMostNodes = 256;
constexpr std::int64_t kMostTopK = 32;

/// Returns a whole number in a range.
std::int64_t whole_number(Reader& read, std::string_view name, std::int64_t otherwise,
                          std::int64_t most) {
  const auto value = read.optional<std::int64_t>(name, otherwise);
  const bool fits = value >= 1 && value <= most;
  read.require(fits, name, fmt::format("a whole number from 1 to {}", most));
  return fits ? value : 1;
}

void append(Outcome& outcome, flit::Cycle base, flit::Cycle fused) {
  outcome.figures.emplace_back(base);
  outcome.figures.emplace_back(fused);
  outcome.figures.emplace_back(static_cast<double>(base) / static_cast<double>(fused));
}

/// `chimera: {network, pair, message, dp, top_k}`.
Result<chimera::Synthetic> read_synthetic(const ConfigNode& description) {
  Reader outer(description);
  chimera::Synthetic study;
  if (const ConfigNode* node = outer.child("chimera", true)) {
    Reader read(*node);
    study.topology = read.required<Topology>("network");
    study.pair = read.required<Pair>("pair");
    study.message = read.required<Bytes>("message");
    read.require(study.message >= Bytes(64) && study.message <= Bytes(kMostMessage), "message",
                 "64 B to 1 GiB");
    const auto dp = read.optional<std::int64_t>("dp", study.dp);
    read.require(dp == 1 || dp == 2 || dp == 4, "dp", "1, 2 or 4, of four ranks");
    study.dp = static_cast<std::int32_t>(dp);
    study.top_k = whole_number(read, "top_k", study.top_k, kMostTopK);
    outer.absorb(read.finish(0));
  }
  return outer.finish(study);
}

/// Returns whether the artifact's defects touch the pair: D2, D3 of reduce-scatters.
bool has_defects(const chimera::Synthetic& study) {
  const bool reduces =
      study.pair == Pair::tp_sp || study.pair == Pair::tp_pp || study.pair == Pair::tp_ep;
  return reduces && (study.topology == Topology::two_switch || study.topology == Topology::torus3d);
}

Outcome run_pair(const chimera::Synthetic& study, Shared& /*shared*/) {
  Outcome outcome;
  append(outcome, run_synthetic(study, false, false).end, run_synthetic(study, true, false).end);
  if (has_defects(study)) {
    append(outcome, run_synthetic(study, false, true).end, run_synthetic(study, true, true).end);
  } else {
    const std::vector<Cell> ours = outcome.figures;
    outcome.figures.insert(outcome.figures.end(), ours.begin(), ours.end());
  }
  return outcome;
}

/// "8x8": extents of a network, x first; of two switches GPUs of each.
chimera::Extents read_extents(Reader& read, Topology topology) {
  const chimera::Extents published = chimera::published_extents(topology);
  const auto text = read.optional<std::string>("extents", "");
  if (text.empty()) {
    return published;
  }
  chimera::Extents extents{1, 1, 1};
  std::size_t count = 0;
  bool good = true;
  std::int64_t nodes = 1;
  for (std::size_t at = 0; at <= text.size() && good; ++count) {
    const std::size_t end = std::min(text.find('x', at), text.size());
    const auto value = parse_integer(text.substr(at, end - at));
    good = count < extents.size() && value && *value >= 1 && *value <= kMostExtent;
    if (good) {
      extents[count] = static_cast<std::int32_t>(*value);
      nodes *= *value;
    }
    at = end + 1;
  }
  const std::size_t wanted = topology == Topology::torus3d ? 3 : 2;
  good = good && count == wanted && nodes <= kMostNodes;
  if (topology == Topology::two_switch) {
    good = good && extents[1] == 2;
  }
  read.require(good, "extents",
               topology == Topology::two_switch ? "GPUs of a switch and 2, such as 8x2"
               : wanted == 3 ? "three extents, such as 4x4x4, of 256 nodes at most"
                             : "two extents, such as 8x8, of 256 nodes at most");
  return good ? extents : published;
}

bool is_power_of_two(std::int64_t value) {
  return (value & (value - 1)) == 0;
}

void check_training(Reader& read, const chimera::Training& study) {
  const chimera::ModelShape shape = chimera::shape_of(study.model);
  const bool has_pair = shape.has_experts ? study.pair == Pair::sp_ep || study.pair == Pair::tp_ep
                                          : study.pair == Pair::tp_sp || study.pair == Pair::tp_pp;
  read.require(has_pair, "pair",
               shape.has_experts ? "sp+ep or tp+ep, of a model with experts"
                                 : "tp+sp or tp+pp, of a model without experts");
  const std::vector<chimera::Block> placed =
      chimera::place_stages(study.topology, study.extents, study.stages);
  const std::int64_t blocks = shape.layers / chimera::layers_of_block(shape);
  const bool fits =
      static_cast<std::int32_t>(placed.size()) == study.stages && study.stages <= blocks &&
      (!shape.has_experts || placed.front().ranks() % 2 == 0) &&
      (study.topology != Topology::two_switch || is_power_of_two(placed.front().ranks()));
  read.require(
      fits, "stages",
      fmt::format("at most {}, equal blocks of nodes ({} find room), on switches of a power "
                  "of two of ranks, with experts of an even number",
                  blocks, placed.size()));
}

/// `chimera: {model, network, extents, pair, pass, stages, tokens, microbatches, top_k}`.
Result<chimera::Training> read_training(const ConfigNode& description) {
  Reader outer(description);
  chimera::Training study;
  if (const ConfigNode* node = outer.child("chimera", true)) {
    Reader read(*node);
    study.model = read.required<chimera::ModelName>("model");
    study.topology = read.required<Topology>("network");
    study.extents = read_extents(read, study.topology);
    study.pair = read.required<Pair>("pair");
    study.pass = read.required<chimera::Pass>("pass");
    study.stages =
        static_cast<std::int32_t>(whole_number(read, "stages", study.stages, kMostNodes));
    study.tokens = whole_number(read, "tokens", study.tokens, 1 << 20);
    study.microbatches = whole_number(read, "microbatches", study.microbatches, 1 << 16);
    read.require(study.microbatches == 1 || study.pass == chimera::Pass::end_to_end, "microbatches",
                 "1, but of pass end_to_end");
    study.top_k = whole_number(read, "top_k", study.top_k, kMostTopK);
    check_training(read, study);
    outer.absorb(read.finish(0));
  }
  return outer.finish(study);
}

Outcome train(const chimera::Training& study, Shared& shared) {
  const chimera::TrainingRun run = run_training(study, shared.chimera_prices);
  Outcome outcome;
  append(outcome, run.base.whole, run.fused.whole);
  append(outcome, run.base.segment, run.fused.segment);
  return outcome;
}

}  // namespace

Prepared prepare_chimera(const ConfigNode& description) {
  return prepared(read_synthetic(description), description, run_pair);
}

Prepared prepare_chimera_training(const ConfigNode& description) {
  return prepared(read_training(description), description, train);
}

}  // namespace orrery::sweep
