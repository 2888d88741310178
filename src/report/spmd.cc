// SPDX-License-Identifier: Apache-2.0
#include "report/spmd.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/format.h"
#include "report/json_writer.h"
#include "report/timing.h"

namespace orrery::report {
namespace {

using spmd::Operation;

const spmd::Node& node_of(const SpmdRun& run, int node) {
  return run.graph.nodes[static_cast<std::size_t>(node)];
}

/// Returns the gap of a search within a limit.
double gap(const SpmdRun& run) {
  return 1 - run.bound.value_or(Time(0)) / run.strategy_cost.total;
}

std::string header(const SpmdRun& run) {
  const std::string layers =
      run.graph.layers > 0 ? fmt::format(", {} layers", run.graph.layers) : "";
  const std::string what = run.given   ? "the strategy given"
                           : run.fixed ? fmt::format("the fastest {}", name_of(*run.fixed))
                                       : "the fastest strategy";
  std::string text = fmt::format(
      "{}{}, {} nodes, {:.4g} M parameters on {} devices\ncost {} on {}, overlap {}: {} takes "
      "{:.6f} "
      "s ({} stages, {} communications)\n",
      run.graph.model, layers, run.graph.nodes.size(),
      static_cast<double>(run.graph.parameters()) / 1e6, run.devices, run.cost, run.machine,
      name_of(run.overlap), what, to_seconds(run.strategy_cost.total), run.strategy.stages.size(),
      run.strategy.communications());
  for (std::size_t first = 0, end = 0; first < run.shares.size(); first = end) {
    const FlopRate rate = run.mixed->rates[first];
    while (end < run.shares.size() && run.mixed->rates[end] == rate) {
      ++end;
    }
    text += fmt::format("{} devices of {} hold {} each\n", end - first, to_string(rate),
                        percent(run.shares[first]));
  }
  text += fmt::format("memory of a device, everything kept: {}", to_string(run.memory));
  if (run.limit && run.bound) {
    text += fmt::format(", limit {}; no strategy within it is faster than {:.6f} s (gap {})",
                        to_string(*run.limit), to_seconds(*run.bound), percent(gap(run)));
  }
  text += "\n";
  if (run.simulated) {
    text += fmt::format("simulated: {:.6f} s\n", to_seconds(*run.simulated));
  }
  if (!run.given) {
    text += fmt::format(
        "searched in {:.3f} s: {} states, {} beginnings of stages, {} periods of "
        "repeated layers skipped\n",
        run.search_seconds, run.counts.states, run.counts.paths, run.counts.skipped_periods);
  }
  return text;
}

std::string time_table(const SpmdRun& run) {
  const spmd::StrategyCost& cost = run.strategy_cost;
  const auto row = [&](std::string_view name, const spmd::StrategyCost::Kind& sum) {
    const auto count = [](std::int64_t times) { return times > 0 ? std::to_string(times) : ""; };
    return fmt::format("{:<16}{:>6}{:>14.6f}{:>8}{:>14.6f}{:>10}\n", name, count(sum.forward_count),
                       to_seconds(sum.forward), count(sum.backward_count), to_seconds(sum.backward),
                       percent((sum.forward + sum.backward) / cost.total));
  };
  std::string text = fmt::format("\n{:<16}{:>6}{:>14}{:>8}{:>14}{:>10}\n", "both halves", "times",
                                 "forward (s)", "times", "backward (s)", "of step");
  text += row("compute", {0, 0, cost.compute / 3, cost.compute - cost.compute / 3});
  for (const Operation kind : spmd::kConversions) {
    const auto& sum = cost.kinds[static_cast<std::size_t>(kind)];
    if (sum.forward_count + sum.backward_count > 0) {
      text += row(name_of(kind), sum);
    }
  }
  if (cost.penalty > Time(0)) {
    text += row("optimizer", {0, 0, Time(0), cost.penalty});
  }
  return text + "What hides behind something else counts too.\n";
}

std::string others_table(const SpmdRun& run) {
  const bool simulated = run.simulated.has_value();
  std::string text =
      fmt::format("\n{:<24}{:>14}{:>10}{}\n", "strategy", "time (s)", "slower",
                  simulated ? fmt::format("{:>15}{:>10}", "simulated (s)", "slower") : "");
  for (const SpmdRun::Other& other : run.others) {
    text += other.time ? fmt::format("{:<24}{:>14.6f}{:>9.3f}x", name_of(other.strategy),
                                     to_seconds(*other.time), *other.time / run.strategy_cost.total)
                       : fmt::format("{:<24}{:>14}", name_of(other.strategy), "none");
    if (simulated && other.simulated) {
      text += fmt::format("{:>15.6f}{:>9.3f}x", to_seconds(*other.simulated),
                          *other.simulated / *run.simulated);
    }
    text += "\n";
  }
  return text;
}

std::string frontier_table(const SpmdRun& run) {
  std::string text =
      fmt::format("\ntime against memory: the fastest within each\n{:>12}{:>14}{:>16}\n", "memory",
                  "time (s)", "communications");
  for (const spmd::MemoryPoint& point : run.frontier) {
    text += fmt::format("{:>12}{:>14.6f}{:>16}\n", to_string(point.memory),
                        to_seconds(point.solution.total), point.solution.strategy.communications());
  }
  return text;
}

std::string communication_text(const SpmdRun& run, const spmd::Communication& communication) {
  const spmd::Tensor& tensor = run.graph.tensors[static_cast<std::size_t>(communication.tensor)];
  const auto kinds = spmd::conversion(communication.from, communication.to);
  return fmt::format("{} {} -> {} ({})", node_of(run, tensor.producer).name,
                     to_string(communication.from), to_string(communication.to),
                     kinds ? name_of(kinds->forward) : "?");
}

std::string stage_table(const SpmdRun& run) {
  std::string text = "\nstages: what is converted, then what is computed\n";
  constexpr std::size_t kMostStages = 60;
  const std::size_t stages = run.strategy.stages.size();
  for (std::size_t i = 0; i < std::min(stages, kMostStages); ++i) {
    const spmd::Stage& stage = run.strategy.stages[i];
    text += fmt::format("{:>4}  {:.6f} s\n", i, to_seconds(run.strategy_cost.by_stage[i]));
    for (const spmd::Communication& communication : stage.communications) {
      text += "        " + communication_text(run, communication) + "\n";
    }
    for (const spmd::Computation& computation : stage.computations) {
      const spmd::Node& node = node_of(run, computation.node);
      text +=
          fmt::format("      {}: {}\n", node.name,
                      to_string(node.signatures[static_cast<std::size_t>(computation.signature)]));
    }
  }
  if (stages > kMostStages) {
    text += fmt::format("and {} more; --save writes all\n", stages - kMostStages);
  }
  return text;
}

void write_header(JsonWriter& json, const SpmdRun& run) {
  json.key("graph").value(run.graph.model);
  json.key("n_devices").value(run.devices);
  json.key("cost").value(run.cost);
  json.key("profile").value(run.machine);
  json.key("overlap").value(name_of(run.overlap));
}

void write_stage(JsonWriter& json, const spmd::Stage& stage) {
  json.begin_object().key("communications").begin_array();
  for (const spmd::Communication& communication : stage.communications) {
    json.begin_object();
    json.key("tensor").value(communication.tensor);
    json.key("from").value(to_string(communication.from));
    json.key("to").value(to_string(communication.to));
    json.end_object();
  }
  json.end_array()
      .key("computations")
      .objects(stage.computations,
               [&](const spmd::Computation& computation) {
                 json.key("node").value(computation.node);
                 json.key("signature").value(computation.signature);
               })
      .end_object();
}

template <class T>
void write_list(JsonWriter& json, const std::vector<T>& items) {
  json.array(items, [&](const T& item) {
    if constexpr (std::is_same_v<T, spmd::Form>) {
      json.value(to_string(item));
    } else {
      json.value(item);
    }
  });
}

void write_tensor(JsonWriter& json, const spmd::Tensor& tensor, std::size_t id) {
  json.begin_object();
  json.key("id").value(id);
  json.key("producer").value(tensor.producer);
  write_list(json.key("shape"), tensor.shape);
  json.key("bytes").value(tensor.bytes.value());
  json.end_object();
}

void write_node(JsonWriter& json, const spmd::Node& node, std::size_t id) {
  json.begin_object();
  json.key("id").value(id);
  json.key("kind").value(name_of(node.kind));
  if (!node.op.empty()) {
    json.key("op").value(node.op);
  }
  json.key("name").value(node.name);
  json.key("flops").value(node.flops.value());
  write_list(json.key("inputs"), node.inputs);
  write_list(json.key("outputs"), node.outputs);
  json.key("signatures").array(node.signatures, [&](const spmd::Signature& signature) {
    json.begin_array();
    write_list(json, signature.inputs);
    write_list(json, signature.outputs);
    json.end_array();
  });
  if (node.experts) {
    json.key("experts").value(true);
  }
  if (node.kernel) {
    const spmd::NodeKernel& kernel = *node.kernel;
    json.key("kernel").begin_object();
    json.key("kind").value(name_of(kernel.kind));
    write_list(json.key("gemm"),
               std::vector{kernel.gemm.batch, kernel.gemm.m, kernel.gemm.n, kernel.gemm.k});
    json.key("flops").value(kernel.flops.value());
    json.key("bytes").value(kernel.bytes.value());
    json.key("kernels").value(kernel.kernels);
    json.key("parts").value(kernel.parts);
    json.end_object();
  }
  json.end_object();
}

void declare_cost(Fields& fields, const SpmdRun& run) {
  fields.field("compute_s", "of both halves, forward and backward", run.strategy_cost.compute);
  fields.field("optimizer_s", "seconds of the optimizer; 0 but with cost orrery",
               run.strategy_cost.penalty);
  fields.list(
      "collectives", {"sums over both halves; what hides counts too", "a kind"},
      std::vector(spmd::kConversions.begin(), spmd::kConversions.end()), [&](const Operation kind) {
        const auto& sum = run.strategy_cost.kinds[static_cast<std::size_t>(kind)];
        fields.field("name", "slice, all_gather, all_reduce, reduce_scatter or all_to_all",
                     name_of(kind));
        fields.field("forward", "conversions that do it in the forward pass", sum.forward_count);
        fields.field("backward", "conversions that do it in the backward pass", sum.backward_count);
        fields.field("forward_s", "seconds", sum.forward);
        fields.field("backward_s", "seconds", sum.backward);
      });
  fields.list("strategies", {"well-known strategies for comparison", "one"}, run.others,
              [&](const SpmdRun::Other& other) {
                fields.field("name", "of the strategy", name_of(other.strategy));
                fields.perhaps("time_s",
                               "seconds of the best of that kind; absent where there is none",
                               other.time);
                fields.perhaps("simulated_s", "seconds of it on the simulator; of cost orrery",
                               other.simulated);
              });
}

}  // namespace

std::string spmd_table(const SpmdRun& run) {
  return header(run) + time_table(run) + (run.others.empty() ? "" : others_table(run)) +
         (run.frontier.empty() ? "" : frontier_table(run)) + stage_table(run);
}

void declare(const SpmdRun& run, Fields& fields) {
  fields.field("graph", "name of the model", run.graph.model);
  fields.field("n_devices", "devices", run.devices);
  fields.field("cost", "hidup, orrery or mixed", run.cost);
  fields.field("profile", "name of the profile, with cost orrery of the machine", run.machine);
  fields.choice("overlap", "of communication with computation", run.overlap);
  fields.field("layers", "of the model; 0: not known", run.graph.layers);
  fields.field("nodes", "of the graph", run.graph.nodes.size());
  fields.field("parameters", "elements of all parameters", run.graph.parameters());
  fields.field("forward_flops", "of the graph, forward, global batch", run.graph.forward_flops());
  fields.field("fixed", "well-known strategy to which the search was restricted, or none",
               run.fixed ? name_of(*run.fixed) : "none");
  fields.field("optimum_s", "seconds of one training step", run.strategy_cost.total);
  fields.perhaps("simulated_s", "seconds of the strategy on the simulator; of cost orrery",
                 run.simulated);
  fields.field("stages", "of the strategy", run.strategy.stages.size());
  fields.field("communications", "conversions of the strategy", run.strategy.communications());
  fields.field("memory_bytes", "that one device holds when everything is kept", run.memory);
  const bool limited = run.limit && run.bound;
  fields.when(limited, "memory_limit_bytes", "limit on that", run.limit.value_or(Bytes(0)));
  fields.when(limited, "bound_s", "no strategy within the limit is faster",
              run.bound.value_or(Time(0)));
  fields.when(limited, "gap", "1 - bound_s / optimum_s", gap(run));
  fields.perhaps_values("shares",
                        {"of cost mixed: what each device holds of everything that is sliced, in "
                         "the order of --rates",
                         "of a device"},
                        run.shares);
  fields.list(
      "frontier", {"--frontier: the fastest strategies for less and less memory", "one"},
      run.frontier,
      [&](const spmd::MemoryPoint& point) {
        fields.field("memory_bytes", "that one device holds", point.memory);
        fields.field("time_s", "seconds of one training step; none within this memory is faster",
                     point.solution.total);
        fields.field("communications", "conversions", point.solution.strategy.communications());
      },
      true);
  declare_timing(fields, run.search_seconds);
  fields.field("states", "that the search visited", run.counts.states);
  fields.field("skipped_periods", "of repeated layers that it did not have to",
               run.counts.skipped_periods);
  declare_cost(fields, run);
}

std::string graph_json(const spmd::OperatorGraph& graph) {
  return json_text([&](JsonWriter& json) {
    json.begin_object();
    json.key("format").value("annotated-graph/1");
    json.key("model").value(graph.model);
    json.key("gpus").value(graph.devices);
    json.key("layers").value(graph.layers);
    json.key("bytes_per_element").value(graph.element);
    json.key("tensors").begin_array();
    for (std::size_t i = 0; i < graph.tensors.size(); ++i) {
      write_tensor(json, graph.tensors[i], i);
    }
    json.end_array().key("nodes").begin_array();
    for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
      write_node(json, graph.nodes[i], i);
    }
    json.end_array().end_object();
  });
}

std::string strategy_json(const SpmdRun& run) {
  return json_text([&](JsonWriter& json) {
    json.begin_object();
    json.key("format").value("spmd-strategy/1");
    write_header(json, run);
    json.key("total_seconds").value(to_seconds(run.strategy_cost.total));
    json.key("stages").array(run.strategy.stages,
                             [&](const spmd::Stage& stage) { write_stage(json, stage); });
    json.end_object();
  });
}

}  // namespace orrery::report
