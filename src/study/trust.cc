// SPDX-License-Identifier: Apache-2.0
#include "study/trust.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <tuple>
#include <utility>

#include "base/collect.h"
#include "base/file.h"
#include "base/reader.h"
#include "machine/describe.h"
#include "workload/plan/quantize.h"

namespace orrery::study {
namespace {

/// The longest step of a run over its median step stands for the ninety-fifth percentile: medians
/// of 34 runs that keep one H200 or H100 busy, and of 10 that wait for the host (tables
/// h200_pytorch_training and h100_hf_training).
constexpr Range kLongest{1.02, 1.21};

constexpr std::size_t kNearest = 2;  // groups of published rows that a result names

/// The first words of origins that say that somebody measured the number itself.
bool is_fitted(std::string_view word) {
  return word == "measured" || word == "fitted" || word == "derived" || word == "published";
}

std::string format_of(const plan::Plan& plan) {
  if (plan.quantization == plan::Quantization::none) {
    return "";
  }
  const plan::QuantizationRecipe& recipe = plan::recipe_of(plan.quantization);
  return recipe.block_scaled ? "fp8_block" : std::string(name_of(recipe.type));
}

/// Returns "nemo" of "nemo@25.09", and "none" of nothing.
std::string without_release(const std::string& name) {
  return name.empty() ? "none" : name.substr(0, name.find('@'));
}

/// Kinds of bytes begin so, in the order of StepFigure.
constexpr std::array<std::string_view, 3> kBytes{"memory_", "reserved_", "driver_"};

/// Equal settings take unequal times, but the same bytes.
bool is_bytes(std::string_view kind) {
  return std::ranges::any_of(kBytes, [&](std::string_view of) { return kind.starts_with(of); });
}

double square(double value) {
  return value * value;
}

}  // namespace

std::string kernel_origin(const machine::Machine& machine, const std::string& format) {
  const std::string device =
      machine.parts.empty() ? "device" : "parts." + machine.parts.front().name + ".device";
  const std::string of_format = format.empty() ? "" : format + ".";
  for (const std::string& field :
       {"kernels." + of_format + "gemm_peak_share", std::string("kernels.attention_share")}) {
    if (!is_fitted(machine::origin_word(machine, fmt::format("{}.{}", device, field)))) {
      return "inferred";
    }
  }
  return "fitted";
}

Causes causes_of(const zoo::Model& model, const plan::Plan& plan, const machine::Machine& machine,
                 StepFigure figure) {
  const bool memory = figure != StepFigure::time;
  const std::string_view of = memory ? kBytes[static_cast<std::size_t>(figure) - 1] : "";
  const std::string_view job = plan.lora_rank > 0  ? "adapters"
                               : model.experts > 0 ? "experts"
                                                   : "dense";
  return {.kind = std::string(of) + std::string(job),
          .framework = without_release(plan.framework),
          .origin = memory ? std::string(name_of(plan.autograd))
                           : kernel_origin(machine, format_of(plan)),
          .machine = machine.name,
          .lone = !memory && plan::is_pytorch(plan) && plan.devices() == 1};
}

Causes causes_of(Measure measure, const std::string& engine, const machine::Machine& machine) {
  std::string kind(name_of(measure));
  kind = kind.starts_with("ttft")      ? "ttft"
         : kind.starts_with("tpot")    ? "tpot"
         : kind.starts_with("latency") ? "latency"
                                       : "served_rate";
  return {.kind = kind,
          .framework = without_release(engine),
          .origin = kernel_origin(machine, ""),
          .machine = machine.name};
}

OriginCounts count_origins(const machine::Machine& machine) {
  OriginCounts counts;
  for (const auto& [field, value] : machine::fields_of(machine)) {
    const std::string word = machine::origin_word(machine, field);
    std::size_t& count = word == "measured" ? counts.measured
                         : word == "fitted" ? counts.fitted
                         : word == "published" || word == "recalled" || word == "derived"
                             ? counts.stated
                             : counts.inferred;
    ++count;
  }
  return counts;
}

double Sigma::total() const {
  return std::sqrt(square(kind) + square(framework) + square(origin) + square(rest));
}

Range interval80(const Trust& trust, double predicted, bool rate) {
  const double low = rate ? -trust.high : trust.low;
  const double high = rate ? -trust.low : trust.high;
  return {predicted * std::exp(low), predicted * std::exp(high)};
}

double joint_sigma(const Causes& a, const Sigma& sigma_a, const Causes& b, const Sigma& sigma_b) {
  const auto unless = [](bool same, double one, double other) {
    return same ? 0 : square(one) + square(other);
  };
  return std::sqrt(
      unless(false, sigma_a.rest, sigma_b.rest) +
      unless(a.kind == b.kind, sigma_a.kind, sigma_b.kind) +
      unless(a.framework == b.framework, sigma_a.framework, sigma_b.framework) +
      unless(a.machine == b.machine && a.origin == b.origin, sigma_a.origin, sigma_b.origin));
}

Result<ErrorModel> ErrorModel::parse(const ConfigNode& node) {
  Reader read(node);
  Error mistakes;
  ErrorModel model;
  model.floor_ = read.required<double>("floor");
  read.require(model.floor_ >= 0, "floor", "0 or more");
  const auto causes_in = [](Reader& from) {
    return Causes{.kind = from.required<std::string>("kind"),
                  .framework = from.required<std::string>("framework"),
                  .origin = from.required<std::string>("origin"),
                  .machine = from.optional("machine", std::string())};
  };
  const auto finish = [&](Reader& from) { collect(from.finish(true), mistakes); };
  for (const auto& [name, list] :
       {std::pair{"kinds", &model.kinds_}, std::pair{"frameworks", &model.frameworks_},
        std::pair{"origins", &model.origins_}, std::pair{"rests", &model.rests_}}) {
    if (const ConfigNode* named = read.child(name, true)) {
      Reader sigmas(*named);
      for (const ConfigField& field : named->fields) {
        list->push_back({field.name, sigmas.required<double>(field.name)});
        sigmas.require(list->back().sigma >= 0, field.name, "a deviation of 0 or more");
      }
      finish(sigmas);
    }
  }
  for (const ConfigNode* item : read.take_items("cells", true)) {
    Reader cell(*item);
    model.cells_.push_back({.causes = causes_in(cell),
                            .rows = cell.required<std::int64_t>("rows"),
                            .low = cell.required<double>("low"),
                            .high = cell.required<double>("high")});
    cell.require(model.cells_.back().low <= model.cells_.back().high, "high", "low or more");
    finish(cell);
  }
  for (const ConfigNode* item : read.take_items("validated", true)) {
    Reader group(*item);
    model.validated_.push_back({.table = group.required<std::string>("table"),
                                .causes = causes_in(group),
                                .rows = group.required<std::int64_t>("rows"),
                                .median = group.required<double>("median")});
    finish(group);
  }
  ErrorModel result = collect(read.finish(std::move(model)), mistakes);
  return or_mistakes(std::move(result), std::move(mistakes));
}

Result<ErrorModel> ErrorModel::load() {
  return find_config("trust", "errors")
      .and_then([](const std::string& path) { return load_config(path); })
      .and_then([](const ConfigNode& node) { return parse(node); });
}

Result<Trust> trust_in(const Causes& causes) {
  return ErrorModel::load().map([&](const ErrorModel& model) { return model.trust(causes); });
}

/// A name that no row has is as uncertain as the most uncertain that one has.
double ErrorModel::sigma_of(const std::vector<Named>& named, const std::string& name) {
  double most = 0;
  for (const Named& one : named) {
    if (one.name == name) {
      return one.sigma;
    }
    most = std::max(most, one.sigma);
  }
  return most;
}

namespace {

/// 2: the same. 1: both run layers of Megatron-Core, as which a run without a framework is priced.
int likeness_of_frameworks(const std::string& a, const std::string& b) {
  const auto of_megatron = [](const std::string& name) {
    return name == "megatron" || name == "nemo" || name == "none";
  };
  return a == b ? 2 : of_megatron(a) && of_megatron(b) ? 1 : 0;
}

}  // namespace

std::vector<Validated> ErrorModel::nearest(const Causes& causes) const {
  const auto likeness = [&](const Validated& group) {
    const Causes& other = group.causes;
    return std::tuple(other.kind == causes.kind, other.machine == causes.machine,
                      likeness_of_frameworks(other.framework, causes.framework),
                      other.origin == causes.origin, group.rows);
  };
  std::vector<Validated> groups;
  for (const Validated& group : validated_) {
    if (group.causes.kind == causes.kind) {
      groups.push_back(group);
    }
  }
  std::ranges::stable_sort(
      groups, [&](const Validated& a, const Validated& b) { return likeness(a) > likeness(b); });
  groups.resize(std::min(groups.size(), kNearest));
  return groups;
}

Trust ErrorModel::trust(const Causes& causes) const {
  const bool bytes = is_bytes(causes.kind);
  Trust trust{.causes = causes,
              .sigma = {.kind = sigma_of(kinds_, causes.kind),
                        .framework = bytes ? 0 : sigma_of(frameworks_, causes.framework),
                        .origin = bytes ? 0 : sigma_of(origins_, causes.origin),
                        .rest = bytes ? 0 : sigma_of(rests_, causes.kind)},
              .nearest = nearest(causes),
              .p95 = causes.lone ? std::optional(kLongest) : std::nullopt};
  const auto cell = std::ranges::find_if(cells_, [&](const Cell& one) {
    return one.causes.kind == causes.kind && one.causes.framework == causes.framework &&
           one.causes.origin == causes.origin;
  });
  const double half = kEightyPercent * trust.sigma.total();
  trust.rows = cell == cells_.end() ? 0 : cell->rows;
  trust.low = cell == cells_.end() ? -half : cell->low;
  trust.high = cell == cells_.end() ? half : cell->high;
  if (!bytes) {
    trust.low = std::min(trust.low, -floor_);
    trust.high = std::max(trust.high, floor_);
  }
  const std::array causes_by_size{
      std::pair{
          trust.sigma.origin,
          causes.origin == "fitted"
              ? fmt::format("clocks and collectives of {} (`orrery calibrate`)", causes.machine)
              : fmt::format("kernels of {} (`orrery calibrate`)", causes.machine)},
      std::pair{trust.sigma.framework,
                fmt::format("a step of {} on any machine, kernel by kernel", causes.framework)},
      std::pair{std::max(trust.sigma.kind, trust.sigma.rest),
                fmt::format("one such run ({}; `orrery validate` takes your rows)", causes.kind)}};
  trust.next = std::ranges::max_element(causes_by_size, {}, [](const auto& one) {
                 return one.first;
               })->second;
  return trust;
}

}  // namespace orrery::study
