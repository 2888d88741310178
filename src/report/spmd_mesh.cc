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

/// A node of the program, and its forms by axis.
struct PlacedNode {
  spmd::MeshComputation computation;
  std::string name;
  spmd::MeshSignature forms;
};

std::vector<std::string> forms_of(const std::vector<spmd::Form>& inner,
                                  const std::vector<spmd::Form>& outer) {
  std::vector<std::string> forms;
  for (std::size_t k = 0; k < inner.size(); ++k) {
    forms.push_back(to_string(spmd::MeshForm(inner[k], outer[k])));
  }
  return forms;
}

void declare_node(Fields& fields, const PlacedNode& placed) {
  const auto& [inner, outer] = placed.forms;
  fields.field("node", "of the graph", placed.computation.node);
  fields.field("name", "of the node", placed.name);
  fields.values("inputs", {"forms, inner x outer axis", "of an input"},
                forms_of(inner.inputs, outer.inputs));
  fields.values("outputs", {"forms", "of an output"}, forms_of(inner.outputs, outer.outputs));
  fields.list("conversions", {"first", "of a tensor"}, placed.computation.conversions,
              [&](const spmd::MeshConversion& conversion) {
                fields.field("tensor", "of the graph", conversion.tensor);
                fields.field("from", "form", to_string(conversion.from));
                fields.values("steps", {"whose devices, from and to which form of theirs", "one"},
                              conversion.steps, step_text);
              });
}

/// Writes a computation as load_saved() reads it.
void write_saved(JsonWriter& json, const spmd::MeshComputation& computation) {
  json.begin_object();
  json.key("node").value(computation.node);
  json.key("signatures").values(computation.signatures);
  json.key("conversions")
      .objects(computation.conversions, [&](const spmd::MeshConversion& conversion) {
        json.key("tensor").value(conversion.tensor);
        json.key("from").value(to_string(conversion.from));
        json.key("steps").objects(conversion.steps, [&](const spmd::MeshStep& step) {
          json.key("group").value(name_of(step.group));
          json.key("from").value(to_string(step.from));
          json.key("to").value(to_string(step.to));
        });
      });
  json.end_object();
}

}  // namespace

std::string mesh_strategy_json(const MeshRun& run) {
  return json_text([&](JsonWriter& json) {
    json.begin_object();
    json.key("format").value(spmd::kMeshStrategyFormat);
    json.key("graph").value(run.graph.model);
    json.key("n_devices").value(spmd::devices_of(run.mesh));
    json.key("mesh").values(run.mesh);
    json.key("cost").value("orrery");
    json.key("profile").value(run.machine);
    json.key("total_seconds").value(to_seconds(run.cost.total));
    json.key("computations")
        .array(run.solution.strategy.computations,
               [&](const spmd::MeshComputation& computation) { write_saved(json, computation); });
    json.end_object();
  });
}

std::string mesh_table(const MeshRun& run) {
  return mesh_header(run) + program_table(run);
}

void declare(const MeshRun& run, Fields& fields) {
  fields.field("graph", "name of the model", run.graph.model);
  fields.field("n_devices", "devices", spmd::devices_of(run.mesh));
  fields.field("mesh", "devices along the inner and the outer axis, as 8x4",
               spmd::to_string(run.mesh));
  fields.field("cost", "orrery", "orrery");
  fields.field("profile", "name of the machine", run.machine);
  fields.field("overlap", "none", "none");
  fields.field("layers", "of the model; 0: not known", run.graph.layers);
  fields.field("nodes", "of the graph", run.graph.nodes.size());
  fields.field("parameters", "elements of all parameters", run.graph.parameters());
  fields.field("optimum_s", "seconds of one training step", run.cost.total);
  fields.field("simulated_s", "seconds of the program on the simulator", run.simulated);
  fields.field("memory_bytes", "of a device, everything kept until backward",
               run.cost.holdings.total());
  fields.field("communications", "conversions of tensors", conversions_of(run));
  fields.field("compute_s", "of kernels, forward and backward", run.cost.compute);
  fields.object("communication_s", "seconds, by whose devices communicate", [&] {
    for (const auto& [group, name, meaning] : kNames<MeshGroup>) {
      fields.field(name, meaning, run.cost.communication[static_cast<std::size_t>(group)]);
    }
  });
  fields.field("optimizer_s", "of the update of the parameters", run.cost.optimizer);
  declare_timing(fields, run.search_seconds);
  fields.field("states", "kept by the search, of all cuts", run.solution.counts.states);
  fields.field("skipped_periods", "of repeated layers", run.solution.counts.skipped_periods);
  std::vector<PlacedNode> program;
  for (const spmd::MeshComputation& each : run.solution.strategy.computations) {
    program.push_back({each, run.graph.node(each.node).name, signature_of(run.graph, each)});
  }
  fields.list("program", {"every node in order", "a node"}, program,
              [&](const PlacedNode& placed) { declare_node(fields, placed); });
}

}  // namespace orrery::report
