// SPDX-License-Identifier: Apache-2.0
#include "study/sweep/space.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <random>

#include "base/lists.h"
#include "study/sweep/config_path.h"
#include "study/sweep/value_range.h"

namespace orrery::sweep {
namespace {

/// An axis of `vary`: its values, or a range of which a sample draws.
struct VariedField {
  Axis axis;
  std::optional<ValueRange> range;  // of `random` only
  ConfigNode node;
};

Error wrong(const ConfigNode& node, std::string expected) {
  return Error(Mistake{node.where(), node.path, node.shown(), std::move(expected)});
}

Result<std::vector<ConfigNode>> scalars(const ConfigNode& list) {
  Error mistakes;
  for (const ConfigNode& item : list.items) {
    if (item.kind != ConfigNode::Kind::scalar) {
      mistakes.add(wrong(item, "a single value"));
    }
  }
  if (list.items.empty()) {
    mistakes.add(wrong(list, "at least one value"));
  }
  if (!mistakes.empty()) {
    return fail(std::move(mistakes));
  }
  return list.items;
}

Result<VariedField> read_field(const ConfigField& field, bool drawn) {
  VariedField varied{.axis = {field.name, {}}, .range = {}, .node = field.value};
  const ConfigNode& node = field.value;
  if (node.kind == ConfigNode::Kind::scalar) {
    varied.axis.values = {node};
    return varied;
  }
  if (node.kind == ConfigNode::Kind::sequence) {
    auto values = scalars(node);
    if (!values) {
      return fail(std::move(values.error()));
    }
    varied.axis.values = std::move(*values);
    return varied;
  }
  if (node.kind != ConfigNode::Kind::map) {
    return fail(wrong(node, "a list of values, or a range {from, to, step}"));
  }
  auto range = parse_range(node, drawn);
  if (!range) {
    return fail(std::move(range.error()));
  }
  if (drawn && range->step == 0 && range->factor == 0) {
    varied.range = std::move(*range);
    return varied;
  }
  for (const std::string& text : range->values()) {
    varied.axis.values.push_back(scalar_node(text, node));
  }
  return varied;
}

std::vector<VariedField> read_vary(Reader& study, bool drawn) {
  std::vector<VariedField> fields;
  const ConfigNode* node = study.child("vary", false);
  if (node == nullptr) {
    return fields;
  }
  if (node->kind != ConfigNode::Kind::map || node->fields.empty()) {
    study.reject("vary", "a map from names such as plan.tp to their values");
    return fields;
  }
  for (const ConfigField& field : node->fields) {
    fields.push_back(study.absorb(read_field(field, drawn)));
  }
  return fields;
}

struct Random {
  std::int64_t samples = 0;
  std::int64_t seed = 0;
};

std::optional<Random> read_random(Reader& study) {
  const ConfigNode* node = study.child("random", false);
  if (node == nullptr) {
    return std::nullopt;
  }
  Reader read(*node);
  Random random{.samples = read.required<std::int64_t>("samples"),
                .seed = read.optional<std::int64_t>("seed", 1)};
  const auto most = static_cast<std::int64_t>(kMostPoints);
  read.require(random.samples >= 1 && random.samples <= most, "samples",
               fmt::format("a whole number from 1 to {}", most));
  study.require(study.child("vary", false) != nullptr, "random",
                "nothing without `vary`, of which it draws");
  return study.absorb(read.finish(random));
}

/// Points as rows of choices, over axes that are added one after the other.
class SpaceBuilder {
 public:
  SpaceBuilder() { space_.count = 1; }

  /// Points of `list`: as many rows, over the names in the order in which they first come.
  void add_list(Reader& study) {
    const std::vector<const ConfigNode*> points = study.take_items("list", false);
    if (study.child("list", false) == nullptr) {
      return;
    }
    study.require(!points.empty(), "list", "at least one point {NAME: VALUE, ...}");
    for (const ConfigNode* point : points) {
      if (point->kind != ConfigNode::Kind::map || point->fields.empty()) {
        study.absorb(Result<int>(fail(wrong(*point, "a point {NAME: VALUE, ...}"))));
        continue;
      }
      for (const ConfigField& field : point->fields) {
        if (field.value.kind != ConfigNode::Kind::scalar) {
          study.absorb(Result<int>(fail(wrong(field.value, "a single value"))));
        }
        axis_named(field.name);
      }
    }
    space_.count = points.size();
    space_.choices.assign(space_.count * space_.axes.size(), -1);
    for (std::size_t i = 0; i < points.size(); ++i) {
      for (const ConfigField& field : points[i]->fields) {
        const std::size_t axis = axis_named(field.name);
        space_.choices[i * space_.axes.size() + axis] = add_value(axis, field.value);
      }
    }
  }

  /// All combinations with what there is, the new axis fastest. False: too many points.
  bool add_grid(Axis axis) {
    const std::size_t values = axis.values.size();
    if (space_.count * values > kMostPoints) {
      return false;
    }
    const std::size_t width = space_.axes.size();
    std::vector<std::int32_t> choices;
    choices.reserve(space_.count * values * (width + 1));
    for (std::size_t point = 0; point < space_.count; ++point) {
      const auto row = space_.choices.begin() + static_cast<std::ptrdiff_t>(point * width);
      for (std::size_t value = 0; value < values; ++value) {
        choices.insert(choices.end(), row, row + static_cast<std::ptrdiff_t>(width));
        choices.push_back(static_cast<std::int32_t>(value));
      }
    }
    take(std::move(axis), std::move(choices), space_.count * values);
    return true;
  }

  /// `samples` of the combinations with what there is.
  bool add_random(const std::vector<VariedField>& fields, const Random& how) {
    const auto samples = static_cast<std::size_t>(how.samples);
    Axis sample{.name = "", .values = std::vector<ConfigNode>(samples)};
    if (!add_grid(std::move(sample))) {
      return false;
    }
    const std::size_t column = space_.axes.size() - 1;  // the sample's number
    std::mt19937_64 random(static_cast<std::uint64_t>(how.seed));
    std::vector<Axis> axes = mapped(fields, &VariedField::axis);
    std::vector<std::vector<std::int32_t>> drawn(samples);
    for (std::vector<std::int32_t>& choice : drawn) {
      for (std::size_t i = 0; i < fields.size(); ++i) {
        choice.push_back(draw(fields[i], axes[i], random));
      }
    }
    std::vector<std::int32_t> choices;
    for (std::size_t point = 0; point < space_.count; ++point) {
      const std::int32_t* const row = &space_.choices[point * space_.axes.size()];
      choices.insert(choices.end(), row, row + column);
      const std::vector<std::int32_t>& choice = drawn[static_cast<std::size_t>(row[column])];
      choices.insert(choices.end(), choice.begin(), choice.end());
    }
    space_.axes.pop_back();
    space_.axes.insert(space_.axes.end(), axes.begin(), axes.end());
    space_.choices = std::move(choices);
    return true;
  }

  Space take_space() { return std::move(space_); }

 private:
  static std::int32_t draw(const VariedField& field, Axis& axis, std::mt19937_64& random) {
    if (field.range) {
      axis.values.push_back(scalar_node(field.range->draw(random), field.node));
      return static_cast<std::int32_t>(axis.values.size() - 1);
    }
    return static_cast<std::int32_t>(unit_draw(random) * static_cast<double>(axis.values.size()));
  }

  void take(Axis axis, std::vector<std::int32_t> choices, std::size_t count) {
    space_.axes.push_back(std::move(axis));
    space_.choices = std::move(choices);
    space_.count = count;
  }

  std::size_t axis_named(const std::string& name) {
    const auto found = std::find_if(space_.axes.begin(), space_.axes.end(),
                                    [&](const Axis& axis) { return axis.name == name; });
    if (found != space_.axes.end()) {
      return static_cast<std::size_t>(found - space_.axes.begin());
    }
    space_.axes.push_back({name, {}});
    return space_.axes.size() - 1;
  }

  std::int32_t add_value(std::size_t axis, const ConfigNode& value) {
    space_.axes[axis].values.push_back(value);
    return static_cast<std::int32_t>(space_.axes[axis].values.size() - 1);
  }

  Space space_;
};

}  // namespace

Space read_space(Reader& study) {
  const std::optional<Random> random = read_random(study);
  const std::vector<VariedField> fields = read_vary(study, random.has_value());
  SpaceBuilder builder;
  builder.add_list(study);
  const ConfigNode* list = study.child("list", false);
  for (const VariedField& field : fields) {
    for (const ConfigNode* point : study.take_items("list", false)) {
      if (const ConfigNode* twice = list == nullptr ? nullptr : point->find(field.axis.name)) {
        study.absorb(Result<int>(fail(wrong(*twice, "a name that `vary` does not have too"))));
      }
    }
  }
  if (!study.ok()) {
    return {};
  }
  bool few = true;
  if (random) {
    few = builder.add_random(fields, *random);
  } else {
    for (const VariedField& field : fields) {
      few = few && builder.add_grid(field.axis);
    }
  }
  study.require(few, list == nullptr ? "vary" : "list",
                fmt::format("at most {} points", kMostPoints));
  return builder.take_space();
}

}  // namespace orrery::sweep
