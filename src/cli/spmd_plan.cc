// SPDX-License-Identifier: Apache-2.0
#include "cli/spmd_plan.h"

#include <fmt/format.h>

#include <filesystem>
#include <utility>

#include "base/file.h"
#include "planner/spmd/decoder.h"
#include "planner/spmd/machine_prices.h"
#include "workload/plan/plan.h"
#include "workload/zoo/model.h"

namespace orrery::cli {
namespace {

/// Returns the fields that the plan has beside the strategy; no devices where its model has another
/// graph.
plan::Plan plan_of(const spmd::OperatorGraph& graph, bool mesh) {
  plan::Plan plan;
  const std::vector<std::int64_t>& tokens =
      graph.tensors[static_cast<std::size_t>(graph.nodes.front().outputs.front())].shape;
  const auto model = zoo::load_model(graph.model);
  plan.dp = 0;
  if (model && tokens.size() == 2) {
    plan.global_batch = tokens[0];
    plan.sequence = tokens[1];
    const auto own = spmd::decoder_graph(
        *model,
        {.devices = graph.devices, .batch = tokens[0], .sequence = tokens[1], .mesh = mesh});
    plan.dp = own && *own == graph ? graph.devices : 0;
  }
  return plan;
}

Error no_plan(const std::string& file, std::string_view overlap) {
  return Error(Mistake{"--save",
                       {},
                       file,
                       "NAME.json: a plan is of all layers of a model of `orrery list models`" +
                           std::string(overlap)});
}

/// The plan, and beside it the strategy. Requires devices.
Result<void> write_plan(plan::Plan plan, const std::string& model, const std::string& strategy_text,
                        const std::string& file) {
  const std::filesystem::path strategy = strategy_file(file);
  plan.strategy = strategy.filename().string();
  std::string text = fmt::format("# {} on {} devices, by `orrery spmd`\n", model, plan.dp);
  for (const char* field : {"dp", "global_batch", "sequence", "compute_type", "strategy"}) {
    text += fmt::format("{}: {}\n", field, plan::field_text(plan, field));
  }
  return write_file(strategy.string(), strategy_text).and_then([&] {
    return write_file(file, text);
  });
}

}  // namespace

bool is_plan_file(const std::string& file) {
  const std::string extension = std::filesystem::path(file).extension().string();
  return extension == ".yaml" || extension == ".yml";
}

std::string strategy_file(const std::string& file) {
  return is_plan_file(file) ? std::filesystem::path(file).replace_extension(".json").string()
                            : file;
}

Result<void> save_spmd_plan(const report::SpmdRun& run, const spmd::Prices* prices,
                            const std::string& file) {
  plan::Plan plan = plan_of(run.graph, false);
  const auto* const own = dynamic_cast<const spmd::MachinePrices*>(prices);
  if (plan.dp == 0 || own == nullptr || run.overlap != spmd::Overlap::both) {
    return fail(no_plan(file, ", with --cost orrery and overlap both"));
  }
  plan.compute_type = own->type();
  return write_plan(std::move(plan), run.graph.model, report::strategy_json(run), file);
}

Result<void> save_mesh_plan(const report::MeshRun& run, const std::string& file) {
  plan::Plan plan = plan_of(run.graph, true);
  if (plan.dp == 0) {
    return fail(no_plan(file, ""));
  }
  plan.compute_type = run.type;
  return write_plan(std::move(plan), run.graph.model, report::mesh_strategy_json(run), file);
}

}  // namespace orrery::cli
