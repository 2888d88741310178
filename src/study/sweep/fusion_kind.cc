// SPDX-License-Identifier: Apache-2.0
/// Pairs of parallelisms with and without fused communication on any machine.
#include <fmt/format.h>

#include "base/lists.h"
#include "base/reader.h"
#include "collective/layout/convert.h"
#include "collective/layout/pairs.h"
#include "machine/machine.h"
#include "study/sweep/config_path.h"
#include "study/sweep/kind.h"

namespace orrery::sweep {
namespace {

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
  on.sizes.ranks = whole("ranks", 4, layout::kMostPairRanks);
  on.sizes.dp = whole("dp", 1, layout::kMostPairRanks);
  on.sizes.tokens = whole("tokens", 1024, layout::kMostPairExtent);
  on.sizes.width = whole("width", 1024, layout::kMostPairExtent);
  on.sizes.copies = whole("top_k", 2, layout::kMostPairExtent);
  on.sizes.element = read.optional<Bytes>("element", Bytes(2));
  if (const auto wrong = layout::wrong_size(on.sizes)) {
    read.require(false, wrong->field, std::string(wrong->expected));
  }
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
  const std::vector<layout::Step> fused = layout::cheapest(one.problem, seconds).value_or(one.base);
  const double base = layout::total_cost(one.problem, one.base, seconds);
  const double after = layout::total_cost(one.problem, fused, seconds);
  const double published = layout::total_cost(one.problem, one.fused, seconds);
  for (const auto* steps : {&one.base, &fused, &one.fused}) {
    const Error late = layout::beyond_time(name_of(on.pair), one.problem, *steps, seconds);
    if (!late.empty()) {
      return refused(kFusionFigures.size(), late);
    }
  }
  std::vector<std::string> names;
  for (const layout::Step& step : fused) {
    if (layout::moves(step.operation)) {
      names.push_back(to_string(step, mesh));
    }
  }
  return {{base, after, after > 0 ? base / after : 1.0,
           static_cast<std::int64_t>(layout::total_cost(one.problem, one.base, bytes)),
           static_cast<std::int64_t>(layout::total_cost(one.problem, fused, bytes)), joined(names),
           published > 0 ? base / published : 1.0},
          ""};
}

}  // namespace

Prepared prepare_fusion(const ConfigNode& description) {
  Reader read(description);
  OnMachine on;
  if (const ConfigNode* machine = read.child("machine", true)) {
    on.machine = read.absorb(machine::parse_machine(*machine));
  }
  read_fusion(read, on);
  return prepared(read.finish(std::move(on)), description,
                  [](const OnMachine& of, Shared&) { return fuse_on(of); });
}

}  // namespace orrery::sweep
