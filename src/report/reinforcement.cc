// SPDX-License-Identifier: Apache-2.0
#include "report/reinforcement.h"

#include <fmt/format.h>

#include "base/format.h"
#include "planner/full/summary.h"
#include "report/run_table.h"

namespace orrery::report {
namespace {

using reinforcement::Placement;

double answers_per_s(const ReinforcementReport& report, const Placement& one) {
  return one.step > Time(0) ? static_cast<double>(report.sizing.answers) / to_seconds(one.step) : 0;
}

/// Tokens of prompts and answers that a device sees a second.
double tokens_per_device(const ReinforcementReport& report, const Placement& one) {
  return answers_per_s(report, one) * report.sizing.tokens / static_cast<double>(report.devices);
}

void declare_placement(const ReinforcementReport& report, const Placement& one, Fields& fields) {
  fields.choice("where", "engines generate", one.where);
  fields.field("runs", "whether it does", one.runs());
  fields.field("problem", "why it does not", one.problem);
  fields.field("step_time_s", "of a step, overlapped where it is apart", one.step);
  fields.field("in_turn_s", "sum of the parts: no answer is older than the weights", one.in_turn);
  fields.field("answers_per_s", "of all devices", answers_per_s(report, one));
  fields.field("tokens_per_s_per_device", "of prompts and answers", tokens_per_device(report, one));
  fields.field("generating_devices", "that have engines", one.generating);
  fields.field("training_devices", "that train", one.training);
  fields.field("engine_tp", "tensor-parallel ranks of an engine", one.tp);
  fields.field("engine_pp", "pipeline stages of an engine", one.pp);
  fields.field("replicas", "engines", one.replicas);
  fields.field("generate_s", "all answers", one.generate);
  fields.field("score_s", "the reward model's pass", one.score);
  fields.field("forward_s", "log-probabilities of actor and reference", one.forward);
  fields.field("train_s", "all optimizer steps", one.train);
  fields.field("move_s", "weights to the engines", one.move);
  fields.field("swap_s", "states of training to the host and back", one.swap);
  fields.field("states_bytes", "parameters and optimizer of a training device", one.states);
  fields.field("plan", "of training", one.runs() ? plan::to_yaml(one.plan) : std::string());
}

std::string placement_lines(const ReinforcementReport& report, const Placement& one) {
  const std::string who =
      one.where == reinforcement::Where::apart
          ? fmt::format("{} beside {}", one.generating, one.training)
          : std::string(one.where == reinforcement::Where::colocated ? "in turn"
                                                                     : "in turn, states on host");
  if (!one.runs()) {
    return fmt::format("  {:<24} does not run: {}\n", who, one.problem);
  }
  const auto s = [](Time time) { return to_seconds(time); };
  return fmt::format("  {:<24}{:>9.2f}{:>9.2f}{:>9.2f}{:>9.2f}{:>8.3f}{:>8.2f}{:>9.2f}{:>10.2f}\n",
                     who, s(one.generate), s(one.score), s(one.forward), s(one.train), s(one.move),
                     s(one.swap), s(one.step), answers_per_s(report, one));
}

}  // namespace

std::string reinforcement_table(const ReinforcementReport& report) {
  const reinforcement::Sizing& sizing = report.sizing;
  std::string text = fmt::format(
      "{} on {} {}: {} answers a step, {:.0f} tokens with their prompts, trained in sequences of "
      "{}\n\n"
      "  {:<24}{:>9}{:>9}{:>9}{:>9}{:>8}{:>8}{:>9}{:>10}\n",
      report.model, report.devices, report.machine, grouped(sizing.answers), sizing.tokens,
      sizing.sequence, "seconds", "generate", "score", "forward", "train", "move", "swap", "step",
      "answers/s");
  for (const Placement& one : sizing.placements) {
    text += placement_lines(report, one);
  }
  if (!sizing.runs()) {
    return text + "\nNo arrangement runs.\n";
  }
  const Placement& best = sizing.placements.front();
  text += fmt::format("\nBest: {} engines of tp {} pp {} on {} devices; training on {}: {}\n",
                      best.replicas, best.tp, best.pp, best.generating, best.training,
                      full::summary(best.plan));
  if (best.where == reinforcement::Where::apart) {
    text += fmt::format("Answers are one step old; without that a step takes {:.2f} s.\n",
                        to_seconds(best.in_turn));
  }
  return text;
}

void declare(const ReinforcementReport& report, Fields& fields) {
  fields.field("model", "of the actor", report.model);
  fields.field("machine", "its name", report.machine);
  fields.field("devices", "of all", report.devices);
  fields.field("answers", "of a step", report.sizing.answers);
  fields.field("tokens_per_answer", "with its prompt, on the mean", report.sizing.tokens);
  fields.field("sequence", "of training", report.sizing.sequence);
  fields.list("placements", {"arrangements, the fastest first, those that do not run last", "one"},
              report.sizing.placements,
              [&](const Placement& one) { declare_placement(report, one, fields); });
}

}  // namespace orrery::report
