// SPDX-License-Identifier: Apache-2.0
#include "planner/full/summary.h"

#include <fmt/format.h>

#include <algorithm>

#include "workload/plan/tensor_overlap.h"

namespace orrery::full {

std::vector<std::string> meanings(const std::vector<plan::Plan>& plans) {
  std::vector<std::string> lines;
  const auto say = [&](const std::string& line) {
    if (std::ranges::find(lines, line) == lines.end()) {
      lines.push_back(line);
    }
  };
  for (const plan::Plan& plan : plans) {
    if (plan.recompute != plan::Recompute::none && plan.recompute_layers > 0) {
      say(fmt::format("{} {}: recomputation in the first {} layers of every chunk",
                      name_of(plan.recompute), plan.recompute_layers, plan.recompute_layers));
    } else if (plan.recompute != plan::Recompute::none) {
      say(fmt::format("{}: recomputation in every layer", name_of(plan.recompute)));
    }
    if (plan.offload_optimizer != plan::Offload::none) {
      say(fmt::format("states {}: optimizer states are kept there (offload_optimizer)",
                      name_of(plan.offload_optimizer)));
    }
    if (plan.offload_activations > 0) {
      say(fmt::format("{:.0f} % to host: of the activations (offload_activations)",
                      100 * plan.offload_activations));
    }
  }
  return lines;
}

std::string summary(const plan::Plan& plan) {
  std::string text = fmt::format("tp {}", plan.tp);
  const auto degree = [&](const char* name, std::int64_t value) {
    if (value > 1) {
      text += fmt::format(" {} {}", name, value);
    }
  };
  degree("cp", plan.cp);
  degree("pp", plan.pp);
  degree("dp", plan.dp);
  degree("ep", plan.ep);
  degree("etp", plan.etp);
  if (plan.pp > 1) {
    text += fmt::format(" {}", name_of(plan.schedule));
    degree("x", plan.chunks);
  }
  text += fmt::format(", mb {}", plan.microbatch);
  if (plan.zero > 0) {
    text += fmt::format(", zero {}", plan.zero);
  }
  if (plan.data_parallel_update != plan::DataParallelUpdate::every_step) {
    text += fmt::format(", {} every {}", name_of(plan.data_parallel_update), plan.local_steps);
  }
  if (plan.recompute != plan::Recompute::none) {
    text += fmt::format(", {}", name_of(plan.recompute));
    if (plan.recompute_layers > 0) {
      text += fmt::format(" {}", plan.recompute_layers);
    }
  }
  if (!plan.recompute_modules.empty()) {
    text += ", " + plan.recompute_modules;
  }
  if (plan.overlap_tensor != plan::TensorOverlap::none) {
    text += fmt::format(", overlap_tensor {}", name_of(plan.overlap_tensor));
    text += plan::is_tracked(plan.overlap_tensor) ? " (hypothetical hardware)" : "";
  }
  if (plan.offload_optimizer != plan::Offload::none) {
    text += ", states " + std::string(name_of(plan.offload_optimizer));
  }
  if (plan.offload_activations > 0) {
    text += fmt::format(", {:.0f} % to host", 100 * plan.offload_activations);
  }
  if (plan.order != plan::Plan().order) {
    text += ", " + plan.order;
  }
  if (!plan.parts.empty()) {
    text += ", on " + plan.parts;
  }
  return text;
}

}  // namespace orrery::full
