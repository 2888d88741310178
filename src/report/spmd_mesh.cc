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

/// Returns the time that the bound is of.
Time answer_of(const MeshRun& run) {
  return run.overlap == spmd::Overlap::none ? run.cost.total : run.simulated;
}

std::string found_text(const MeshRun& run) {
  const Time time = answer_of(run);
  const std::string within = run.limit ? " within " + to_string(*run.limit) : "";
  std::string text =
      run.overlap == spmd::Overlap::none
          ? fmt::format("nothing hides: the fastest program{} takes {:.6f} s, simulated {:.6f} s\n",
                        within, to_seconds(time), to_seconds(run.simulated))
          : fmt::format(
                "collectives beside kernels: the fastest program found{} takes {:.6f} s simulated, "
                "{:.6f} s if nothing hid\n",
                within, to_seconds(time), to_seconds(run.cost.total));
  if (run.bound >= time) {
    text += "proved: no program" + within + " is faster\n";
  } else if (run.bound > Time(0)) {
    text += fmt::format("no program{} takes less than {:.6f} s, {} below\n", within,
                        to_seconds(run.bound), percent(1 - run.bound / time));
  }
  return text;
}

std::string mesh_header(const MeshRun& run) {
  const auto share = [&](Time part) { return percent(part / run.cost.total); };
  const spmd::MeshCounts& counts = run.solution.counts;
  std::string text = fmt::format(
      "{}, {} layers, {} nodes, {:.4g} M parameters on {} devices as {}\ncost orrery on {}, "
      "{}memory of a device, everything kept: {}\nsearched in {:.3f} s: {} states, {} at most at a "
      "cut, {} periods of repeated layers skipped\n",
      run.graph.model, run.graph.layers, run.graph.nodes.size(),
      static_cast<double>(run.graph.parameters()) / 1e6, spmd::devices_of(run.mesh),
      spmd::to_string(run.mesh), run.machine, found_text(run), to_string(run.cost.holdings.total()),
      run.search_seconds, counts.states, counts.most_states, counts.skipped_periods);
  if (counts.dropped > 0) {
    text += fmt::format("{} states beyond {} at a cut were dropped: --states keeps more\n",
                        counts.dropped, run.states);
  }
  text += fmt::format("\n{:<54}{:>12.6f} s{:>10}\n", "compute", to_seconds(run.cost.compute),
                      share(run.cost.compute));
  for (const MeshGroup group : spmd::groups_on(run.mesh)) {
    const auto& row = kNames<MeshGroup>[static_cast<std::size_t>(group)];
    const Time time = run.cost.communication[static_cast<std::size_t>(group)];
    text += fmt::format("{:<54}{:>12.6f} s{:>10}\n", fmt::format("{} ({})", row.name, row.meaning),
                        to_seconds(time), share(time));
  }
  text += fmt::format("{:<54}{:>12.6f} s{:>10}\n", "optimizer", to_seconds(run.cost.optimizer),
                      share(run.cost.optimizer));
  if (!run.frontier.empty()) {
    text += fmt::format("\ntime against memory: the fastest within each\n{:>12}{:>14}\n", "memory",
                        "time (s)");
  }
  for (const spmd::MeshPoint& point : run.frontier) {
    text += fmt::format("{:>12}{:>14.6f}\n", to_string(point.memory), to_seconds(point.time));
  }
  return text;
}

std::string step_text(const spmd::MeshStep& step) {
  return fmt::format("{} {} -> {}", name_of(step.group), to_string(step.from), to_string(step.to));
}

/// Returns the table of the program; of equal layers the first is enough: node names without their
/// layer, each program once.
std::string program_table(const MeshRun& run) {
  std::string text = "\nprogram: forms of outputs by axis, the inner one first\n";
  constexpr std::size_t kMostLines = 60;
  std::size_t lines = 0;
  for (const spmd::MeshComputation& computation : run.solution.strategy.computations) {
    const spmd::Node& node = run.graph.node(computation.node);
    const spmd::MeshSignature forms = signature_of(run.graph, computation, run.mesh);
    if (node.is_load() || node.outputs.empty()) {
      continue;
    }
    if (++lines > kMostLines) {
      return text + "and more; --json has all\n";
    }
    text += fmt::format("  {:<28}{}", node.name, to_string(output_form(forms, 0), run.mesh));
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
  std::vector<std::string> inputs;
  std::vector<std::string> outputs;
};

PlacedNode placed_node(const MeshRun& run, const spmd::MeshComputation& computation) {
  const spmd::Node& node = run.graph.node(computation.node);
  const spmd::MeshSignature forms = signature_of(run.graph, computation, run.mesh);
  PlacedNode placed{computation, node.name, {}, {}};
  for (std::size_t k = 0; k < node.inputs.size(); ++k) {
    placed.inputs.push_back(to_string(input_form(forms, k), run.mesh));
  }
  for (std::size_t k = 0; k < node.outputs.size(); ++k) {
    placed.outputs.push_back(to_string(output_form(forms, k), run.mesh));
  }
  return placed;
}

void declare_node(Fields& fields, const PlacedNode& placed, const spmd::Mesh& mesh) {
  fields.field("node", "of the graph", placed.computation.node);
  fields.field("name", "of the node", placed.name);
  fields.values("inputs", {"forms by axis, the inner one first", "of an input"}, placed.inputs);
  fields.values("outputs", {"forms", "of an output"}, placed.outputs);
  fields.list("conversions", {"first", "of a tensor"}, placed.computation.conversions,
              [&](const spmd::MeshConversion& conversion) {
                fields.field("tensor", "of the graph", conversion.tensor);
                fields.field("from", "form", to_string(conversion.from, mesh));
                fields.values("steps", {"whose devices, from and to which form of theirs", "one"},
                              conversion.steps, step_text);
              });
}

/// Writes a computation as load_saved() reads it.
void write_saved(JsonWriter& json, const spmd::MeshComputation& computation,
                 const spmd::Mesh& mesh) {
  std::vector<int> signatures;
  for (const std::size_t axis : spmd::axes_of(mesh)) {
    signatures.push_back(computation.signatures[axis]);
  }
  json.begin_object();
  json.key("node").value(computation.node);
  json.key("signatures").values(signatures);
  json.key("conversions")
      .objects(computation.conversions, [&](const spmd::MeshConversion& conversion) {
        json.key("tensor").value(conversion.tensor);
        json.key("from").value(to_string(conversion.from, mesh));
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
    std::vector<std::int64_t> extents;
    for (const std::size_t axis : spmd::axes_of(run.mesh)) {
      extents.push_back(run.mesh[axis]);
    }
    json.key("mesh").values(extents);
    json.key("overlap").value(name_of(run.overlap));
    json.key("cost").value("orrery");
    json.key("profile").value(run.machine);
    json.key("total_seconds").value(to_seconds(run.cost.total));
    json.key("computations")
        .array(run.solution.strategy.computations, [&](const spmd::MeshComputation& computation) {
          write_saved(json, computation, run.mesh);
        });
    json.end_object();
  });
}

std::string mesh_table(const MeshRun& run) {
  return mesh_header(run) + program_table(run);
}

void declare(const MeshRun& run, Fields& fields) {
  fields.field("graph", "name of the model", run.graph.model);
  fields.field("n_devices", "devices", spmd::devices_of(run.mesh));
  fields.field("mesh", "devices along the axes, the inner one first, as 8x4 or 8x4x2",
               spmd::to_string(run.mesh));
  fields.field("cost", "orrery", "orrery");
  fields.field("profile", "name of the machine", run.machine);
  fields.choice("overlap", "of collectives with kernels", run.overlap);
  fields.field("layers", "of the model; 0: not known", run.graph.layers);
  fields.field("nodes", "of the graph", run.graph.nodes.size());
  fields.field("parameters", "elements of all parameters", run.graph.parameters());
  fields.field("optimum_s", "seconds of one training step of which nothing hides", run.cost.total);
  fields.field("simulated_s", "seconds of the program on the simulator", run.simulated);
  fields.perhaps("max_memory_bytes", "limit of memory", run.limit);
  fields.field("bound_s",
               "no program within the limit is faster: of optimum_s, with overlap of simulated_s",
               run.bound);
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
  fields.field("dropped_states", "beyond --states at a cut; 0: the search was exact",
               run.solution.counts.dropped);
  fields.field("skipped_periods", "of repeated layers", run.solution.counts.skipped_periods);
  fields.list(
      "frontier", {"--frontier: the fastest programs for less and less memory", "one"},
      run.frontier,
      [&](const spmd::MeshPoint& point) {
        fields.field("memory_bytes", "that one device holds", point.memory);
        fields.field("time_s", "seconds of one training step of which nothing hides", point.time);
      },
      true);
  std::vector<PlacedNode> program;
  program.reserve(run.solution.strategy.computations.size());
  for (const spmd::MeshComputation& each : run.solution.strategy.computations) {
    program.push_back(placed_node(run, each));
  }
  fields.list("program", {"every node in order", "a node"}, program,
              [&](const PlacedNode& placed) { declare_node(fields, placed, run.mesh); });
}

}  // namespace orrery::report
