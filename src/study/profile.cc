// SPDX-License-Identifier: Apache-2.0
#include "study/profile.h"

#include <fnmatch.h>

#include <algorithm>
#include <filesystem>

#include "base/file.h"
#include "base/lists.h"
#include "base/reader.h"

namespace orrery::study {
namespace {

bool is_map(const ConfigNode* node) {
  return node != nullptr && node->kind == ConfigNode::Kind::map;
}

/// Returns the scalar fields of a map, whose names must be fields of shape or plan, or of serving.
std::vector<Setting> read_settings(const ConfigNode* node, TableKind kind, Error& error) {
  std::vector<Setting> settings;
  if (node == nullptr) {
    return settings;
  }
  if (!is_map(node)) {
    error.add({node->where(), node->path, node->shown(), "a map of fields"});
    return settings;
  }
  const bool training = kind == TableKind::training;
  const std::vector<std::string> known = training ? setting_fields() : serving_fields();
  for (const ConfigField& field : node->fields) {
    if (std::find(known.begin(), known.end(), field.name) == known.end()) {
      error.add({field.value.where(), field.value.path, field.name,
                 (training ? "a field of the model's shape or the plan" : "a field of serving") +
                     did_you_mean(field.name, known)});
    } else if (field.value.kind != ConfigNode::Kind::scalar) {
      error.add({field.value.where(), field.value.path, field.value.shown(), "a single value"});
    } else {
      settings.push_back({field.name, field.value.text, field.value.where()});
    }
  }
  return settings;
}

/// The scalar fields of a map with free names.
template <class T>
std::vector<T> read_texts(const ConfigNode* node, Error& error) {
  std::vector<T> texts;
  if (node == nullptr) {
    return texts;
  }
  if (!is_map(node)) {
    error.add({node->where(), node->path, node->shown(), "a map"});
    return texts;
  }
  for (const ConfigField& field : node->fields) {
    if (field.value.kind == ConfigNode::Kind::scalar) {
      texts.push_back({field.name, field.value.text});
    } else {
      error.add({field.value.where(), field.value.path, field.value.shown(), "a text"});
    }
  }
  return texts;
}

std::vector<CaseColumn> read_cases(const ConfigNode* node, TableKind kind, Error& error) {
  std::vector<CaseColumn> cases;
  if (node == nullptr) {
    return cases;
  }
  if (!is_map(node)) {
    error.add({node->where(), node->path, node->shown(), "a map of columns"});
    return cases;
  }
  for (const ConfigField& column : node->fields) {
    CaseColumn entry{.column = column.name, .values = {}};
    if (!is_map(&column.value)) {
      error.add({column.value.where(), column.value.path, column.value.shown(),
                 "a map from the column's texts to fields"});
      continue;
    }
    for (const ConfigField& text : column.value.fields) {
      entry.values.push_back({text.name, read_settings(&text.value, kind, error)});
    }
    cases.push_back(std::move(entry));
  }
  return cases;
}

MeasuredColumn read_measured(const ConfigNode& node, TableKind kind, Error& error) {
  Reader read(node);
  const std::string by = read.optional<std::string>("by", "");
  MeasuredColumn measured{.column = read.required<std::string>("column"),
                          .measure = by.empty() ? read.required<Measure>("measure")
                                                : read.optional("measure", Measure::step_s),
                          .label = read.optional<std::string>("label", ""),
                          .settings = read_settings(read.child("plan", false), kind, error),
                          .by = by,
                          .apart = read.optional("apart", false),
                          .metric = read.optional<std::string>("metric", ""),
                          .goal = read.maybe<double>("goal"),
                          .median_goal = read.maybe<double>("median_goal")};
  for (const auto& [name, goal] :
       {std::pair{"goal", measured.goal}, {"median_goal", measured.median_goal}}) {
    read.require(!goal || (*goal > 0 && *goal <= 1 && !measured.metric.empty()), name,
                 "a share above 0, at most 1, of a metric");
  }
  for (const ColumnText& text : read_texts<ColumnText>(read.child("measures", false), error)) {
    if (const auto measure = value_of<Measure>(text.text)) {
      measured.measures.emplace_back(text.column, *measure);
    } else {
      error.add(
          {node.where(), "measures." + text.column, text.text, "one of " + all_names<Measure>()});
    }
  }
  Result<MeasuredColumn> result = read.finish(std::move(measured));
  if (!result) {
    error.add(std::move(result.error()));
    return {};
  }
  return *result;
}

std::string beside(const std::string& file, const std::string& name) {
  return (std::filesystem::path(file).parent_path() / name).string();
}

std::optional<Outcome> read_outcome(const ConfigNode* node, Error& error) {
  if (node == nullptr) {
    return std::nullopt;
  }
  Reader read(*node);
  Outcome outcome{.column = read.optional<std::string>("column", ""),
                  .ok = read.optional<std::string>("ok", "ok")};
  Result<Outcome> result = read.finish(std::move(outcome));
  if (!result) {
    error.add(std::move(result.error()));
    return std::nullopt;
  }
  return *result;
}

std::optional<Join> read_join(const ConfigNode* node, Error& error) {
  if (node == nullptr) {
    return std::nullopt;
  }
  Reader read(*node);
  Join join{
      .file = beside(node->file(), read.required<std::string>("file")), .on = {}, .scale = {}};
  for (const ConfigNode* list : read.take_items("on", true)) {
    std::vector<std::string>& columns = join.on.emplace_back();
    for (const ConfigNode& column : list->items) {
      columns.push_back(column.text);
    }
  }
  for (ColumnText& text : read_texts<ColumnText>(read.child("scale", false), error)) {
    join.scale.emplace_back(std::move(text.column), std::move(text.text));
  }
  Result<Join> result = read.finish(std::move(join));
  if (!result) {
    error.add(std::move(result.error()));
    return std::nullopt;
  }
  return *result;
}

std::vector<Unanswerable> read_unanswerable(const ConfigNode* node, Error& error) {
  std::vector<Unanswerable> rows;
  if (node == nullptr) {
    return rows;
  }
  if (!is_map(node)) {
    error.add({node->where(), node->path, node->shown(), "a map of columns"});
    return rows;
  }
  for (const ConfigField& column : node->fields) {
    for (ColumnText& text : read_texts<ColumnText>(&column.value, error)) {
      rows.push_back({column.name, std::move(text.column), std::move(text.text)});
    }
  }
  return rows;
}

/// Returns the part that `make` reads from the node; nothing without one.
template <class T, class Make>
std::optional<T> read_part(const ConfigNode* node, Error& error, Make make) {
  if (node == nullptr) {
    return std::nullopt;
  }
  Reader read(*node);
  Result<T> result = read.finish(make(read));
  if (!result) {
    error.add(std::move(result.error()));
    return std::nullopt;
  }
  return std::move(*result);
}

std::optional<Ranking> read_ranking(const ConfigNode* node, Error& error) {
  return read_part<Ranking>(node, error, [&](Reader& read) {
    Ranking ranking{.metric = read.required<std::string>("metric"),
                    .same = read.list<std::string>("same", true),
                    .by = {}};
    const ConfigNode* by = read.child("by", true);
    for (const ConfigField& respect : by == nullptr ? std::vector<ConfigField>() : by->fields) {
      Respect& entry = ranking.by.emplace_back();
      entry.name = respect.name;
      for (const ConfigNode& column : respect.value.items) {
        entry.columns.push_back(column.text);
      }
      if (entry.columns.empty()) {
        error.add({respect.value.where(), respect.value.path, respect.value.shown(),
                   "a list of columns"});
      }
    }
    return ranking;
  });
}

std::optional<Agreement> read_agreement(const ConfigNode* node, Error& error) {
  return read_part<Agreement>(node, error, [](Reader& read) {
    Agreement agreement{.column = read.required<std::string>("column"),
                        .product = read.list<std::string>("product", true),
                        .scale = read.optional<double>("scale", 1),
                        .within = read.required<double>("within")};
    read.require(agreement.within >= 1, "within", "a factor of at least 1");
    return agreement;
  });
}

std::optional<Regret> read_regret(const ConfigNode* node, Error& error) {
  return read_part<Regret>(node, error, [](Reader& read) {
    Regret regret{.metric = read.required<std::string>("metric"),
                  .spare = read.optional("spare", 0.0),
                  .ttft = read.required<std::string>("ttft"),
                  .limits = read.list<double>("limits", true),
                  .within = read.list<std::string>("within", true),
                  .seats = read.required<std::string>("seats"),
                  .tokens = read.required<std::string>("tokens")};
    read.require(regret.spare >= 0 && regret.spare < 1, "spare", "a share from 0 to below 1");
    return regret;
  });
}

void require_reasons(const ValidationProfile& profile, Error& error) {
  for (const Setting& setting : profile.plan) {
    const bool stated = std::any_of(profile.why.begin(), profile.why.end(),
                                    [&](const Reason& why) { return why.field == setting.field; });
    if (!stated) {
      error.add({setting.where, "why." + setting.field, "",
                 "the source of or the reason for '" + setting.field + ": " + setting.value + "'"});
    }
  }
}

}  // namespace

std::optional<Measure> MeasuredColumn::measure_of(std::string_view text) const {
  if (by.empty()) {
    return measure;
  }
  const auto found =
      std::ranges::find_if(measures, [&](const auto& entry) { return entry.first == text; });
  return found == measures.end() ? std::nullopt : std::optional(found->second);
}

std::string MeasuredColumn::known_texts() const {
  const std::vector<std::string> names =
      mapped(measures, [](const auto& entry) { return entry.first; });
  return "one of " + enumerated(names);
}

std::vector<std::string> CaseColumn::columns() const {
  std::vector<std::string> parts;
  std::size_t begin = 0;
  while (begin <= column.size()) {
    const std::size_t end = std::min(column.find('/', begin), column.size());
    parts.push_back(column.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

std::optional<std::vector<Setting>> CaseColumn::settings_of(std::string_view text) const {
  constexpr std::string_view kAny = "*";
  const auto find = [&](std::string_view wanted) {
    return std::find_if(values.begin(), values.end(),
                        [&](const Value& v) { return v.text == wanted; });
  };
  if (const auto exact = find(text); exact != values.end()) {
    return exact->settings;
  }
  for (const Value& value : values) {
    const bool pattern =
        value.text.size() > 1 && value.text.find_first_of("*?[") != std::string::npos;
    if (pattern && fnmatch(value.text.c_str(), std::string(text).c_str(), FNM_NOESCAPE) == 0) {
      return value.settings;
    }
  }
  const auto any = find(kAny);
  if (text.empty() || any == values.end()) {
    return std::nullopt;
  }
  std::vector<Setting> settings = any->settings;
  for (Setting& setting : settings) {
    if (setting.value == kAny) {
      setting.value = text;
      setting.where.clear();  // the row's
    }
  }
  return settings;
}

Result<ValidationProfile> parse_profile(const ConfigNode& node) {
  Reader read(node);
  Error error;
  ValidationProfile profile;
  profile.file = node.file();
  const TableKind kind = profile.kind = read.optional("kind", TableKind::training);
  profile.table = read.required<std::string>("table");
  profile.title = read.required<std::string>("title");
  profile.source = read.required<std::string>("source");
  profile.machine = read.required<std::string>("machine");
  profile.csv = beside(node.file(), read.required<std::string>("csv"));
  profile.key = read.list<std::string>("key", true);
  profile.plan = read_settings(read.child("plan", true), kind, error);
  profile.why = read_texts<Reason>(read.child("why", false), error);
  profile.columns = read_settings(read.child("columns", false), kind, error);
  profile.cases = read_cases(read.child("cases", false), kind, error);
  for (const ConfigNode* item : read.take_items("measured", true)) {
    profile.measured.push_back(read_measured(*item, kind, error));
  }
  profile.flags = read.optional<std::string>("flags", "");
  profile.outcome = read_outcome(read.child("outcome", false), error);
  profile.join = read_join(read.child("join", false), error);
  profile.only = read_texts<ColumnText>(read.child("only", false), error);
  profile.group = read.list<std::string>("group", false);
  profile.fitted = read_texts<ColumnText>(read.child("fitted", false), error);
  profile.goal = read.maybe<double>("goal");
  profile.apart = read_texts<ColumnText>(read.child("apart", false), error);
  profile.unanswerable = read_unanswerable(read.child("unanswerable", false), error);
  profile.agreement = read_agreement(read.child("agreement", false), error);
  profile.ranking = read_ranking(read.child("ranking", false), error);
  profile.regret = read_regret(read.child("regret", false), error);
  profile.is_long = read.optional("long", false);
  profile.notes = read.optional<std::string>("notes", "");
  read.require(!profile.goal || (*profile.goal > 0 && *profile.goal <= 1), "goal",
               "a share above 0, at most 1");
  require_reasons(profile, error);
  Result<ValidationProfile> result = read.finish(std::move(profile));
  if (!result) {
    error.add(std::move(result.error()));
  } else if (result->measured.empty()) {
    error.add({node.where(), "measured", "", "at least one measured column"});
  }
  if (!error.empty()) {
    return fail(std::move(error));
  }
  return result;
}

Result<ValidationProfile> load_profile(const std::string& name_or_path) {
  return find_config("validation", name_or_path)
      .and_then([](const std::string& file) { return load_config(file); })
      .and_then([](const ConfigNode& node) { return parse_profile(node); });
}

}  // namespace orrery::study
