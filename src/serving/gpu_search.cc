// SPDX-License-Identifier: Apache-2.0
#include "serving/gpu_search.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>
#include <optional>

#include "serving/plan_load.h"
#include "serving/steady.h"

namespace orrery::serving {
namespace {

constexpr double kFormulaShare = 0.9;  // of a bound: the formula may be as far off
constexpr std::int64_t kMostReplicas = 4096;

class GpuSearch {
 public:
  GpuSearch(const zoo::Model& model, const Engine& engine, const PlanSearch& search)
      : model_(model), engine_(engine), search_(search) {
    const auto count = static_cast<double>(search.requests.size());
    for (const requests::Request& request : search.requests) {
      load_.input += static_cast<double>(request.input) / count;
      load_.output += static_cast<double>(request.output) / count;
    }
  }

  GpusFound run() {
    std::vector<Format> formats = search_.formats;
    if (formats.empty()) {
      formats.push_back({"", "", engine_.weights, engine_.activations, engine_.kv, 0});
    }
    for (const machine::Machine& machine : search_.machines) {
      for (const Format& format : formats) {
        lay_out(machine, format);
      }
    }
    std::stable_sort(candidates_.begin(), candidates_.end(),
                     [](const Candidate& a, const Candidate& b) { return a.bound < b.bound; });
    for (std::size_t i = 0; i < candidates_.size(); ++i) {
      size(candidates_[i]);
      if (search_.progress) {
        search_.progress(static_cast<double>(i + 1) / static_cast<double>(candidates_.size()));
      }
    }
    for (auto& [name, choice] : best_) {
      found_.choices.push_back(std::move(choice));
    }
    std::stable_sort(
        found_.choices.begin(), found_.choices.end(),
        [](const GpuChoice& a, const GpuChoice& b) { return a.layout.devices < b.layout.devices; });
    return std::move(found_);
  }

 private:
  struct Candidate {
    std::size_t layout = 0;
    const machine::Machine* machine = nullptr;
    std::int64_t replicas = 1;  ///< at least, by formula
    std::int64_t bound = 1;     ///< devices
  };
  using Kind = std::pair<std::string, std::string>;  ///< machine and format

  void lay_out(const machine::Machine& machine, const Format& format) {
    for (std::int64_t devices = 1; devices <= search_.devices; devices *= 2) {
      Engine engine = format.name.empty() ? engine_ : with_format(engine_, format);
      engine.pp = engine.cp = engine.dp = engine.ep = engine.replicas = 1;
      engine.prefill = engine.ffn = 0;
      engine.router = Router::least_requests;
      engine.tp = devices;
      add(machine, format, engine);
      if (model_.experts > 0 && devices > 1) {
        engine.tp = 1;
        engine.dp = engine.ep = devices;
        add(machine, format, engine);
      }
    }
  }

  void add(const machine::Machine& machine, const Format& format, const Engine& engine) {
    const std::size_t number = found_.layouts.size();
    found_.layouts.push_back({.engine = engine,
                              .machine = machine.name,
                              .format = std::string(format.name),
                              .devices = engine.devices()});
    auto server = Server::make(model_, machine, engine);
    if (!server) {
      found_.losers.push_back({.layout = number, .share = 0, .reason = server.error().to_string()});
      return;
    }
    const double tokens = most_tokens(*server);
    if (tokens == 0) {
      found_.losers.push_back({.layout = number,
                               .share = 0,
                               .reason = "breaks the limit of TPOT with one request, by formula"});
      return;
    }
    const double wanted = kFormulaShare * search_.rate * load_.output;
    const auto replicas =
        std::max<std::int64_t>(1, static_cast<std::int64_t>(std::ceil(wanted / tokens)));
    candidates_.push_back({number, &machine, replicas, replicas * engine.devices()});
  }

  /// Returns the tokens/s of one engine whose steps keep the limit of TPOT, by formula.
  double most_tokens(Server& server) const {
    double most = 0;
    for (std::int64_t seats = 1; seats <= server.engine().max_num_seqs; seats *= 2) {
      const Steady steady = steady_state(server.cost(), server.engine(), server.kv_blocks(),
                                         seats * server.engine().dp, load_);
      if (steady.per_token <= search_.objectives.tpot * (1 / kFormulaShare)) {
        most = std::max(most, steady.tokens_per_s);
      }
    }
    return most;
  }

  static Money price(const machine::Machine& machine, std::int64_t devices) {
    return Money(machine.device.price_per_hour.value() * static_cast<double>(devices));
  }

  /// A run on so many replicas; nothing: the machine has no room.
  std::optional<GpuChoice> run_on(const Candidate& candidate, std::int64_t replicas) {
    if (!search_.goes_on()) {
      reason_ = kEndedEarly;
      return std::nullopt;
    }
    Layout layout = found_.layouts[candidate.layout];
    layout.engine.replicas = replicas;
    layout.devices = layout.engine.devices();
    auto server = Server::make(model_, *candidate.machine, layout.engine);
    if (!server) {
      reason_ = server.error().to_string();
      return std::nullopt;
    }
    ++found_.runs;
    const Run run = server->run(search_.requests, {.go_on = search_.go_on});
    if (!search_.goes_on()) {
      reason_ = kEndedEarly;
      return std::nullopt;
    }
    GpuChoice choice{.layout = std::move(layout),
                     .metrics = metrics(run, *candidate.machine, &search_.objectives),
                     .attained = attainment(run, search_.objectives)};
    choice.per_hour = price(*candidate.machine, choice.layout.devices);
    if (choice.attained < search_.attainment) {
      reason_ = broken(choice.metrics, search_.objectives, choice.attained, search_.attainment);
    }
    return choice;
  }

  void size(const Candidate& candidate) {
    const Layout& layout = found_.layouts[candidate.layout];
    const auto before = best_.find({layout.machine, layout.format});
    const std::int64_t most = before == best_.end()
                                  ? kMostReplicas
                                  : (before->second.layout.devices - 1) / layout.devices;
    std::optional<GpuChoice> good;
    std::int64_t low = candidate.replicas - 1;  // too few, by formula
    std::int64_t high = candidate.replicas;
    reason_ = fmt::format("{} devices by formula are no fewer", candidate.bound);
    double attained = -1;
    while (!good && high <= most) {
      auto choice = run_on(candidate, high);
      if (!choice || (choice->attained < search_.attainment && choice->attained == attained &&
                      high >= 2 * candidate.replicas)) {
        break;  // no room, or more engines change nothing
      }
      if (choice->attained >= search_.attainment) {
        good = std::move(choice);
        break;
      }
      attained = choice->attained;
      low = high;
      high += std::max<std::int64_t>(1, high / 4);
    }
    if (!good) {
      found_.losers.push_back({.layout = candidate.layout, .share = 0, .reason = reason_});
      return;
    }
    low = high == candidate.replicas ? 0 : low;  // the formula may ask for too many
    while (high - low > 1) {
      const std::int64_t middle = (low + high) / 2;
      auto choice = run_on(candidate, middle);
      const bool keeps = choice && choice->attained >= search_.attainment;
      (keeps ? high : low) = middle;
      if (keeps) {
        good = std::move(choice);
      }
    }
    if (!search_.goes_on()) {
      found_.losers.push_back({.layout = candidate.layout,
                               .share = 0,
                               .reason = fmt::format("on fewer than {} devices {}",
                                                     good->layout.devices, kEndedEarly)});
    }
    best_.insert_or_assign({layout.machine, layout.format}, std::move(*good));
  }

  const zoo::Model& model_;
  const Engine& engine_;
  const PlanSearch& search_;
  MeanLoad load_{.input = 0, .shared = 0, .output = 0};
  GpusFound found_;
  std::vector<Candidate> candidates_;
  std::map<Kind, GpuChoice> best_;
  std::string reason_;
};

}  // namespace

GpusFound search_gpus(const zoo::Model& model, const Engine& engine, const PlanSearch& search) {
  const auto begin = std::chrono::steady_clock::now();
  GpusFound found = GpuSearch(model, engine, search).run();
  found.wall_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return found;
}

std::string what_fits(const zoo::Model& model, const machine::Machine& machine,
                      const Engine& engine) {
  const std::int64_t node = machine.network.empty() ? 1 : machine.network.front().size;
  const auto fewest = [&](Engine tried) {
    constexpr std::int64_t kMost = 256;
    for (std::int64_t devices = 1; devices <= kMost; devices *= 2) {
      tried.cp = tried.dp = tried.ep = tried.replicas = 1;
      tried.prefill = tried.ffn = 0;
      tried.tp = std::min(devices, node);
      tried.pp = devices / tried.tp;
      const Engine full = completed(tried, machine, model.max_positions);
      auto cost = step::StepCost::make(model, machine, step_options(full));
      if (cost && kv_blocks(full, *cost, machine)) {
        return devices;
      }
    }
    return std::int64_t{0};
  };
  std::string text;
  const auto say = [&](std::int64_t devices, std::string_view format) {
    if (devices > 0) {
      text += fmt::format("{}{} in {}", text.empty() ? "it fits " : ", ", devices, format);
    }
  };
  std::int64_t least = fewest(engine);
  say(least, name_of(engine.weights));
  for (const Format& format : kFormats) {
    const bool asked = format.name == "fp8" || format.name == "awq";
    if (asked && format.weights != engine.weights && least != 1) {
      const std::int64_t devices = fewest(with_format(engine, format));
      say(devices, format.name);
      least = devices;
    }
  }
  return text.empty() ? text : text + fmt::format(" (devices of {})", machine.name);
}

}  // namespace orrery::serving
