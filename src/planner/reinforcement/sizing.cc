// SPDX-License-Identifier: Apache-2.0
#include "planner/reinforcement/sizing.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>
#include <utility>

#include "collective/cost.h"
#include "machine/device_groups.h"
#include "machine/dimensions_only.h"
#include "planner/full/search.h"
#include "serving/requests/generate.h"
#include "serving/serve.h"
#include "workload/memory/footprint.h"

namespace orrery::reinforcement {
namespace {

constexpr std::int64_t kFewSplits = 8;  // are all tried
constexpr std::int64_t kMostAnswers = 1'000'000;
constexpr std::int64_t kPacked = 128;  // sequences of training are multiples of it
constexpr std::size_t kEstimates = 100;
constexpr std::size_t kSimulations = 12;
constexpr Bytes kReserve = 2_GiB;  // as `orrery plan` leaves

/// Engines on some devices and what they take.
struct Rollout {
  std::int64_t tp = 1;
  std::int64_t pp = 1;
  std::int64_t replicas = 1;
  Time generate{0};
  Time score{0};
  Time pass{0};  ///< of the actor over prompts and answers
  std::string problem;
};

/// Training on some devices.
struct Training {
  plan::Plan plan;
  Time update{0};
  Bytes states{0};
  std::string problem;
};

class Sizer {
 public:
  Sizer(const Task& task, requests::Generator load, const std::function<bool()>& go_on)
      : task_(task), go_on_(go_on), answers_(requests::generate(load)), passes_(answers_) {
    double tokens = 0;
    for (requests::Request& request : passes_) {
      request.input += request.output;
      request.output = 1;
      tokens += static_cast<double>(request.input);
    }
    sizing_.answers = task.question.answers;
    sizing_.tokens = tokens / static_cast<double>(passes_.size());
    const auto whole = static_cast<std::int64_t>(std::ceil(sizing_.tokens));
    sizing_.sequence = (whole + kPacked - 1) / kPacked * kPacked;
  }

  Sizing run() {
    colocate(Where::colocated);
    if (task_.machine.device.memory.size() > 1) {
      colocate(Where::colocated_swapped);
    }
    split();
    std::ranges::stable_sort(sizing_.placements, [](const Placement& a, const Placement& b) {
      return a.runs() != b.runs() ? a.runs() : a.step < b.step;
    });
    return std::move(sizing_);
  }

 private:
  bool going_on() const { return !go_on_ || go_on_(); }

  std::int64_t node() const {
    return task_.machine.network.empty()
               ? 1
               : std::max<std::int64_t>(task_.machine.network.front().size, 1);
  }

  void colocate(Where where) {
    Placement placement{
        .where = where, .generating = task_.devices, .training = task_.devices, .problem = {}};
    const Training& training = training_on(task_.devices);
    const Bytes kept = where == Where::colocated ? training.states : Bytes(0);
    if (training.problem.empty()) {
      fill(placement, rollout_on(task_.devices, kept), training);
    } else {
      placement.problem = training.problem;
    }
    if (placement.runs()) {
      if (where == Where::colocated_swapped) {
        const compute::MemoryTier& host = task_.machine.device.memory[1];
        placement.swap = 2 * (host.latency + training.states / host.bandwidth);
      }
      placement.move = weights_by(graph::CollectiveKind::all_gather);
      placement.in_turn =
          placement.rollout() + placement.learning() + placement.move + placement.swap;
      placement.step = placement.in_turn;
    }
    sizing_.placements.push_back(std::move(placement));
  }

  /// Engines on n of the blocks of devices, training on the others.
  const Placement& apart(std::int64_t n, std::int64_t block) {
    const auto known = apart_.find(n);
    if (known != apart_.end()) {
      return sizing_.placements[known->second];
    }
    Placement placement{.where = Where::apart,
                        .generating = n * block,
                        .training = task_.devices - n * block,
                        .problem = {}};
    fill(placement, rollout_on(placement.generating, Bytes(0)), training_on(placement.training));
    if (placement.runs()) {
      placement.move = weights_by(graph::CollectiveKind::broadcast);
      placement.step = std::max(placement.rollout(), placement.learning()) + placement.move;
      placement.in_turn = placement.rollout() + placement.learning() + placement.move;
    }
    apart_.emplace(n, sizing_.placements.size());
    sizing_.placements.push_back(std::move(placement));
    return sizing_.placements.back();
  }

  void split() {
    const std::int64_t block = task_.devices % node() == 0 && task_.devices > node() ? node() : 1;
    const std::int64_t blocks = task_.devices / block;
    if (blocks - 1 <= kFewSplits) {
      for (std::int64_t n = 1; n < blocks && going_on(); ++n) {
        apart(n, block);
      }
      return;
    }
    // The more devices generate, the less that takes and the more training does.
    std::int64_t low = 1;
    std::int64_t high = blocks - 1;
    while (low < high && going_on()) {
      const std::int64_t middle = (low + high) / 2;
      const Placement& tried = apart(middle, block);
      const bool more = tried.runs() ? tried.rollout() > tried.learning()
                                     : !rollout_on(tried.generating, Bytes(0)).problem.empty();
      (more ? low : high) = more ? middle + 1 : middle;
    }
    apart(low, block);
    if (low > 1) {
      apart(low - 1, block);
    }
  }

  void fill(Placement& placement, const Rollout& rollout, const Training& training) {
    placement.problem = rollout.problem.empty() ? training.problem : rollout.problem;
    if (!placement.runs()) {
      return;
    }
    placement.tp = rollout.tp;
    placement.pp = rollout.pp;
    placement.replicas = rollout.replicas;
    placement.plan = training.plan;
    placement.states = training.states;
    placement.generate = rollout.generate;
    placement.score = rollout.score;
    const int passes = (task_.question.reference ? 1 : 0) + (task_.question.log_probs ? 1 : 0);
    if (passes > 0) {
      const Rollout learner = rollout_on(placement.training, Bytes(0), /*generates=*/false);
      placement.problem = learner.problem;
      placement.forward = passes * learner.pass;
    }
    placement.train = task_.question.updates * training.update;
  }

  /// Returns the fastest engines on all of these devices, `kept` bytes of each of which others
  /// have.
  Rollout rollout_on(std::int64_t devices, Bytes kept, bool generates = true) {
    const auto key = std::tuple(devices, kept, generates);
    if (const auto known = rollouts_.find(key); known != rollouts_.end()) {
      return known->second;
    }
    Rollout best{.problem = "no engine fits"};
    for (std::int64_t size = 1; size <= devices; size *= 2) {
      if (devices % size != 0) {
        continue;
      }
      const Rollout tried = engines(devices, size, kept, generates);
      const bool first = !best.problem.empty();
      if (first || (tried.problem.empty() && time_of(tried) < time_of(best))) {
        best = tried;
      } else {
        break;  // wider ones exchange more
      }
    }
    return rollouts_.emplace(key, std::move(best)).first->second;
  }
  static Time time_of(const Rollout& rollout) {
    return rollout.generate + rollout.score + rollout.pass;
  }

  Rollout engines(std::int64_t devices, std::int64_t size, Bytes kept, bool generates) const {
    Rollout rollout{.tp = std::min(size, node()), .problem = {}};
    rollout.pp = size / rollout.tp;
    rollout.replicas = devices / size;
    if (generates) {
      rollout.generate = served(task_.actor, answers_, rollout, kept);
      if (task_.reward) {
        rollout.score = served(*task_.reward, passes_, rollout, kept);
      }
    } else {
      rollout.pass = served(task_.actor, passes_, rollout, kept);
    }
    return rollout;
  }

  /// Returns how long the engines take for all of the requests. Else the problem says why not.
  Time served(const zoo::Model& model, const std::vector<requests::Request>& requests,
              Rollout& rollout, Bytes kept) const {
    serving::Engine engine = task_.engine;
    engine.tp = rollout.tp;
    engine.pp = rollout.pp;
    engine.dp = engine.ep = engine.cp = 1;
    engine.prefill = 0;
    engine.replicas = rollout.replicas;
    engine.router = serving::Router::least_tokens;
    engine.memory_utilization -= kept / task_.machine.device.memory.front().capacity;
    if (engine.memory_utilization <= 0) {
      rollout.problem = "states of training fill the devices";
      return Time(0);
    }
    auto server = serving::Server::make(model, task_.machine, engine);
    if (!server) {
      rollout.problem = "engines: " + server.error().to_string();
      return Time(0);
    }
    const serving::Run run = server->run(requests);
    if (run.refused > 0) {
      rollout.problem = fmt::format("engines: {} answers are longer than they may be", run.refused);
    }
    return run.duration;
  }

  const Training& training_on(std::int64_t devices) {
    const auto known = trainings_.find(devices);
    if (known != trainings_.end()) {
      return known->second;
    }
    Training& training = trainings_[devices];
    full::Task task{
        .model = task_.actor, .machine = task_.machine, .devices = devices, .fixed = {}};
    task.fixed.plan.global_batch = task_.question.answers / task_.question.updates;
    task.fixed.plan.sequence = sizing_.sequence;
    task.fixed.places = {{"global_batch", "--answers"}, {"sequence", "--output"}};
    full::Options options{.most_estimates = kEstimates, .most_simulations = kSimulations};
    options.reserve = kReserve;
    options.go_on = go_on_;
    const auto answer = full::search(task, options);
    if (!answer || answer->top.empty()) {
      training.problem = "training: " + (answer ? answer->stopped ? "stopped" : "no plan fits"
                                                : answer.error().to_string());
      return training;
    }
    training.plan = answer->top.front().plan;
    training.update = answer->top.front().step_time;
    if (const auto stages =
            footprint::memory_footprint(task_.actor, training.plan, &task_.machine)) {
      for (const footprint::StageMemory& stage : *stages) {
        training.states = std::max(training.states, stage[plan::MemoryCategory::parameters] +
                                                        stage[plan::MemoryCategory::optimizer]);
      }
    }
    return training;
  }

  Time weights_by(graph::CollectiveKind kind) const {
    const Bytes weights =
        graph::bytes_of(task_.engine.weights, zoo::count_parameters(task_.actor).total);
    return collective::collective_time(kind, weights,
                                       collective::extents_of(1, task_.devices, task_.machine),
                                       collective::CollectiveAlgorithm::automatic, task_.machine);
  }

  const Task& task_;
  const std::function<bool()>& go_on_;
  std::vector<requests::Request> answers_;
  std::vector<requests::Request> passes_;  ///< prompts and answers as prompts
  Sizing sizing_;
  std::map<std::int64_t, std::size_t> apart_;
  std::map<std::int64_t, Training> trainings_;
  std::map<std::tuple<std::int64_t, Bytes, bool>, Rollout> rollouts_;
};

}  // namespace

Result<Sizing> size(const Task& task, const std::function<bool()>& go_on) {
  Error mistakes;
  const Question& asked = task.question;
  const auto length = [&](const char* field, const std::string& text) {
    const auto value = requests::parse_length(text);
    if (!value) {
      mistakes.add({{}, field, text, value.error()});
    }
    return value.value_or(requests::Length{});
  };
  requests::Generator load{.arrival = requests::Arrival::infinite,
                           .input = length("input", asked.input),
                           .output = length("output", asked.output)};
  load.count = asked.answers;
  if (asked.answers < 1 || asked.answers > kMostAnswers) {
    mistakes.add({{},
                  "answers",
                  std::to_string(asked.answers),
                  fmt::format("a number from 1 to {}", kMostAnswers)});
  } else if (asked.updates < 1 || asked.answers % asked.updates != 0) {
    mistakes.add({{},
                  "updates",
                  std::to_string(asked.updates),
                  fmt::format("a divisor of the {} answers", asked.answers)});
  }
  if (task.devices < 2) {
    mistakes.add({{}, "devices", std::to_string(task.devices), "2 or more"});
  } else if (const auto room = machine::with_devices(task.machine, task.devices); !room) {
    mistakes.add(room.error());
  }
  if (auto alike = machine::check_alike(task.machine, "reinforce"); !alike) {
    mistakes.add(std::move(alike.error()));
  }
  if (auto known = machine::check_dimensions_only(task.machine, "reinforce"); !known) {
    mistakes.add(std::move(known.error()));
  }
  if (!mistakes.empty()) {
    return fail(std::move(mistakes));
  }
  return Sizer(task, load, go_on).run();
}

}  // namespace orrery::reinforcement
