// SPDX-License-Identifier: Apache-2.0
#include "cli/plan_layers.h"

#include <fmt/format.h>

#include <chrono>

#include "base/format.h"
#include "cli/command.h"
#include "planner/layerwise/fastest.h"
#include "report/json_writer.h"
#include "report/timing.h"

namespace orrery::cli {
namespace {

struct LayeredPlan {
  layerwise::Chain chain;
  layerwise::Assignment found;
  Bytes limit{0};
  double wall_s = 0;
};

std::string as_json(const LayeredPlan& plan) {
  return report::json_text([&](report::JsonWriter& json) {
    json.begin_object();
    json.key("time_s").value(to_seconds(plan.found.time));
    json.key("bound_s").value(to_seconds(plan.found.bound));
    json.key("memory_bytes").value(plan.found.memory.value());
    json.key("max_memory_bytes").value(plan.limit.value());
    report::write_timing(json, plan.wall_s);
    json.key("layers").begin_array();
    for (std::size_t i = 0; i < plan.found.strategies.size(); ++i) {
      json.begin_object();
      json.key("layer").value(plan.chain.layer(i).name);
      json.key("strategy").value(plan.chain.strategies[plan.found.strategies[i]]);
      json.end_object();
    }
    json.end_array().end_object();
  });
}

std::string as_text(const LayeredPlan& plan) {
  std::string text = fmt::format(
      "{} layers, {} strategies: {:.6f} s, {} of {}; nothing within it is faster than {:.6f} s "
      "({:.3f} s)\n",
      plan.chain.layers.size(), plan.chain.strategies.size(), to_seconds(plan.found.time),
      to_string(plan.found.memory), to_string(plan.limit), to_seconds(plan.found.bound),
      plan.wall_s);
  const auto& strategies = plan.found.strategies;
  for (std::size_t first = 0, end = 0; first < strategies.size(); first = end) {
    while (end < strategies.size() && strategies[end] == strategies[first] &&
           plan.chain.layers[end] == plan.chain.layers[first]) {
      ++end;
    }
    text += fmt::format("{:>6} x {:<20} {}\n", end - first, plan.chain.layer(first).name,
                        plan.chain.strategies[strategies[first]]);
  }
  return text;
}

}  // namespace

Result<std::string> plan_layers(const std::string& file,
                                const std::optional<std::string>& most_memory, bool json,
                                Error mistakes) {
  LayeredPlan plan;
  if (!most_memory) {
    mistakes.add({"--max-memory", {}, {}, "missing; expected what the layers may hold"});
  }
  take("--max-memory", most_memory, plan.limit, mistakes);
  plan.chain = collect(layerwise::load_chain(file), mistakes);
  if (!mistakes.empty()) {
    return fail(std::move(mistakes));
  }
  const auto begin = std::chrono::steady_clock::now();
  auto found = layerwise::fastest_within(plan.chain, plan.limit);
  if (!found) {
    return fail(std::move(found.error()));
  }
  plan.found = std::move(*found);
  plan.wall_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return json ? as_json(plan) : as_text(plan);
}

}  // namespace orrery::cli
