// SPDX-License-Identifier: Apache-2.0
#include "golden.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "base/reader.h"
#include "planner/spmd/decoder.h"
#include "planner/spmd/fixed.h"
#include "planner/spmd/mesh_search.h"
#include "planner/spmd/models.h"
#include "planner/spmd/program.h"
#include "planner/spmd/search.h"
#include "serving/engine.h"
#include "simulate/simulate.h"
#include "workload/parallel/lower.h"

namespace orrery::golden {
namespace {

/// A shipped model, cut to so many layers where `layers` says so.
Result<zoo::Model> model_of(Reader& read) {
  const auto layers = read.optional<std::int64_t>("layers", 0);
  auto model = zoo::load_model(read.required<std::string>("model"));
  if (model && layers > 0) {
    model->layers = layers;
  }
  return model;
}

Result<machine::Machine> machine_of(Reader& read, std::int64_t devices) {
  return machine::load_machine(read.optional<std::string>("machine", "dgx-h100"))
      .and_then([&](machine::Machine machine) {
        return devices > 0 ? machine::with_devices(std::move(machine), devices)
                           : Result<machine::Machine>(std::move(machine));
      });
}

Result<std::vector<Section>> lowered(const ConfigNode& node) {
  Reader read(node);
  const zoo::Model model = read.absorb(model_of(read));
  const ConfigNode* const child = read.child("plan", true);
  if (!read.ok() || child == nullptr) {
    return read.finish(std::vector<Section>());
  }
  const plan::Plan plan = read.absorb(plan::parse_plan(*child));
  const machine::Machine machine = read.absorb(machine_of(read, plan.devices()));
  read.absorb(plan::check(plan, model).map([] { return true; }));
  auto sections = read.finish(std::vector<Section>());
  for (const bool fuse : {false, true}) {
    parallel::LowerOptions options{.machine = &machine};
    options.skip = fuse ? std::set<std::string>() : std::set<std::string>{"fuse"};
    if (!sections) {
      return sections;
    }
    const auto workload = parallel::lower(model, plan, options);
    if (!workload) {
      return fail(workload.error());
    }
    std::vector<Section> found = sections_of(*workload);
    if (!fuse) {
      *sections = std::move(found);
      continue;
    }
    for (std::size_t i = 0; i < found.size(); ++i) {
      auto& columns = sections->at(i).columns;
      columns.insert(columns.end(), std::make_move_iterator(found[i].columns.begin()),
                     std::make_move_iterator(found[i].columns.end()));
    }
  }
  return sections;
}

/// Steps of decodes that see so many keys each, of prompts after so many tokens, and of both.
std::vector<step::StepShape> step_shapes(const step::StepCost& cost, std::int64_t queries,
                                         bool adapted) {
  std::vector<step::StepShape> shapes;
  const auto add = [&](std::int64_t decodes, std::int64_t keys, std::int64_t prompts,
                       std::int64_t prompt, std::int64_t context) {
    step::StepShape shape{.tokens = decodes * queries + prompts * prompt,
                          .samples = decodes + prompts,
                          .prompts = {},
                          .decodes = decodes,
                          .queries = queries,
                          .visible = {}};
    shape.prompts.assign(static_cast<std::size_t>(prompts), {prompt, context});
    shape.adapted = adapted ? shape.tokens / 2 : 0;
    shape.adapters = adapted ? std::min<std::int64_t>(4, shape.adapted) : 0;
    for (const std::int64_t window : cost.windows()) {
      shape.visible.push_back(
          static_cast<double>(decodes * (window > 0 ? std::min(keys, window) : keys)));
    }
    shape.longest = decodes > 0 ? 1.5 * static_cast<double>(keys) : 0;
    shapes.push_back(std::move(shape));
  };
  for (const std::int64_t decodes : {1, 2, 7, 16, 64, 200, 512}) {
    for (const std::int64_t keys : {100, 2000}) {
      add(decodes, keys, 0, 0, 0);
    }
  }
  for (const std::int64_t prompt : {1, 64, 500, 2048, 8192}) {
    add(0, 0, 1, prompt, 0);
  }
  for (const std::int64_t prompt : {100, 1024}) {
    add(0, 0, 1, prompt, 3000);
    add(0, 0, 4, prompt, 0);
    add(8, 1500, 1, prompt, 0);
    add(100, 700, 2, prompt, 512);
    add(1, 10000, 1, prompt, 128);
  }
  add(1024, 400, 0, 0, 0);
  return shapes;
}

Result<std::vector<Section>> timed(const ConfigNode& node) {
  Reader read(node);
  const zoo::Model model = read.absorb(model_of(read));
  const machine::Machine machine = read.absorb(machine_of(read, 0));
  const auto network = read.maybe<simulate::NetworkModel>("network");
  const std::string drafter = read.optional<std::string>("drafter", "");
  const ConfigNode* const child = read.child("engine", true);
  if (!read.ok() || child == nullptr) {
    return read.finish(std::vector<Section>());
  }
  serving::Engine engine = read.absorb(serving::parse_engine(*child));
  engine = serving::completed(engine, machine, model.max_positions);
  engine.network = network;
  auto cost = step::StepCost::make(model, machine, serving::step_options(engine));
  if (!cost) {
    return fail(std::move(cost.error()));
  }
  if (!drafter.empty()) {
    const zoo::Model small = read.absorb(zoo::load_model(drafter));
    cost->guess_by(std::make_shared<step::StepCost>(
        read.absorb(step::StepCost::make(small, machine, serving::step_options(engine))
                        .map([](step::StepCost made) { return std::optional(std::move(made)); }))
            .value()));
  } else if (engine.speculation == serving::Speculation::mtp) {
    cost->guess_by(nullptr);
  }
  std::string text;
  for (const step::StepShape& shape :
       step_shapes(*cost, 1 + engine.drafts(), engine.adapter_slots > 0)) {
    text +=
        fmt::format("tokens {} samples {} prompts {} decodes {}: {}", shape.tokens, shape.samples,
                    shape.prompts.size(), shape.decodes, cost->time(shape).value());
    const bool guesses = engine.drafts() > 0 && engine.speculation != serving::Speculation::ngram;
    text += guesses ? fmt::format(" draft {}\n", cost->draft(shape).value()) : "\n";
  }
  text += fmt::format("weights {} cache {} adapter {}\n", cost->weights_per_device().value(),
                      cost->kv_bytes_per_token().value(), cost->adapter_bytes().value());
  return read.finish(std::vector<Section>{{"times", {std::move(text)}}});
}

/// A graph of HiDup's, or a decoder of the zoo.
Result<spmd::OperatorGraph> graph_of(const std::string& name, std::int64_t devices,
                                     std::int64_t layers, bool mesh) {
  if (const auto model = value_of<spmd::ModelName>(name)) {
    return spmd::build_model(*model, {.devices = devices, .layers = layers});
  }
  return zoo::load_model(name).and_then([&](const zoo::Model& model) {
    return spmd::decoder_graph(
        model, {.devices = devices, .sequence = 2048, .layers = layers, .mesh = mesh});
  });
}

Result<Time> simulated(const Result<graph::Workload>& program, const machine::Machine& machine) {
  if (!program) {
    return fail(program.error());
  }
  return simulate::simulate(*program, machine).map([](const simulate::Timeline& timeline) {
    return timeline.step_time;
  });
}

std::string text_of(const spmd::Strategy& strategy) {
  std::string text;
  for (const spmd::Stage& stage : strategy.stages) {
    text += "stage";
    for (const spmd::Communication& one : stage.communications) {
      text += fmt::format(" {} {} > {};", one.tensor, to_string(one.from), to_string(one.to));
    }
    for (const spmd::Computation& one : stage.computations) {
      text += fmt::format(" {}:{}", one.node, one.signature);
    }
    text += '\n';
  }
  return text;
}

std::string text_of(const spmd::MeshStrategy& strategy, const spmd::Mesh& mesh) {
  std::string text;
  for (const spmd::MeshComputation& one : strategy.computations) {
    text += fmt::format("node {} by {} {}", one.node, one.signatures[0], one.signatures[2]);
    for (const spmd::MeshConversion& conversion : one.conversions) {
      text += fmt::format("; {} {}", conversion.tensor, to_string(conversion.from, mesh));
      for (const spmd::MeshStep& step : conversion.steps) {
        text += fmt::format(" > {} {}", name_of(step.group), to_string(step.to));
      }
    }
    text += '\n';
  }
  return text;
}

/// Returns what the search found; with our prices (`machine`) also the simulated time and what the
/// well-known strategies cost.
Result<std::string> searched(const spmd::OperatorGraph& graph, const spmd::Prices& prices,
                             const spmd::MachinePrices* own) {
  const auto found = spmd::search(graph, prices);
  if (!found) {
    return fail(found.error());
  }
  std::string text = fmt::format("total {}\n", found->total.value());
  if (own != nullptr) {
    const auto time = simulated(spmd::program_of(graph, found->strategy, *own), own->machine());
    if (!time) {
      return fail(time.error());
    }
    text += fmt::format("simulated {}\n", time->value());
  }
  for (const auto& row : kNames<spmd::FixedStrategy>) {
    const auto other = spmd::search(graph, prices, {.allowed = spmd::restriction(row.value)});
    text += fmt::format("{} {}\n", row.name, other ? other->total.value() : 0);
  }
  return text + text_of(found->strategy);
}

Result<std::string> searched_on_mesh(const spmd::OperatorGraph& graph,
                                     const spmd::MeshPrices& prices) {
  const auto found = spmd::search_mesh(graph, prices);
  if (!found) {
    return fail(found.error());
  }
  const auto time = simulated(spmd::program_of(graph, found->strategy, prices), prices.machine());
  if (!time) {
    return fail(time.error());
  }
  return fmt::format("total {}\nsimulated {}\n{}", found->total.value(), time->value(),
                     text_of(found->strategy, prices.mesh()));
}

Result<std::vector<Section>> searched(const ConfigNode& node) {
  Reader read(node);
  const auto graphs = read.list<std::string>("graphs", true);
  const auto layers = read.optional<std::int64_t>("layers", 2);
  const auto inner = read.optional<std::int64_t>("devices", 8);
  const auto outer = read.optional<std::int64_t>("outer", 1);
  const auto profile = read.maybe<std::string>("profile");
  const auto overlap = read.optional("overlap", spmd::Overlap::both);
  const machine::Machine machine = read.absorb(machine_of(read, inner * outer));
  auto sections = read.finish(std::vector<Section>());
  for (const std::string& name : graphs) {
    if (!sections) {
      break;
    }
    const auto text =
        graph_of(name, inner * outer, layers, outer > 1)
            .and_then([&](const spmd::OperatorGraph& graph) -> Result<std::string> {
              if (profile) {
                return spmd::load_profile(*profile).and_then([&](auto known) {
                  return searched(graph, spmd::PublishedPrices({inner, known, overlap}), nullptr);
                });
              }
              if (outer > 1) {
                return spmd::MeshPrices::make(machine, spmd::mesh_of(inner, outer), graph.element)
                    .and_then([&](const spmd::MeshPrices& prices) {
                      return searched_on_mesh(graph, prices);
                    });
              }
              return spmd::MachinePrices::make(machine, inner, overlap, graph.element)
                  .and_then([&](const spmd::MachinePrices& prices) {
                    return searched(graph, prices, &prices);
                  });
            });
    if (!text) {
      return fail(text.error());
    }
    sections->push_back({name, {*text}});
  }
  return sections;
}

}  // namespace

Result<std::vector<Case>> all_cases() {
  std::vector<Case> cases;
  for (const auto& [kind, file] :
       {std::pair{Kind::plan, "plans"}, {Kind::engine, "engines"}, {Kind::spmd, "spmd"}}) {
    const auto node = load_config(golden_path(fmt::format("{}.yaml", file)));
    if (!node) {
      return fail(node.error());
    }
    for (const ConfigField& field : node->fields) {
      cases.push_back({kind, fmt::format("{}/{}", file, field.name), field.value});
    }
  }
  return cases;
}

Result<std::vector<Section>> text_of(const Case& one) {
  return one.kind == Kind::plan     ? lowered(one.node)
         : one.kind == Kind::engine ? timed(one.node)
                                    : searched(one.node);
}

std::uint32_t hash_of(std::string_view text) {
  std::uint64_t hash = 14695981039346656037U;
  for (const char letter : text) {
    hash = (hash ^ static_cast<unsigned char>(letter)) * 1099511628211U;
  }
  return static_cast<std::uint32_t>(hash >> 32);
}

std::string hash_line(const Case& one, const Section& section) {
  std::string line = one.name + '\t' + section.name + '\t';
  for (std::size_t i = 0; i < section.columns.size(); ++i) {
    line += fmt::format("{}{:08x}", i == 0 ? "" : " ", hash_of(section.columns[i]));
  }
  return line;
}

std::string golden_path(std::string_view name) {
  return fmt::format("{}/tests/golden/{}", ORRERY_SOURCE_DIR, name);
}

}  // namespace orrery::golden
