// SPDX-License-Identifier: Apache-2.0
#include "report/spmd_mesh.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/format.h"
#include "planner/spmd/saved.h"
#include "report/json_writer.h"
#include "report/timing.h"

namespace orrery::report {
namespace {

using spmd::MeshGroup;

std::int64_t conversions_of(const MeshRun& run) {
  std::int64_t count = 0;
  for (const spmd::MeshComputation& computation : run.solution.strategy.computations) {
    count += static_cast<std::int64_t>(computation.conversions.size());
  }
  return count;
}

std::string mesh_header(const MeshRun& run) {
  const auto share = [&](Time part) { return percent(part / run.cost.total); };
  std::string text = fmt::format(
      "{}, {} layers, {} nodes, {:.4g} M parameters on {} devices as {}\ncost orrery on {}, "
      "nothing "
      "hides: the fastest program takes {:.6f} s, simulated {:.6f} s\nmemory of a device, "
      "everything kept: {}\nsearched in {:.3f} s: {} states, {} at most at a cut, {} periods of "
      "repeated layers skipped\n\n",
      run.graph.model, run.graph.layers, run.graph.nodes.size(),
      static_cast<double>(run.graph.parameters()) / 1e6, spmd::devices_of(run.mesh),
      spmd::to_string(run.mesh), run.machine, to_seconds(run.cost.total), to_seconds(run.simulated),
      to_string(run.cost.holdings.total()), run.search_seconds, run.solution.counts.states,
      run.solution.counts.most_states, run.solution.counts.skipped_periods);
  text += fmt::format("{:<36}{:>12.6f} s{:>10}\n", "compute", to_seconds(run.cost.compute),
                      share(run.cost.compute));
  for (const auto& [group, name, meaning] : kNames<MeshGroup>) {
    const Time time = run.cost.communication[static_cast<std::size_t>(group)];
    text += fmt::format("{:<36}{:>12.6f} s{:>10}\n", fmt::format("{} ({})", name, meaning),
                        to_seconds(time), share(time));
  }
  return text + fmt::format("{:<36}{:>12.6f} s{:>10}\n", "optimizer",
                            to_seconds(run.cost.optimizer), share(run.cost.optimizer));
}

std::string step_text(const spmd::MeshStep& step) {
  return fmt::format("{} {} -> {}", name_of(step.group), to_string(step.from), to_string(step.to));
}

/// Returns the table of the program; of equal layers the first is enough: node names without their
/// layer, each program once.
std::string program_table(const MeshRun& run) {
  std::string text = "\nprogram: forms of outputs, inner x outer axis\n";
  constexpr std::size_t kMostLines = 60;
  std::size_t lines = 0;
  for (const spmd::MeshComputation& computation : run.solution.strategy.computations) {
    const spmd::Node& node = run.graph.node(computation.node);
    const spmd::MeshSignature pair = signature_of(run.graph, computation);
    if (node.is_load() || node.outputs.empty()) {
      continue;
    }
    if (++lines > kMostLines) {
      return text + "and more; --json has all\n";
    }
    text += fmt::format("  {:<28}{}", node.name,
                        to_string(spmd::MeshForm(pair[0].outputs[0], pair[1].outputs[0])));
    for (const spmd::MeshConversion& conversion : computation.conversions) {
      text += fmt::format("\n      {}:", run.graph.producer(conversion.tensor).name);
      for (const spmd::MeshStep& step : conversion.steps) {
        text += " " + step_text(step) + ";";
      }
    }
    text += "\n";
  }
  return text;
}

void write_forms(JsonWriter& json, std::string_view name, const std::vector<spmd::Form>& inner,
                 const std::vector<spmd::Form>& outer) {
  json.key(name).begin_array();
  for (std::size_t k = 0; k < inner.size(); ++k) {
    json.value(to_string(spmd::MeshForm(inner[k], outer[k])));
  }
  json.end_array();
}

void write_computation(JsonWriter& json, const MeshRun& run,
                       const spmd::MeshComputation& computation) {
  const spmd::MeshSignature pair = signature_of(run.graph, computation);
  json.begin_object();
  json.key("node").value(computation.node);
  json.key("name").value(run.graph.node(computation.node).name);
  write_forms(json, "inputs", pair[0].inputs, pair[1].inputs);
  write_forms(json, "outputs", pair[0].outputs, pair[1].outputs);
  json.key("conversions").begin_array();
  for (const spmd::MeshConversion& conversion : computation.conversions) {
    json.begin_object();
    json.key("tensor").value(conversion.tensor);
    json.key("from").value(to_string(conversion.from));
    json.key("steps").begin_array();
    for (const spmd::MeshStep& step : conversion.steps) {
      json.value(step_text(step));
    }
    json.end_array().end_object();
  }
  json.end_array().end_object();
}

/// As load_saved() reads it.
void write_saved(JsonWriter& json, const spmd::MeshComputation& computation) {
  json.begin_object();
  json.key("node").value(computation.node);
  json.key("signatures").begin_array();
  for (const int signature : computation.signatures) {
    json.value(signature);
  }
  json.end_array();
  json.key("conversions").begin_array();
  for (const spmd::MeshConversion& conversion : computation.conversions) {
    json.begin_object();
    json.key("tensor").value(conversion.tensor);
    json.key("from").value(to_string(conversion.from));
    json.key("steps").begin_array();
    for (const spmd::MeshStep& step : conversion.steps) {
      json.begin_object();
      json.key("group").value(name_of(step.group));
      json.key("from").value(to_string(step.from));
      json.key("to").value(to_string(step.to)).end_object();
    }
    json.end_array().end_object();
  }
  json.end_array().end_object();
}

}  // namespace

std::string mesh_strategy_json(const MeshRun& run) {
  return json_text([&](JsonWriter& json) {
    json.begin_object();
    json.key("format").value(spmd::kMeshStrategyFormat);
    json.key("graph").value(run.graph.model);
    json.key("n_devices").value(spmd::devices_of(run.mesh));
    json.key("mesh").begin_array();
    for (const std::int64_t devices : run.mesh) {
      json.value(devices);
    }
    json.end_array();
    json.key("cost").value("orrery");
    json.key("profile").value(run.machine);
    json.key("total_seconds").value(to_seconds(run.cost.total));
    json.key("computations").begin_array();
    for (const spmd::MeshComputation& computation : run.solution.strategy.computations) {
      write_saved(json, computation);
    }
    json.end_array().end_object();
  });
}

std::string mesh_table(const MeshRun& run) {
  return mesh_header(run) + program_table(run);
}

std::string mesh_json(const MeshRun& run) {
  return json_text([&](JsonWriter& json) {
    json.begin_object();
    json.key("graph").value(run.graph.model);
    json.key("n_devices").value(spmd::devices_of(run.mesh));
    json.key("mesh").value(spmd::to_string(run.mesh));
    json.key("cost").value("orrery");
    json.key("profile").value(run.machine);
    json.key("overlap").value("none");
    json.key("layers").value(run.graph.layers);
    json.key("nodes").value(run.graph.nodes.size());
    json.key("parameters").value(run.graph.parameters());
    json.key("optimum_s").value(to_seconds(run.cost.total));
    json.key("simulated_s").value(to_seconds(run.simulated));
    json.key("memory_bytes").value(run.cost.holdings.total().value());
    json.key("communications").value(conversions_of(run));
    json.key("compute_s").value(to_seconds(run.cost.compute));
    json.key("communication_s").begin_object();
    for (const auto& [group, name, meaning] : kNames<MeshGroup>) {
      json.key(name).value(to_seconds(run.cost.communication[static_cast<std::size_t>(group)]));
    }
    json.end_object();
    json.key("optimizer_s").value(to_seconds(run.cost.optimizer));
    write_timing(json, run.search_seconds);
    json.key("states").value(run.solution.counts.states);
    json.key("skipped_periods").value(run.solution.counts.skipped_periods);
    json.key("program").begin_array();
    for (const spmd::MeshComputation& computation : run.solution.strategy.computations) {
      write_computation(json, run, computation);
    }
    json.end_array().end_object();
  });
}

}  // namespace orrery::report
