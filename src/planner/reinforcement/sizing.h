// SPDX-License-Identifier: Apache-2.0
/// Says how many devices of a reinforcement-learning step generate answers and how many train.
///
///   generate  all answers of a step by engines of the actor, all prompts at once (serving)
///   score     one pass of the reward model over prompts and answers, as its engines compute
///             prompts
///   forward   log-probabilities of the answers by the actor as it is trained and by the frozen
///             reference, passes like those of score
///   train     `updates` optimizer steps over the answers, by the fastest plan (planner/full)
///   move      the actor's weights, from those who train to the engines: an all-gather of all of
///             them where both are on the same devices, else a broadcast
///   swap      colocated, where training's states leave the device meanwhile: there and back over
///             the link of the host's memory
///
///   colocated  step = generate + score + forward + train + move + swap, each on all devices
///   apart      step = max(generate + score, forward + train) + move: answers are one step old;
///              in_turn is the sum, answers of the weights that are trained
///
/// Colocated, training's parameters and optimizer states stay on the device beside the engine, or
/// wait on the host; engines give up their memory while something trains. Answers are packed:
/// a sequence of training has the mean tokens of a prompt and its answer, up to a multiple of 128.
/// Engines: tp within a node, pp over nodes, replicas. Of the splits apart, in whole nodes, all are
/// tried where they are few, else those between which the slower side changes.
///
/// Ignores: a critic; memory of actor and reward model side by side on the engines' devices;
/// answers that are cut off, carried over or filtered; tools and verifiers on the host; the time to
/// capture graphs again; that lengths differ within a batch of training.
/// Source: Sheng et al., HybridFlow, EuroSys 2025 (verl); Noukhovitch et al., ICLR 2025 (one step
/// stale).
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "machine/machine.h"
#include "serving/engine.h"
#include "workload/plan/plan.h"
#include "workload/zoo/model.h"

namespace orrery::reinforcement {

struct Question {
  std::int64_t answers = 512;
  std::string input = "1000";
  std::string output = "lognormal(1000, 0.6)";
  bool reference = true;
  bool log_probs = true;
  std::string reward;
  std::int64_t updates = 1;

  template <class V>
  static void fields(V&& visit) {
    using Q = Question;
    visit("answers", &Q::answers, "of a step: prompts x samples of each; default 512");
    visit("input", &Q::input, "tokens of a prompt, as of `orrery serve`; default 1000");
    visit("output", &Q::output, "tokens of an answer; default 'lognormal(1000, 0.6)'");
    visit("reference", &Q::reference,
          "a frozen copy of the actor scores the answers (KL); default true");
    visit("log_probs", &Q::log_probs,
          "training computes the engines' log-probabilities again; default true");
    visit("reward", &Q::reward, "model that scores the answers; default: rules, without devices");
    visit("updates", &Q::updates, "optimizer steps over the answers of a step; default 1");
  }
};

struct Task {
  Question question;
  zoo::Model actor;
  std::optional<zoo::Model> reward;
  serving::Engine engine;  ///< its degrees do not count
  machine::Machine machine;
  std::int64_t devices = 1;
};

enum class Where : std::uint8_t { colocated, colocated_swapped, apart };
constexpr auto named_values(Where) {
  return std::to_array<Named<Where>>({
      {Where::colocated, "colocated", "in turn on all devices, states of training stay"},
      {Where::colocated_swapped, "colocated_swapped",
       "in turn on all devices, states of training wait on the host meanwhile"},
      {Where::apart, "apart", "engines on devices of their own, answers one step old"},
  });
}

/// One arrangement. Times are of a step; all are 0 where it does not run.
struct Placement {
  Where where = Where::colocated;
  std::int64_t generating = 0;  ///< devices
  std::int64_t training = 0;    ///< devices
  std::int64_t tp = 1;          ///< of an engine
  std::int64_t pp = 1;
  std::int64_t replicas = 1;
  plan::Plan plan{};  ///< of training
  Time generate{0};
  Time score{0};
  Time forward{0};
  Time train{0};
  Time move{0};
  Time swap{0};
  Time step{0};
  Time in_turn{0};
  Bytes states{0};      ///< of a training device: parameters and optimizer
  std::string problem;  ///< why it does not run

  bool runs() const { return problem.empty(); }
  Time rollout() const { return generate + score; }
  Time learning() const { return forward + train; }
};

struct Sizing {
  std::vector<Placement> placements;  ///< fastest first, those that do not run last
  std::int64_t answers = 0;
  double tokens = 0;          ///< of a prompt and its answer, on the mean
  std::int64_t sequence = 0;  ///< of training
  bool runs() const { return !placements.empty() && placements.front().runs(); }
};

/// Sizes the parts. `go_on` false: the placements so far. Mistakes, all at once, by field: numbers
/// out of range, lengths, answers that the updates do not divide.
Result<Sizing> size(const Task& task, const std::function<bool()>& go_on = {});

}  // namespace orrery::reinforcement
