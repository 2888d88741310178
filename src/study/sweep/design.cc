// SPDX-License-Identifier: Apache-2.0
#include "study/sweep/design.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "base/lists.h"
#include "base/reader.h"
#include "machine/machine.h"
#include "study/parallel.h"
#include "study/sweep/config_path.h"
#include "study/sweep/kind.h"
#include "study/sweep/run_sweep.h"
#include "study/sweep/step.h"

namespace orrery::sweep {
namespace {

constexpr std::string_view kMachine = "machine.";

/// A number of some quantity's base unit.
struct Amount {
  double value = 0;
  char quantity = ' ';
};

std::optional<Amount> amount(const std::string& text) {
  if (const auto number = parse_number(text)) {
    return Amount{*number, '1'};
  }
  if (const auto rate = parse_bandwidth(text)) {
    return Amount{rate->value(), 'b'};
  }
  if (const auto bytes = parse_bytes(text)) {
    return Amount{static_cast<double>(bytes->value()), 'B'};
  }
  if (const auto flops = parse_flop_rate(text)) {
    return Amount{flops->value(), 'f'};
  }
  if (const auto time = parse_time(text)) {
    return Amount{to_seconds(*time), 's'};
  }
  return std::nullopt;
}

/// Returns the axis's value at a point, else what the study says.
std::string text_at(const Study& study, std::size_t point, std::string_view name) {
  for (std::size_t axis = 0; axis < study.space.axes.size(); ++axis) {
    const ConfigNode* value = study.space.value(point, axis);
    if (study.space.axes[axis].name == name && value != nullptr) {
      return value->text;
    }
  }
  const ConfigNode* said = study.base.find(name);
  return said == nullptr ? "" : said->text;
}

/// Returns the machine of a point, where it has several sorts of devices.
std::optional<machine::Machine> mixed_machine(const ConfigNode& description) {
  const ConfigNode* node = description.find("machine");
  if (node == nullptr || node->find("parts") == nullptr) {
    return std::nullopt;
  }
  auto machine = machine::parse_machine(*node);
  return machine ? std::optional(std::move(*machine)) : std::nullopt;
}

/// Returns the devices of a study's point; where it does not say, all of a machine with parts.
std::int64_t devices_at(const Study& study, std::size_t point) {
  const std::int64_t devices = parse_integer(text_at(study, point, "devices")).value_or(0);
  const auto mixed = devices == 0 ? mixed_machine(study.describe(point).node) : std::nullopt;
  return mixed ? devices_in_parts(*mixed) : devices;
}

class Prices {
 public:
  Prices(const Study& study, const DesignOptions& options) : study_(study), options_(options) {}

  /// Returns the price of one of a point's devices, an hour; where they differ their mean. Nothing
  /// where the point's search will say what is wrong with its price or devices.
  Result<std::optional<Money>> of(std::size_t point, std::int64_t devices) const {
    const Description description = study_.describe(point);
    const ConfigNode* stated = find_field(description.node, "machine.device.price_per_hour");
    const std::optional<machine::Machine> mixed = mixed_machine(description.node);
    auto base = parse_money(stated == nullptr ? "" : stated->text);
    if (mixed) {
      const auto cut = machine::with_devices(*mixed, devices);
      if (!cut) {
        return std::optional<Money>();
      }
      base = cut->device.price_per_hour;
    } else if (stated != nullptr && !base) {
      return std::optional<Money>();
    }
    if (!base || (mixed && compute::is_unknown(*base))) {
      if (options_.budget || !options_.prices.empty()) {
        return fail(Error(Mistake{options_.budget ? "--budget" : "--price",
                                  {},
                                  {},
                                  mixed ? "a device of the machine's parts states no "
                                          "price_per_hour; give it in its file"
                                        : "the machine states no device.price_per_hour; give it "
                                          "with --vary device.price_per_hour=DOLLARS"}));
      }
      return std::optional<Money>();
    }
    double price = base->value();
    for (const PricedField& priced : options_.prices) {
      const auto more = difference(description.node, point, priced);
      if (!more) {
        return fail(more.error());
      }
      price += *more * priced.per_unit.value();
    }
    if (price < 0) {
      return fail(Error(Mistake{"--price",
                                {},
                                fmt::format("{:.4g} USD an hour of a device", price),
                                "prices that leave every point 0 or more: price_per_hour is of "
                                "what the machine's file states"}));
    }
    return std::optional(Money(price));
  }

 private:
  /// Returns by how many units the point's value is above its file's.
  Result<double> difference(const ConfigNode& node, std::size_t point,
                            const PricedField& priced) const {
    const auto file =
        study_.files.find(std::pair(std::string("machine"), text_at(study_, point, "machine")));
    const std::string inner = priced.field.substr(std::min(kMachine.size(), priced.field.size()));
    const ConfigNode* before = file == study_.files.end() || !priced.field.starts_with(kMachine)
                                   ? nullptr
                                   : find_field(file->second, inner);
    const ConfigNode* now = find_field(node, priced.field);
    if (before == nullptr || now == nullptr) {
      return fail(
          Error(Mistake{"--price", {}, priced.field, "a field that the machine's file states"}));
    }
    const auto unit = amount(priced.unit.empty() ? "1" : "1 " + priced.unit);
    const auto from = amount(before->text);
    const auto to = amount(now->text);
    if (!unit || !from || !to || unit->quantity != from->quantity) {
      return fail(Error(Mistake{"--price", priced.field, priced.unit,
                                "a unit of what the machine's file states: " + before->text}));
    }
    return (to->value - from->value) / unit->value;
  }

  const Study& study_;
  const DesignOptions& options_;
};

void run_points(const Study& study, const DesignOptions& options,
                std::vector<DesignPoint>& points) {
  Shared shared;
  std::vector<std::size_t> affordable;
  for (std::size_t i = 0; i < points.size(); ++i) {
    if (points[i].affordable) {
      affordable.push_back(i);
    }
  }
  study::run_parallel(
      affordable.size(), options.threads,
      [&](std::size_t i) {
        DesignPoint& point = points[affordable[i]];
        point.outcome = prepare_point(study, affordable[i], "").run(shared);
        if (point.has_plan() && point.price) {
          constexpr double kSeconds = 3600;
          constexpr double kMillion = 1e6;
          const double rate = std::get<double>(point.figure("tokens_per_s"));
          point.cost_per_million_tokens = Money(point.price->value() / kSeconds / rate * kMillion);
        }
      },
      options.progress);
}

/// Returns of each model the fastest point.
std::vector<std::size_t> best_points(const std::vector<DesignPoint>& points) {
  std::map<std::string, std::size_t> best;
  const auto key = [&](std::size_t i) {
    return std::pair(-std::get<double>(points[i].figure("tokens_per_s")),
                     points[i].price.value_or(Money(0)).value());
  };
  for (std::size_t i = 0; i < points.size(); ++i) {
    if (!points[i].has_plan()) {
      continue;
    }
    const auto [known, is_new] = best.emplace(points[i].model, i);
    if (!is_new && key(i) < key(known->second)) {
      known->second = i;
    }
  }
  return mapped(best, [](const auto& entry) { return entry.second; });
}

}  // namespace

const Cell& DesignPoint::figure(std::string_view name) const {
  const auto place = std::find(kPlanFigures.begin(), kPlanFigures.end(), name);
  return outcome.figures[static_cast<std::size_t>(place - kPlanFigures.begin())];
}

Result<Design> design(const Study& study, const DesignOptions& options) {
  Design design{.varied = study.varied(), .points = {}, .best = {}};
  const Prices prices(study, options);
  for (std::size_t i = 0; i < study.space.count; ++i) {
    DesignPoint point{.varied = varied_cells(study, i),
                      .model = text_at(study, i, "model"),
                      .price = {},
                      .outcome = {},
                      .cost_per_million_tokens = {}};
    point.devices = devices_at(study, i);
    const auto price = prices.of(i, point.devices);
    if (!price) {
      return fail(price.error());
    }
    if (*price) {
      point.price = **price * static_cast<double>(point.devices);
      point.affordable = !options.budget || *point.price <= *options.budget;
    }
    design.points.push_back(std::move(point));
  }
  run_points(study, options, design.points);
  design.best = best_points(design.points);
  return design;
}

}  // namespace orrery::sweep
