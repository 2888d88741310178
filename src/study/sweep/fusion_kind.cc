// SPDX-License-Identifier: Apache-2.0
/// Pairs of parallelisms with and without fused communication: on any machine, and cycle by cycle
/// on Chimera's networks.
#include <fmt/format.h>

#include <memory>

#include "base/reader.h"
#include "collective/layout/chimera_steps.h"
#include "collective/layout/convert.h"
#include "collective/layout/pairs.h"
#include "machine/machine.h"
#include "study/sweep/config_path.h"
#include "study/sweep/kind.h"

namespace orrery::sweep {
namespace {

constexpr std::int64_t kMostRanks = 32;  // every pair of ranks of two stages is looked at
constexpr std::int64_t kMostCells = std::int64_t{1} << 31;
constexpr std::int64_t kMostMessage = std::int64_t{1} << 40;

struct OnMachine {
  machine::Machine machine;
  layout::Pair pair = layout::Pair::tp_sp;
  layout::PairSizes sizes;
};

/// `fusion: {pair, ranks, dp, tokens, width, top_k, element}`.
void read_fusion(Reader& description, OnMachine& on) {
  const ConfigNode* node = description.child("fusion", true);
  if (node == nullptr) {
    return;
  }
  Reader read(*node);
  const auto whole = [&](std::string_view name, std::int64_t otherwise, std::int64_t most) {
    const auto value = read.optional<std::int64_t>(name, otherwise);
    const bool fits = value >= 1 && value <= most;
    read.require(fits, name, fmt::format("a whole number from 1 to {}", most));
    return fits ? value : 1;
  };
  on.pair = read.required<layout::Pair>("pair");
  on.sizes.ranks = whole("ranks", 4, kMostRanks);
  on.sizes.dp = whole("dp", 1, kMostRanks);
  on.sizes.tokens = whole("tokens", 1024, kMostCells);
  on.sizes.width = whole("width", 1024, kMostCells);
  on.sizes.copies = whole("top_k", 2, kMostRanks);
  on.sizes.element = read.optional<Bytes>("element", Bytes(2));
  read.require(on.sizes.element >= Bytes(1) && on.sizes.element <= Bytes(1024), "element",
               "1 B to 1024 B");
  read.require(static_cast<double>(on.sizes.tokens) * static_cast<double>(on.sizes.width) < 1e12,
               "tokens", "tokens x width of at most 1e12");
  read.require(on.sizes.ranks % on.sizes.dp == 0, "dp", "a number that divides ranks");
  description.absorb(read.finish(0));
}

Outcome fuse_on(const OnMachine& on) {
  const layout::PairCase one = layout::pair_case(on.pair, on.sizes);
  const layout::Mesh& mesh = one.problem.mesh;
  const auto machine = machine::with_devices(on.machine, mesh.ranks());
  if (!machine) {
    return refused(kFusionFigures.size(), machine.error());
  }
  const layout::Cost seconds = layout::machine_cost(mesh, *machine);
  const layout::Cost bytes = layout::byte_cost(mesh);
  std::vector<layout::Step> fused = layout::cheapest(one.problem, seconds).value_or(one.base);
  const double base = layout::total_cost(one.problem, one.base, seconds);
  const double after = layout::total_cost(one.problem, fused, seconds);
  std::vector<std::string> names;
  for (const layout::Step& step : fused) {
    if (step.operation != layout::Operation::slice && step.operation != layout::Operation::apply) {
      names.push_back(to_string(step, mesh));
    }
  }
  return {{base, after, after > 0 ? base / after : 1.0,
           static_cast<std::int64_t>(layout::total_cost(one.problem, one.base, bytes)),
           static_cast<std::int64_t>(layout::total_cost(one.problem, fused, bytes)),
           fmt::format("{}", fmt::join(names, ", "))},
          ""};
}

/// `chimera: {network, pair, message, dp, top_k}`.
Result<layout::ChimeraStudy> read_chimera(const ConfigNode& description) {
  Reader outer(description);
  layout::ChimeraStudy study;
  if (const ConfigNode* node = outer.child("chimera", true)) {
    Reader read(*node);
    study.network = read.required<layout::ChimeraNetwork>("network");
    study.pair = read.required<layout::Pair>("pair");
    study.message = read.required<Bytes>("message");
    read.require(study.message >= Bytes(64) && study.message <= Bytes(kMostMessage), "message",
                 "64 B to 1 TiB");
    study.dp = read.optional<std::int64_t>("dp", study.dp);
    read.require(study.dp == 1 || study.dp == 2 || study.dp == 4, "dp", "1, 2 or 4, of four ranks");
    study.copies = read.optional<std::int64_t>("top_k", study.copies);
    read.require(study.copies >= 1 && study.copies <= kMostRanks, "top_k",
                 fmt::format("a whole number from 1 to {}", kMostRanks));
    outer.absorb(read.finish(0));
  }
  return outer.finish(study);
}

Outcome run_chimera(const layout::ChimeraStudy& study) {
  Outcome outcome;
  for (const bool artifact : {false, true}) {
    const auto base = layout::chimera_cycles(study, false, artifact);
    const auto fused = layout::chimera_cycles(study, true, artifact);
    const auto cell = [](const auto& value) { return value ? Cell(*value) : Cell(); };
    outcome.figures.push_back(cell(base));
    outcome.figures.push_back(cell(fused));
    outcome.figures.push_back(
        base && fused ? Cell(static_cast<double>(*base) / static_cast<double>(*fused)) : Cell());
    if (!base || !fused) {
      outcome.error = "messages meet: no closed form, the flit network says";
    }
  }
  return outcome;
}

template <class T, class Run>
Prepared prepared(Result<T> read, const ConfigNode& description, Run run) {
  if (!read) {
    return {.inputs = "unread " + canonical_text(description), .mistakes = read.error(), .run = {}};
  }
  const auto on = std::make_shared<T>(std::move(*read));
  return {
      .inputs = canonical_text(description), .mistakes = {}, .run = [on, run] { return run(*on); }};
}

}  // namespace

Prepared prepare_fusion(const ConfigNode& description) {
  Reader read(description);
  OnMachine on;
  if (const ConfigNode* machine = read.child("machine", true)) {
    on.machine = read.absorb(machine::parse_machine(*machine));
  }
  read_fusion(read, on);
  return prepared(read.finish(std::move(on)), description, fuse_on);
}

Prepared prepare_chimera(const ConfigNode& description) {
  return prepared(read_chimera(description), description, run_chimera);
}

}  // namespace orrery::sweep
