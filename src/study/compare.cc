// SPDX-License-Identifier: Apache-2.0
#include "study/compare.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>
#include <utility>

#include "base/lists.h"
#include "base/reader.h"

namespace orrery::study {
namespace {

constexpr std::array<std::string_view, 6> kStepFigures{
    "step_time_s", "tokens_per_s", "model_flops_per_device", "hardware_flops_per_device",
    "mfu",         "hfu"};

bool is_number(const ConfigNode& node) {
  return node.kind == ConfigNode::Kind::scalar && !node.quoted &&
         parse_number(node.text).has_value();
}

/// All numbers of a map, those of maps inside as "outer.inner"; texts, truths and lists are left
/// out, so that what a later version adds does not hurt.
void numbers_of(const ConfigNode& node, const std::string& prefix, std::vector<Figure>& into) {
  for (const ConfigField& field : node.fields) {
    const std::string name = prefix.empty() ? field.name : prefix + "." + field.name;
    if (is_number(field.value)) {
      into.push_back({name, *parse_number(field.value.text)});
    } else if (field.value.kind == ConfigNode::Kind::map) {
      numbers_of(field.value, name, into);
    }
  }
}

FigureGroup step_group(Reader& read) {
  FigureGroup group{.name = "step", .figures = {}};
  for (const std::string_view name : kStepFigures) {
    group.figures.push_back({std::string(name), read.required<double>(name)});
  }
  return group;
}

/// The map `name` as a group. A required one must have numbers.
void add_map(Reader& read, std::string_view name, bool must_exist, RunFigures& run) {
  const ConfigNode* node = read.child(name, must_exist);
  if (node == nullptr) {
    return;
  }
  FigureGroup group{.name = std::string(name), .figures = {}};
  numbers_of(*node, "", group.figures);
  read.require(!group.figures.empty(), name,
               "a map of numbers, as `orrery simulate --json` writes");
  run.groups.push_back(std::move(group));
}

/// The stage with the largest total.
void add_memory(Reader& read, RunFigures& run) {
  const auto total = [](const FigureGroup& group) {
    const auto found = std::find_if(group.figures.begin(), group.figures.end(),
                                    [](const Figure& figure) { return figure.name == "total"; });
    return found == group.figures.end() ? 0 : found->value;
  };
  FigureGroup fullest;
  for (const ConfigNode* stage : read.take_items("memory_bytes", false)) {
    FigureGroup group{.name = "memory_bytes", .figures = {}};
    numbers_of(*stage, "", group.figures);
    if (fullest.name.empty() || total(group) > total(fullest)) {
      fullest = std::move(group);
    }
  }
  if (!fullest.name.empty()) {
    run.groups.push_back(std::move(fullest));
  }
}

void add_plan(Reader& read, RunFigures& run) {
  if (const ConfigNode* plan = read.child("plan", false)) {
    for (const ConfigField& field : plan->fields) {
      run.plan.emplace_back(field.name, field.value.shown());
    }
  }
}

constexpr std::string_view kOrigin = "orrery.";

/// Adds what made the report, as fields beside the plan's: the version, and every input's name with
/// the first digits of its hash.
void add_origin(const ConfigNode& report, RunFigures& run) {
  constexpr std::size_t kShownOfHash = 12;
  const ConfigNode* stamp = report.find("orrery");
  const ConfigNode* version = stamp == nullptr ? nullptr : stamp->find("version");
  const ConfigNode* inputs = stamp == nullptr ? nullptr : stamp->find("inputs");
  if (version == nullptr || inputs == nullptr) {
    return;
  }
  run.plan.emplace_back(std::string(kOrigin) + "version", version->shown());
  for (const ConfigNode& input : inputs->items) {
    const auto text = [&](std::string_view field) {
      const ConfigNode* value = input.find(field);
      return value == nullptr ? std::string() : value->text;
    };
    run.plan.emplace_back(std::string(kOrigin) + "input " + text("flag"),
                          text("name") + " " + text("hash").substr(0, kShownOfHash));
  }
}

/// Takes the fields of add_origin() from all runs where one of them does not say what made it.
void drop_partial_origins(std::vector<RunFigures>& runs) {
  const auto is_origin = [](const auto& field) { return field.first.starts_with(kOrigin); };
  if (std::ranges::all_of(
          runs, [&](const RunFigures& run) { return std::ranges::any_of(run.plan, is_origin); })) {
    return;
  }
  for (RunFigures& run : runs) {
    std::erase_if(run.plan, is_origin);
  }
}

/// The names in the order in which the lists first have them.
template <class List, class NameOf>
std::vector<std::string> union_of(const std::vector<List>& lists, const NameOf& name_of) {
  std::vector<std::string> names;
  for (const List& list : lists) {
    for (const auto& item : list) {
      if (std::find(names.begin(), names.end(), name_of(item)) == names.end()) {
        names.push_back(name_of(item));
      }
    }
  }
  return names;
}

template <class List, class NameOf>
auto find_named(const List& list, const std::string& name, const NameOf& name_of) {
  const auto found = std::find_if(list.begin(), list.end(),
                                  [&](const auto& item) { return name_of(item) == name; });
  return found == list.end() ? nullptr : &*found;
}

constexpr auto kName = [](const auto& item) { return item.name; };
constexpr auto kFirst = [](const auto& item) { return item.first; };

ComparedGroup compare_group(const std::string& name, const std::vector<RunFigures>& runs) {
  std::vector<std::vector<Figure>> lists(runs.size());  // empty where a run lacks the group
  for (std::size_t i = 0; i < runs.size(); ++i) {
    if (const FigureGroup* group = find_named(runs[i].groups, name, kName)) {
      lists[i] = group->figures;
    }
  }
  ComparedGroup compared{.name = name, .figures = {}};
  for (const std::string& figure : union_of(lists, kName)) {
    ComparedFigure& row = compared.figures.emplace_back();
    row.name = figure;
    for (const std::vector<Figure>& list : lists) {
      const Figure* found = find_named(list, figure, kName);
      row.values.push_back(found == nullptr ? std::nullopt : std::optional(found->value));
    }
  }
  return compared;
}

std::vector<PlanDifference> plan_differences(const std::vector<RunFigures>& runs) {
  const std::vector<std::vector<std::pair<std::string, std::string>>> plans =
      mapped(runs, &RunFigures::plan);
  std::vector<PlanDifference> differences;
  for (const std::string& field : union_of(plans, kFirst)) {
    PlanDifference difference{.field = field, .values = {}};
    for (const auto& plan : plans) {
      const auto* found = find_named(plan, field, kFirst);
      difference.values.push_back(found == nullptr ? "-" : found->second);
    }
    const std::string& first = difference.values.front();
    if (!std::all_of(difference.values.begin(), difference.values.end(),
                     [&](const std::string& value) { return value == first; })) {
      differences.push_back(std::move(difference));
    }
  }
  return differences;
}

/// Returns what a report says of hardware that is not sold; "" of others.
std::string hypothetical_of(const ConfigNode& report) {
  const ConfigNode* overlap = report.find("overlap_tensor");
  const ConfigNode* sentence = overlap == nullptr ? nullptr : overlap->find("hypothetical");
  return sentence == nullptr ? "" : sentence->text;
}

/// Takes what a report says of its errors; nothing of a report without it, or without an interval.
void add_trust(Reader& read, RunFigures& run) {
  const ConfigNode* node = read.child("trust", false);
  if (node == nullptr || node->find("sigma") == nullptr) {
    return;
  }
  Reader trust(*node);
  run.causes = Causes{.kind = trust.required<std::string>("kind"),
                      .framework = trust.required<std::string>("framework"),
                      .origin = trust.required<std::string>("coefficients"),
                      .machine = run.machine};
  if (const ConfigNode* sigma = trust.child("sigma", true)) {
    Reader sigmas(*sigma);
    run.sigma = {.kind = sigmas.required<double>("kind"),
                 .framework = sigmas.required<double>("framework"),
                 .origin = sigmas.required<double>("origin"),
                 .rest = sigmas.required<double>("rest")};
    read.absorb(sigmas.finish(true));
  }
  for (const ConfigField& field : node->fields) {
    trust.ignore(field.name);
  }
  read.absorb(trust.finish(true));
}

}  // namespace

bool is_run(const ConfigNode& node) {
  return node.find("step_time_s") != nullptr || node.find("breakdown_s") != nullptr;
}

Result<RunFigures> parse_run(const ConfigNode& node) {
  Reader read(node);
  for (const ConfigField& field : node.fields) {
    read.ignore(field.name);  // a report holds more than is compared
  }
  RunFigures run;
  run.source = node.file();
  run.model = read.required<std::string>("model");
  run.machine = read.required<std::string>("machine");
  run.devices = read.required<std::int64_t>("devices");
  run.network = read.optional("network", std::string("ports"));
  run.groups.push_back(step_group(read));
  add_map(read, "breakdown_s", true, run);
  add_map(read, "hidden_s", false, run);
  add_memory(read, run);
  add_map(read, "energy", false, run);
  add_map(read, "cost", false, run);
  add_plan(read, run);
  add_origin(node, run);
  run.hypothetical = hypothetical_of(node);
  add_trust(read, run);
  return read.finish(std::move(run));
}

std::optional<double> ComparedFigure::difference(std::size_t run) const {
  const std::optional<double> value = values[run];
  const std::optional<double> first = values.front();
  if (!value || !first) {
    return std::nullopt;
  }
  return *value - *first;
}

std::optional<double> ComparedFigure::ratio(std::size_t run) const {
  const std::optional<double> value = values[run];
  const std::optional<double> first = values.front();
  if (!value || !first || *first == 0) {
    return std::nullopt;
  }
  return *value / *first;
}

std::optional<StepRanking> ranking(const Comparison& comparison, std::size_t run) {
  const RunFigures& first = comparison.runs.front();
  const RunFigures& other = comparison.runs[run];
  if (!first.causes || !other.causes) {
    return std::nullopt;
  }
  const auto time = [](const RunFigures& of) { return of.groups.front().figures.front().value; };
  const double half =
      kEightyPercent * joint_sigma(*first.causes, first.sigma, *other.causes, other.sigma);
  StepRanking ranking{.ratio = time(other) / time(first), .interval80 = {}};
  ranking.interval80 = {ranking.ratio * std::exp(-half), ranking.ratio * std::exp(half)};
  ranking.open = ranking.interval80.least <= 1 && 1 <= ranking.interval80.most;
  return ranking;
}

Comparison compare(std::vector<RunFigures> runs) {
  drop_partial_origins(runs);
  const std::vector<std::vector<FigureGroup>> lists = mapped(runs, &RunFigures::groups);
  Comparison comparison;
  for (const std::string& group : union_of(lists, kName)) {
    comparison.groups.push_back(compare_group(group, runs));
  }
  comparison.plan = plan_differences(runs);
  comparison.runs = std::move(runs);
  return comparison;
}

}  // namespace orrery::study
