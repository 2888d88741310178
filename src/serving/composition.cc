// SPDX-License-Identifier: Apache-2.0
#include "serving/composition.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <random>

#include "base/format.h"
#include "machine/compute/spatial.h"
#include "machine/memory/resident_set.h"
#include "serving/within.h"

namespace orrery::serving {
namespace {

constexpr std::int64_t kMost = 1'000'000;
constexpr std::int64_t kMostAnswerTokens = 10'000;
constexpr std::int64_t kMostPrompts = 2'000'000;

void check(const Composition& c, Error& error) {
  require_within(error, "experts", c.experts, 1, kMost);
  require_within(error, "batch", c.batch, 1, 4096);
  require_within(error, "input", c.input, 1, kMostAnswerTokens);
  require_within(error, "output", c.output, 1, kMostAnswerTokens);
  require_within(error, "batches", c.batches, 1, kMost);
  require_within(error, "seed", c.seed, 0, std::numeric_limits<std::int64_t>::max());
  if (error.empty() && c.batch * c.batches > kMostPrompts) {
    error.add({"", "batches", std::to_string(c.batches),
               fmt::format("at most {} prompts in all", kMostPrompts)});
  }
  if (!(c.reserved >= 0 && c.reserved < 1)) {
    error.add({"", "reserved", fmt::format("{}", c.reserved), "a share from 0 on, below 1"});
  }
}

/// Pace is that of prompts that run together.
class Pace {
 public:
  Pace(step::StepCost& cost, std::int64_t input, std::int64_t output)
      : cost_(cost), input_(input), output_(output) {}

  Time prefill(std::int64_t prompts) {
    return cost_.time({.tokens = prompts * input_,
                       .samples = prompts,
                       .prompts = std::vector<step::Prompt>(static_cast<std::size_t>(prompts),
                                                            {.queries = input_, .context = 0}),
                       .decodes = 0,
                       .visible = std::vector<double>(cost_.windows().size(), 0)});
  }
  Time token(std::int64_t prompts, std::int64_t context) {
    step::StepShape shape{
        .tokens = prompts, .samples = prompts, .prompts = {}, .decodes = prompts, .visible = {}};
    for (const std::int64_t window : cost_.windows()) {
      shape.visible.push_back(
          static_cast<double>(prompts * (window > 0 ? std::min(window, context) : context)));
    }
    return cost_.time(shape);
  }
  /// All tokens but the first.
  Time decode(std::int64_t prompts) {
    const auto [found, is_new] = decodes_.try_emplace(prompts, Time(0));
    for (std::int64_t i = 1; is_new && i < output_; ++i) {
      found->second += token(prompts, input_ + i);
    }
    return found->second;
  }

 private:
  step::StepCost& cost_;
  std::int64_t input_;
  std::int64_t output_;
  std::map<std::int64_t, Time> decodes_;
};

struct Tiers {
  Bytes first{0};
  Bytes second{0};
  Bandwidth switching{0};
};

Tiers tiers_of(const machine::Machine& machine, const Composition& composition,
               std::int64_t devices) {
  const std::vector<compute::MemoryTier>& tiers = machine.device.memory;
  Tiers all{.first = tiers.front().capacity * devices * (1 - composition.reserved),
            .switching = composition.switch_bandwidth};
  if (tiers.size() > 1) {
    all.second = tiers[1].capacity * devices;
    if (all.switching == Bandwidth(0)) {
      all.switching = tiers[1].bandwidth * static_cast<double>(devices);
    }
  }
  return all;
}

/// Batches, one after the other, with sums of their times.
void run_batches(const Composition& composition, Pace& pace, memory::ResidentSet& resident,
                 ComposedRun& run) {
  std::mt19937_64 random(static_cast<std::uint64_t>(composition.seed));
  for (std::int64_t i = 0; i < composition.batches; ++i) {
    std::map<std::int64_t, std::int64_t> chosen;  // prompts by expert
    for (std::int64_t prompt = 0; prompt < composition.batch; ++prompt) {
      ++chosen[static_cast<std::int64_t>(random() %
                                         static_cast<std::uint64_t>(composition.experts))];
    }
    Time hides{0};  // what still runs of the expert before
    std::int64_t before = -1;
    for (const auto& [expert, prompts] : chosen) {
      if (composition.prefetch && before >= 0) {
        resident.pin(before);
      }
      auto use = resident.use(expert, run.expert);
      if (composition.prefetch && before >= 0) {
        resident.unpin(before);
      }
      if (!use) {  // not beside the one that runs: after it
        hides = Time(0);
        use = resident.use(expert, run.expert);
      }
      ++run.used;
      if (use->copied > Bytes(0)) {
        ++run.copies;
        run.copying += run.switching;
        run.hidden += composition.prefetch ? std::min(hides, run.switching) : Time(0);
      }
      const Time prefill = pace.prefill(prompts);
      const Time decode = pace.decode(prompts);
      run.prefill += prefill;
      run.decode += decode;
      hides = prefill + decode;
      before = expert;
    }
  }
}

}  // namespace

Result<ComposedRun> compose(const zoo::Model& model, const machine::Machine& machine,
                            const step::StepOptions& options, const Composition& composition) {
  Error error;
  check(composition, error);
  auto cost = step::StepCost::make(model, machine, options);
  if (!cost) {
    error.add(std::move(cost.error()));
  }
  if (!error.empty()) {
    return fail(std::move(error));
  }
  const std::int64_t devices = options.degrees.tp * options.degrees.pp;
  const Tiers tiers = tiers_of(machine, composition, devices);
  ComposedRun run;
  run.expert = cost->weights_per_device() * devices;
  run.switch_bandwidth = tiers.switching;
  run.resident = (tiers.first - run.expert) / run.expert >= 1
                     ? static_cast<std::int64_t>((tiers.first - run.expert) / run.expert)
                     : 0;
  run.stored = static_cast<std::int64_t>(tiers.second / run.expert);
  if (run.resident == 0) {
    error.add(
        {"", "model", model.name,
         fmt::format("one that fits {} twice, as router and expert", to_string(tiers.first))});
  }
  if (tiers.switching == Bandwidth(0)) {
    error.add({"", "machine", machine.name, "one with a second memory tier, or switch_bandwidth"});
  }
  if (!error.empty()) {
    return fail(std::move(error));
  }
  run.switching = run.expert / tiers.switching;
  run.machines =
      static_cast<double>(composition.experts) / ((tiers.first - run.expert) / run.expert);
  if (compute::fuses(machine.device)) {
    run.sram = machine.device.spatial.sram * devices;
    run.kept = cost->kept_on_chip(composition.input) * devices;
    run.spilled = run.sram > Bytes(0) ? std::max(Bytes(0), run.kept - run.sram) : Bytes(0);
  }
  Pace pace(*cost, composition.input, composition.output);
  memory::ResidentSet resident(tiers.first - run.expert);
  run_batches(composition, pace, resident, run);
  const std::int64_t batches = composition.batches;
  run.hit_rate = 1 - static_cast<double>(run.copies) / static_cast<double>(run.used);
  for (Time ComposedRun::*sum :
       {&ComposedRun::copying, &ComposedRun::hidden, &ComposedRun::prefill, &ComposedRun::decode}) {
    run.*sum = run.*sum / batches;
  }
  run.router = pace.prefill(composition.batch);
  run.decode_step = pace.token(1, composition.input + composition.output / 2);
  run.total = run.router + run.copying - run.hidden + run.prefill + run.decode;
  if (error = beyond_time(run); !error.empty()) {
    return fail(std::move(error));
  }
  return run;
}

}  // namespace orrery::serving
