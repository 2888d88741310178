// SPDX-License-Identifier: Apache-2.0
#include "study/fit_advice.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <set>
#include <utility>

#include "base/format.h"
#include "base/lists.h"
#include "study/run.h"
#include "workload/memory/footprint.h"
#include "workload/plan/machine_check.h"
#include "workload/plan/shard.h"

namespace orrery::study {
namespace {

constexpr std::size_t kMostChanges = 3;     // of one piece of advice
constexpr std::size_t kMostSimulated = 12;  // pieces of advice
constexpr double kLooking = 0.5;            // of the progress, before any is simulated

/// An Option changes one field, or two that go together.
struct Option {
  int field = 0;  ///< options of one field exclude each other
  std::string text;
  std::function<void(plan::Plan&)> apply;
};

class Options {
 public:
  explicit Options(const plan::Plan& plan) : plan_(plan) {}

  std::vector<Option> take() {
    recompute();
    next();
    for (std::int64_t microbatch = plan_.microbatch / 2; microbatch >= 1; microbatch /= 2) {
      set("microbatch", &plan::Plan::microbatch, microbatch);
    }
    next();
    for (std::int64_t zero = plan_.zero + 1; zero <= 3; ++zero) {
      set("zero", &plan::Plan::zero, zero);
    }
    next();
    for (std::int64_t chunks = plan_.chunks - 1; chunks >= 2; --chunks) {
      set("chunks", &plan::Plan::chunks, chunks);
    }
    next();
    if (plan_.offload_optimizer == plan::Offload::none) {
      set("offload_optimizer", &plan::Plan::offload_optimizer, plan::Offload::cpu);
    }
    next();
    for (const double share : {0.25, 0.5, 1.0}) {
      if (share > plan_.offload_activations) {
        set("offload_activations", &plan::Plan::offload_activations, share);
      }
    }
    next();
    for (const auto& [degree, member] :
         {std::pair{"tp", &plan::Plan::tp}, std::pair{"pp", &plan::Plan::pp},
          std::pair{"cp", &plan::Plan::cp}}) {
      for (const std::int64_t factor : {2, 4, 8}) {
        trade(degree, member, factor);
      }
      next();
    }
    return std::move(options_);
  }

 private:
  void next() { ++field_; }
  void add(std::string text, std::function<void(plan::Plan&)> apply) {
    options_.push_back({field_, std::move(text), std::move(apply)});
  }
  template <class T>
  void set(const std::string& field, T plan::Plan::*member, const T& value) {
    std::string text;
    if constexpr (std::is_enum_v<T>) {
      text = name_of(value);
    } else {
      text = fmt::format("{}", value);
    }
    add(fmt::format("{}: {}", field, text), [=](plan::Plan& plan) { plan.*member = value; });
  }

  void recompute() {
    if (plan_.recompute == plan::Recompute::full) {
      return;
    }
    if (plan_.recompute == plan::Recompute::none) {
      set("recompute", &plan::Plan::recompute, plan::Recompute::selective);
    }
    if (plan_.recompute_modules.empty()) {
      for (const char* modules : {"layernorm", "mlp", "layernorm,mlp", "moe_act", "moe",
                                  "layernorm,mla_up_proj,moe_act"}) {
        set<std::string>("recompute_modules", &plan::Plan::recompute_modules, modules);
      }
    }
    add("recompute: full", [](plan::Plan& plan) {
      plan.recompute = plan::Recompute::full;
      plan.recompute_modules.clear();
      plan.recompute_layers = 0;
    });
  }

  /// Adds the advice to have more of one degree for fewer replicas.
  void trade(const std::string& field, std::int64_t plan::Plan::*degree, std::int64_t factor) {
    if (plan_.dp % factor != 0) {
      return;
    }
    const std::int64_t more = plan_.*degree * factor;
    const std::int64_t replicas = plan_.dp / factor;
    add(fmt::format("{}: {}, dp: {}", field, more, replicas), [=](plan::Plan& plan) {
      plan.*degree = more;
      plan.dp = replicas;
    });
  }

  const plan::Plan& plan_;
  std::vector<Option> options_;
  int field_ = 0;
};

/// Sets of options, small ones first.
class Search {
 public:
  Search(const zoo::Model& model, const machine::Machine& machine, const plan::Plan& plan,
         const std::function<void(double)>& progress)
      : model_(model),
        machine_(machine),
        plan_(plan),
        progress_(progress),
        options_(Options(plan).take()) {}

  std::vector<FitChange> run(std::size_t most) {
    for (std::size_t count = 1; count <= kMostChanges && found_.empty(); ++count) {
      if (count > 2) {
        keep_strongest();
      }
      extend({}, count);
    }
    // Those that leave the fullest stage most use what there is.
    std::stable_sort(found_.begin(), found_.end(),
                     [](const Found& a, const Found& b) { return a.memory > b.memory; });
    found_.resize(std::min(found_.size(), kMostSimulated));
    std::vector<Advice> advice;
    for (const Found& found : found_) {
      report(kLooking +
             (1 - kLooking) * share_of(static_cast<std::size_t>(&found - found_.data()), found_));
      if (const auto run = run_step(model_, machine_, found.plan, found.plan.devices(), {})) {
        advice.push_back({fields_of(found.chosen),
                          {texts(found.chosen), run->timeline.step_time, found.memory}});
      }
    }
    std::stable_sort(advice.begin(), advice.end(), [](const Advice& a, const Advice& b) {
      return a.change.step_time < b.change.step_time;
    });
    std::vector<FitChange> fastest;
    std::set<std::vector<int>> fields;
    for (Advice& one : advice) {
      if (fastest.size() < most && fields.insert(one.fields).second) {
        fastest.push_back(std::move(one.change));
      }
    }
    return fastest;
  }

 private:
  struct Found {
    std::vector<std::size_t> chosen;  ///< into options_, ascending
    plan::Plan plan;
    Bytes memory{0};  ///< of the fullest stage
    bool fits = false;
  };

  /// Advice counts, of several that change the same fields, only the fastest.
  struct Advice {
    std::vector<int> fields;
    FitChange change;
  };

  std::vector<int> fields_of(const std::vector<std::size_t>& chosen) const {
    return mapped(chosen, [&](const std::size_t i) { return options_[i].field; });
  }

  void report(double share) const {
    if (progress_) {
      progress_(share);
    }
  }
  template <class T>
  static double share_of(std::size_t done, const std::vector<T>& of) {
    return static_cast<double>(done) / static_cast<double>(of.size());
  }

  void extend(std::vector<std::size_t> chosen, std::size_t count) {
    if (count == 0) {
      look(chosen);
      return;
    }
    for (std::size_t i = chosen.empty() ? 0 : chosen.back() + 1; i < options_.size(); ++i) {
      if (chosen.empty()) {
        report(kLooking * (static_cast<double>(count - 1) + share_of(i, options_)) / kMostChanges);
      }
      const bool other = std::none_of(chosen.begin(), chosen.end(), [&](std::size_t c) {
        return options_[c].field == options_[i].field;
      });
      if (other) {
        chosen.push_back(i);
        extend(chosen, count - 1);
        chosen.pop_back();
      }
    }
  }

  /// Keeps of every field the option that leaves least, so that few sets of three remain.
  void keep_strongest() {
    std::vector<Option> strongest;
    Bytes least = Bytes::max();
    for (std::size_t i = 0; i < options_.size(); ++i) {
      const Bytes memory = tried({i}).memory;
      const bool first = strongest.empty() || strongest.back().field != options_[i].field;
      if (memory < Bytes::max() && (first || memory < least)) {
        strongest.resize(strongest.size() - (first ? 0 : 1));
        strongest.push_back(options_[i]);
        least = memory;
      }
    }
    options_ = std::move(strongest);
  }

  /// Returns the plan with the chosen changes and the memory that it needs: Bytes::max() where it
  /// is no plan for the model or the machine.
  Found tried(const std::vector<std::size_t>& chosen) const {
    Found found{chosen, plan_, Bytes::max()};
    for (const std::size_t i : chosen) {
      options_[i].apply(found.plan);
    }
    const auto stages = footprint::memory_footprint(model_, found.plan, &machine_);
    if (stages && plan::check_machine(found.plan, machine_)) {
      found.memory = Bytes(0);
      for (const footprint::StageMemory& stage : *stages) {
        found.memory = std::max(found.memory, stage.total());
      }
      found.fits = footprint::check_fits(*stages, machine_).has_value();
    }
    return found;
  }

  void look(const std::vector<std::size_t>& chosen) {
    if (Found found = tried(chosen); found.fits) {
      found_.push_back(std::move(found));
    }
  }

  std::vector<std::string> texts(const std::vector<std::size_t>& chosen) const {
    return mapped(chosen, [&](const std::size_t i) { return options_[i].text; });
  }

  const zoo::Model& model_;
  const machine::Machine& machine_;
  const plan::Plan& plan_;
  const std::function<void(double)>& progress_;
  std::vector<Option> options_;
  std::vector<Found> found_;
};

}  // namespace

std::vector<FitChange> fit_advice(const zoo::Model& model, const machine::Machine& machine,
                                  const plan::Plan& plan, std::size_t most,
                                  const std::function<void(double)>& progress) {
  return Search(model, machine, plan, progress).run(most);
}

std::int64_t fitting_sequence(const zoo::Model& model, const machine::Machine& machine,
                              const plan::Plan& plan) {
  constexpr std::int64_t kShortest = 128;
  plan::Plan shorter = plan;
  for (std::int64_t tokens = plan::sequence_of(model, plan) / 2; tokens >= kShortest; tokens /= 2) {
    shorter.sequence = tokens;
    const auto stages = footprint::memory_footprint(model, shorter, &machine);
    if (stages && footprint::check_fits(*stages, machine)) {
      return tokens;
    }
  }
  return 0;
}

std::string to_string(const FitChange& change) {
  return fmt::format("{} ({} a step, {} of the fullest device)", fmt::join(change.fields, ", "),
                     orrery::to_string(change.step_time), orrery::to_string(change.memory));
}

}  // namespace orrery::study
