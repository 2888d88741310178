// SPDX-License-Identifier: Apache-2.0
/// orrery spmd: the fastest program that all devices run alike.
#include "report/spmd.h"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>

#include "base/file.h"
#include "base/reader.h"
#include "cli/commands.h"
#include "cli/spmd_graph.h"
#include "cli/spmd_mesh.h"
#include "cli/spmd_plan.h"
#include "cli/spmd_search.h"
#include "machine/device_groups.h"
#include "planner/spmd/machine_prices.h"
#include "planner/spmd/memory.h"
#include "planner/spmd/mixed.h"
#include "planner/spmd/models.h"
#include "planner/spmd/noise.h"
#include "planner/spmd/profile.h"

namespace orrery::cli {
namespace {

constexpr const char* kSpmdExamples =
    "Every operator gets a signature, every tensor at most one conversion, and two half-batches\n"
    "take turns in computing and communicating (HiDup, SoCC'22). The search is exact. --cost "
    "hidup\n"
    "is the published, uncalibrated estimate: compare searchers and strategies with it, not\n"
    "machines; its profiles are in configs/spmd. --cost orrery is ours: kernels and collectives "
    "of\n"
    "a machine file, half-batches at their size, every gradient paid for once, and every program\n"
    "also run on the simulator, where kernels are slower beside collectives.\n"
    "Examples:\n"
    "  orrery spmd --graph Rmoe --devices 8 --layers 8 --profile 64c8m\n"
    "  orrery spmd --graph Rmoe --devices 4096 --layers 96 --profile 64c8m --json\n"
    "  orrery spmd --graph Vmoe --profile 2m_10g --overlap both --fixed expert_parallel\n"
    "  orrery spmd --graph Rmoe --devices 64 --cost orrery --machine dgx-a100-80g\n"
    "  orrery spmd --graph Rmoe --cost orrery --machine dgx-h100 --max-memory 24GiB\n"
    "  orrery spmd --graph Rmoe --cost orrery --machine dgx-h100 --frontier\n"
    "  orrery spmd --graph Rmoe --cost mixed --profile 64c8m --rates '15.7TFLOP/s*4,9.3TFLOP/s*4'\n"
    "  orrery spmd --graph llama-3-8b --batch 16 --sequence 4096 --cost orrery --machine dgx-h100\n"
    "  orrery spmd --graph llama-3-8b --devices 16 --batch 32 --sequence 4096 --cost orrery \\\n"
    "              --machine dgx-a100-80g --save plan.yaml\n"
    "  orrery simulate --model llama-3-8b --machine dgx-a100-80g --plan plan.yaml\n"
    "  orrery spmd --graph mixtral-8x7b --mesh 8x4 --cost orrery --machine dgx-h100 \\\n"
    "              --save plan.yaml\n"
    "  orrery spmd --graph llama-3-8b --mesh 8x4 --batch 64 --sequence 4096 --cost orrery \\\n"
    "              --machine dgx-h100 --overlap both\n"
    "  orrery spmd --graph llama-3-8b --mesh 2x4x4 --batch 64 --sequence 4096 --cost orrery \\\n"
    "              --machine dgx-h100 --states 200\n"
    "  orrery spmd --graph graph.json --profile profile.yaml --save strategy.json\n"
    "  orrery spmd --graph Rmoe --profile nvl8 --strategy strategy.json --json\n";

class Spmd : public Command {
 public:
  void declare(Options& options) override {
    options.value("--graph", graph_, "NAME|FILE",
                  all_names<spmd::ModelName>() +
                      ", a decoder of `orrery list models`, or an annotated graph (JSON)");
    options.alias("--model", "--graph");
    options.value("--devices", devices_, "INT", "equal devices; default 8, or as the file says");
    options.value("--layers", layers_, "INT", "of a named graph; default 8, or the model's");
    options.value("--batch", batch_, "INT",
                  "of a model: sequences of a step; default two a device");
    options.value("--sequence", sequence_, "INT", "of a model: tokens of a sequence");
    options.value("--profile", profile_, "NAME|FILE",
                  "rate and bandwidths: a file, or one of " + enumerated(list_configs("spmd")));
    options.value(
        "--cost", cost_, "NAME",
        "hidup (published; default), orrery (ours; takes --machine for --profile) or mixed "
        "(devices of different rates, uneven slices, nothing hides)");
    options.value("--machine", machine_, "NAME|FILE",
                  "of --cost orrery: a name of `orrery list machines`, or a file");
    options.value("--rates", rates_, "RATE*COUNT,...", "of --cost mixed: devices of each rate");
    options.value(
        "--mesh", mesh_, "INNERx[MIDDLEx]OUTER",
        "of --cost orrery: devices as two or three axes, neighbours first, a form for each");
    options.value("--states", states_, "INT",
                  "of --mesh: states that the search keeps at a cut; default " +
                      std::to_string(spmd::most_states_on(spmd::mesh_of(2, 2))) +
                      ", of three axes " + std::to_string(spmd::most_states_on({2, 2, 2})));
    options.value("--overlap", overlap_, "NAME",
                  all_names<spmd::Overlap>() +
                      "; default forward, with --cost orrery both, with --mesh none");
    options.value("--max-memory", limit_, "SIZE", "of a device, such as 40GiB; with a bound");
    options.flag("--frontier", frontier_, "also the fastest strategies for less and less memory");
    options.value("--fixed", fixed_, "NAME",
                  "the best of a well-known kind only: " + all_names<spmd::FixedStrategy>());
    options.value("--noise", noise_, "SHARE",
                  "of --cost hidup: search with inputs wrong by up to this, then cost the truth");
    options.value("--seed", seed_, "INT", "of the noise; default 1");
    options.value("--strategy", strategy_, "FILE", "the cost of this strategy; no search");
    options.output("--save", save_, "FILE",
                   "write the strategy (JSON), or of a model a plan with it (YAML)");
    options.output("--save-graph", save_graph_, "FILE", "write the annotated graph (JSON)");
    options.flag("--json", json_, "print one JSON object");
    options.footer(kSpmdExamples);
  }

  Result<std::string> run(Error mistakes) override {
    if (mesh_) {
      return run_mesh(std::move(mistakes));
    }
    refuse_given({{"--states", states_}}, "goes with --mesh", mistakes);
    report::SpmdRun run = read(mistakes);
    const std::unique_ptr<spmd::Prices> prices = read_prices(run, mistakes);
    if (!mistakes.empty()) {
      return fail(std::move(mistakes));
    }
    if (run.mixed) {
      if (const auto done = solve_mixed_spmd(run); !done) {
        return fail(done.error());
      }
      return print(run, nullptr);
    }
    const auto solved =
        noise_ ? solve_noisy_spmd(run, *prices, *profile_, noise_value_) : solve_spmd(run, *prices);
    const auto done = solved.and_then(
        [&] { return frontier_ ? add_spmd_frontier(run, *prices) : Result<void>(); });
    if (!done) {
      return fail(done.error());
    }
    return print(run, prices.get());
  }

 private:
  Result<std::string> run_mesh(Error mistakes) {
    refuse_given({{"--devices", devices_},
                  {"--profile", profile_},
                  {"--rates", rates_},
                  {"--noise", noise_},
                  {"--seed", seed_},
                  {"--strategy", strategy_}},
                 "contradicts --mesh", mistakes);
    if (cost_.value_or("hidup") != "orrery") {
      mistakes.add({"--mesh", {}, {}, "goes with --cost orrery"});
    }
    const MeshQuestion question = read_question(mistakes);
    const std::int64_t devices = std::max<std::int64_t>(1, spmd::devices_of(question.mesh));
    spmd::OperatorGraph graph = read_graph({.graph = graph_,
                                            .devices = std::to_string(devices),
                                            .layers = layers_,
                                            .batch = batch_,
                                            .sequence = sequence_,
                                            .mesh = true},
                                           mistakes);
    if (!machine_) {
      mistakes.add({"--machine", {}, {}, "missing; expected a name or a file"});
    }
    const machine::Machine machine =
        machine_ ? load_named("--machine", *machine_, machine::load_alike, mistakes)
                 : machine::Machine{};
    if (!mistakes.empty()) {
      return fail(std::move(mistakes));
    }
    if (save_graph_) {
      keep(write_file(*save_graph_, report::graph_json(graph)));
    }
    return solve_spmd_mesh(std::move(graph), question, machine)
        .and_then([&](const report::MeshRun& run) { return print(run); });
  }

  MeshQuestion read_question(Error& mistakes) {
    MeshQuestion question{.mesh = collect(parse_mesh(mesh_.value_or("")), mistakes),
                          .frontier = frontier_};
    take("--overlap", overlap_, question.overlap, mistakes);
    read_states(question.states, mistakes);
    if (fixed_) {
      take("--fixed", fixed_, question.fixed.emplace(), mistakes);
    }
    read_limit(question.limit, mistakes);
    if (frontier_) {
      refuse_given({{"--max-memory", limit_}}, "contradicts --frontier, which searches by itself",
                   mistakes);
    }
    if (frontier_ && question.overlap != spmd::Overlap::none) {
      mistakes.add({"--frontier", {}, {}, "goes with --overlap none on a mesh: of sums"});
    }
    return question;
  }

  void read_states(std::int64_t& states, Error& mistakes) const {
    constexpr std::int64_t kMost = 10'000'000;  // a gigabyte at a cut
    const std::size_t before = mistakes.mistakes.size();
    take("--states", states_, states, mistakes);
    if (states_ && before == mistakes.mistakes.size() && (states < 1 || states > kMost)) {
      mistakes.add(wrong_value("--states", *states_, fmt::format("1 to {}", kMost)));
    }
  }

  void read_limit(std::optional<Bytes>& limit, Error& mistakes) const {
    if (limit_) {
      const std::size_t before = mistakes.mistakes.size();
      take("--max-memory", limit_, limit.emplace(), mistakes);
      if (before == mistakes.mistakes.size() && *limit == Bytes(0)) {
        mistakes.add(wrong_value("--max-memory", *limit_, "a size above 0"));
      }
    }
  }

  Result<std::string> print(const report::MeshRun& run) const {
    if (save_) {
      keep(is_plan_file(*save_) ? save_mesh_plan(run, *save_)
                                : write_file(*save_, report::mesh_strategy_json(run)));
    }
    return json_ ? report::json_of(run) : report::mesh_table(run);
  }

  Result<std::string> print(const report::SpmdRun& run, const spmd::Prices* prices) const {
    if (save_) {
      keep(is_plan_file(*save_) ? save_spmd_plan(run, prices, *save_)
                                : write_file(*save_, report::strategy_json(run)));
    }
    if (save_graph_) {
      keep(write_file(*save_graph_, report::graph_json(run.graph)));
    }
    return json_ ? report::json_of(run) : report::spmd_table(run);
  }

  report::SpmdRun read(Error& mistakes) {
    report::SpmdRun run;
    run.cost = cost_.value_or("hidup");
    run.overlap = run.cost == "orrery"  ? spmd::Overlap::both
                  : run.cost == "mixed" ? spmd::Overlap::none
                                        : spmd::Overlap::forward;
    if (run.cost == "mixed") {
      refuse_given({{"--max-memory", limit_},
                    {"--overlap", overlap_},
                    {"--strategy", strategy_},
                    {"--frontier", frontier_}},
                   "contradicts --cost mixed", mistakes);
    }
    if (rates_ && run.cost != "mixed") {
      mistakes.add({"--rates", {}, {}, "goes with --cost mixed"});
    }
    read_limit(run.limit, mistakes);
    take("--overlap", overlap_, run.overlap, mistakes);
    if (fixed_) {
      take("--fixed", fixed_, run.fixed.emplace(), mistakes);
    }
    if (strategy_) {
      refuse_given({{"--fixed", fixed_}, {"--max-memory", limit_}},
                   "contradicts --strategy, which is not searched", mistakes);
    }
    if (frontier_) {
      refuse_given({{"--strategy", strategy_}, {"--max-memory", limit_}, {"--noise", noise_}},
                   "contradicts --frontier, which searches by itself", mistakes);
    }
    if (save_ && save_graph_ && strategy_file(*save_) == *save_graph_) {
      mistakes.add(wrong_value("--save-graph", *save_graph_,
                               "another file; --save writes the strategy there"));
    }
    read_noise(run, mistakes);
    run.graph = read_graph({.graph = graph_,
                            .devices = devices_,
                            .layers = layers_,
                            .batch = batch_,
                            .sequence = sequence_},
                           mistakes);
    run.devices = run.graph.devices > 0 ? run.graph.devices : 8;
    take("--devices", devices_, run.devices, mistakes);
    if (run.devices < 1) {
      mistakes.add(wrong_value("--devices", std::to_string(run.devices), "at least 1"));
    }
    if (strategy_) {
      run.strategy = collect(spmd::load_strategy(*strategy_), mistakes);
      run.given = true;
    }
    return run;
  }

  void read_noise(const report::SpmdRun& run, Error& mistakes) {
    take("--noise", noise_, noise_value_.share, mistakes);
    take("--seed", seed_, noise_value_.seed, mistakes);
    if (noise_value_.share < 0 || noise_value_.share >= 1) {
      mistakes.add(wrong_value("--noise", noise_.value_or(""), "a share from 0 to below 1"));
    }
    if (seed_ && !noise_) {
      mistakes.add({"--seed", {}, {}, "goes with --noise, which is drawn"});
    }
    if (noise_ && (run.cost != "hidup" || strategy_ || limit_)) {
      mistakes.add({"--noise", {}, {}, "goes with a search of --cost hidup without a limit"});
    }
  }

  std::unique_ptr<spmd::Prices> read_prices(report::SpmdRun& run, Error& mistakes) const {
    if (run.cost != "hidup" && run.cost != "orrery" && run.cost != "mixed") {
      mistakes.add(wrong_value("--cost", run.cost, "hidup, orrery or mixed"));
      return nullptr;
    }
    const bool own = run.cost == "orrery";
    const std::optional<std::string>& name = own ? machine_ : profile_;
    if (own ? profile_.has_value() : machine_.has_value()) {
      mistakes.add({own ? "--profile" : "--machine", {}, {}, "contradicts --cost " + run.cost});
    }
    if (!name) {
      mistakes.add(
          own ? Mistake{"--machine", {}, {}, "missing; expected a name or a file"}
              : Mistake{"--profile",
                        {},
                        {},
                        "missing; expected a file or one of " + enumerated(list_configs("spmd"))});
      return nullptr;
    }
    if (own) {
      const machine::Machine machine =
          load_named("--machine", *name, machine::load_alike, mistakes);
      run.machine = machine.name;
      auto prices =
          machine.network.empty()
              ? Result<spmd::MachinePrices>(fail(Error()))
              : spmd::MachinePrices::make(machine, run.devices, run.overlap, run.graph.element);
      if (prices) {
        return std::make_unique<spmd::MachinePrices>(std::move(*prices));
      }
      mistakes.add(std::move(prices.error()));
      return nullptr;
    }
    spmd::Profile profile = load_named("--profile", *name, spmd::load_profile, mistakes);
    run.machine = profile.name;
    if (run.cost == "mixed") {
      run.mixed = spmd::MixedDevices{std::move(profile), read_rates(run.devices, mistakes)};
      return nullptr;
    }
    return std::make_unique<spmd::PublishedPrices>(
        spmd::PublishedPrices::Setting{run.devices, std::move(profile), run.overlap});
  }

  /// "15.7TFLOP/s*4,9.3TFLOP/s*4": as many as there are devices.
  std::vector<FlopRate> read_rates(std::int64_t devices, Error& mistakes) const {
    constexpr std::int64_t kMostDevicesOfARate = std::int64_t{1} << 20;
    std::vector<FlopRate> rates;
    std::istringstream items(rates_.value_or(""));
    for (std::string item; std::getline(items, item, ',');) {
      const std::size_t times = std::min(item.find('*'), item.size());
      const auto rate = parse_value<FlopRate>(item.substr(0, times));
      const auto count = parse_value<std::int64_t>(
          times < item.size() ? std::string_view(item).substr(times + 1) : "1");
      if (!rate || !count || *rate <= FlopRate(0) || *count < 1 || *count > kMostDevicesOfARate) {
        mistakes.add(wrong_value("--rates", item,
                                 "a rate and how many devices have it, such as '15.7TFLOP/s*4'"));
        continue;
      }
      rates.insert(rates.end(), static_cast<std::size_t>(*count), *rate);
    }
    if (static_cast<std::int64_t>(rates.size()) != devices) {
      mistakes.add(wrong_value("--rates", rates_.value_or(""),
                               "rates of " + std::to_string(devices) + " devices"));
    }
    return rates;
  }

  std::optional<std::string> graph_;
  std::optional<std::string> devices_;
  std::optional<std::string> layers_;
  std::optional<std::string> batch_;
  std::optional<std::string> sequence_;
  std::optional<std::string> profile_;
  std::optional<std::string> cost_;
  std::optional<std::string> machine_;
  std::optional<std::string> rates_;
  std::optional<std::string> mesh_;
  std::optional<std::string> states_;
  std::optional<std::string> limit_;
  std::optional<std::string> overlap_;
  std::optional<std::string> fixed_;
  std::optional<std::string> noise_;
  std::optional<std::string> seed_;
  spmd::Noise noise_value_;
  std::optional<std::string> strategy_;
  std::optional<std::string> save_;
  std::optional<std::string> save_graph_;
  bool frontier_ = false;
  bool json_ = false;
};

}  // namespace

std::unique_ptr<Command> make_spmd() {
  return std::make_unique<Spmd>();
}

}  // namespace orrery::cli
