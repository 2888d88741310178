// SPDX-License-Identifier: Apache-2.0
/// Searches for the fastest program that all devices run: under the published cost with a profile,
/// under ours with a machine, and then also simulated.
#include <chrono>

#include "base/file.h"
#include "base/reader.h"
#include "machine/machine.h"
#include "planner/spmd/fixed.h"
#include "planner/spmd/memory.h"
#include "planner/spmd/models.h"
#include "planner/spmd/noise.h"
#include "planner/spmd/program.h"
#include "planner/spmd/search.h"
#include "simulate/simulate.h"
#include "study/sweep/kind.h"

namespace orrery::sweep {
namespace {

struct Search {
  spmd::OperatorGraph graph;
  std::int64_t devices = 0;
  std::optional<spmd::FixedStrategy> fixed{};  ///< none: every strategy
  spmd::Noise noise{};
  spmd::PublishedPrices::Setting published{};
  std::optional<machine::Machine> machine{};  ///< none: the published cost
};

spmd::OperatorGraph read_graph(Reader& read, const spmd::ModelSize& size) {
  const auto graph = read.required<std::string>("graph");
  if (const auto name = value_of<spmd::ModelName>(graph)) {
    return read.absorb(spmd::build_model(*name, size));
  }
  const bool is_file = graph.find_first_of("./") != std::string::npos;
  read.require(is_file || !read.ok(), "graph",
               "one of " + all_names<spmd::ModelName>() + ", or a file" +
                   did_you_mean(graph, names_of<spmd::ModelName>()));
  return is_file ? read.absorb(spmd::load_graph(graph)) : spmd::OperatorGraph{};
}

std::optional<spmd::FixedStrategy> read_fixed(Reader& read) {
  const auto text = read.optional<std::string>("fixed", "none");
  const auto fixed = value_of<spmd::FixedStrategy>(text);
  read.require(text == "none" || fixed, "fixed",
               "none or one of " + all_names<spmd::FixedStrategy>() +
                   did_you_mean(text, names_of<spmd::FixedStrategy>()));
  return fixed;
}

/// `spmd: {graph, devices, layers, profile, overlap, fixed, noise, seed}`.
void read_search(Reader& read, Search& search) {
  search.devices = read.optional<std::int64_t>("devices", 8);
  const auto layers = read.optional<std::int64_t>("layers", 8);
  search.graph = read_graph(read, {search.devices, layers});
  search.fixed = read_fixed(read);
  const bool own = search.machine.has_value();
  search.published.devices = search.devices;
  search.published.overlap =
      read.optional("overlap", own ? spmd::Overlap::both : spmd::Overlap::forward);
  search.noise.share = read.optional("noise", 0.0);
  search.noise.seed = read.optional<std::uint64_t>("seed", 1);
  read.require(search.noise.share >= 0 && search.noise.share < 1, "noise",
               "a share from 0 to below 1");
  read.require(search.noise.share == 0 || !own, "noise", "0 beside a machine");
  const auto profile = read.maybe<std::string>("profile");
  read.require(own != profile.has_value(), "profile",
               own ? "none beside a machine" : "a profile of `orrery spmd`, or a machine");
  if (profile) {
    search.published.profile = read.absorb(spmd::load_profile(*profile));
  }
}

Result<Search> read_description(const ConfigNode& description) {
  Reader outer(description);
  Search search;
  if (const ConfigNode* machine = outer.child("machine", false)) {
    search.machine = outer.absorb(machine::parse_machine(*machine));
  }
  if (const ConfigNode* node = outer.child("spmd", true)) {
    Reader read(*node);
    read_search(read, search);
    outer.absorb(read.finish(0));
  }
  return outer.finish(std::move(search));
}

/// Returns what `found` and its program on the simulator say, under the true cost.
Outcome figures_of(const Search& search, const spmd::Prices& truth, const spmd::Solution& found,
                   double seconds) {
  const auto cost = spmd::replay(search.graph, found.strategy, truth);
  if (!cost) {
    return refused(kSpmdFigures.size(), cost.error());
  }
  Cell simulated;
  if (const auto* const own = dynamic_cast<const spmd::MachinePrices*>(&truth)) {
    const auto timeline = spmd::program_of(search.graph, found.strategy, *own)
                              .and_then([&](const graph::Workload& program) {
                                return simulate::simulate(program, own->machine());
                              });
    if (!timeline) {
      return refused(kSpmdFigures.size(), timeline.error());
    }
    simulated = to_seconds(timeline->step_time);
  }
  const Bytes memory = spmd::memory_of(search.graph, found.strategy, search.devices);
  return {{to_seconds(cost->total), simulated, to_seconds(cost->compute), memory.value(),
           static_cast<std::int64_t>(found.strategy.stages.size()), found.strategy.communications(),
           found.counts.states, seconds},
          ""};
}

Outcome run_search(const Search& search, const spmd::Prices& truth) {
  const spmd::SearchOptions options{.allowed = search.fixed ? spmd::restriction(*search.fixed)
                                                            : spmd::Restriction()};
  const auto begin = std::chrono::steady_clock::now();
  Result<spmd::Solution> found;
  if (search.noise.share > 0) {
    const spmd::NoisyInputs noisy =
        spmd::with_noise(search.graph, search.published.profile, search.noise);
    spmd::PublishedPrices::Setting believed = search.published;
    believed.profile = noisy.profile;
    found = spmd::search(noisy.graph, spmd::PublishedPrices(std::move(believed)), options);
  } else {
    found = spmd::search(search.graph, truth, options);
  }
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return found ? figures_of(search, truth, *found, seconds)
               : refused(kSpmdFigures.size(), found.error());
}

Outcome run(const Search& search) {
  if (!search.machine) {
    return run_search(search, spmd::PublishedPrices(search.published));
  }
  const auto prices = spmd::MachinePrices::make(*search.machine, search.devices,
                                                search.published.overlap, search.graph.element);
  return prices ? run_search(search, *prices) : refused(kSpmdFigures.size(), prices.error());
}

/// The names of files stand for what is in them.
std::string inputs_of(const Search& search, const ConfigNode& description) {
  std::string text = canonical_text(description);
  if (!search.machine) {
    const spmd::Profile& profile = search.published.profile;
    text += "\nprofile " + std::to_string(profile.device_flops.value());
    for (const spmd::Operation kind : spmd::kConversions) {
      if (layout::moves(kind)) {
        text += " " + std::to_string(profile.bandwidth(kind).value());
      }
    }
  }
  const ConfigNode* const inner = description.find("spmd");
  const ConfigNode* const graph = inner == nullptr ? nullptr : inner->find("graph");
  if (graph != nullptr && !value_of<spmd::ModelName>(graph->text)) {
    text += "\ngraph " + read_file(graph->text).value_or("");
  }
  return text;
}

}  // namespace

Prepared prepare_spmd(const ConfigNode& description) {
  auto read = read_description(description);
  if (!read) {
    return {.inputs = "unread " + canonical_text(description), .mistakes = read.error(), .run = {}};
  }
  const auto on = std::make_shared<Search>(std::move(*read));
  return {.inputs = inputs_of(*on, description), .mistakes = {}, .run = [on](Shared&) {
            return run(*on);
          }};
}

}  // namespace orrery::sweep
