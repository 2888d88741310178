// SPDX-License-Identifier: Apache-2.0
#include "study/sweep/check_study.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <string_view>

#include "base/names.h"
#include "base/reader.h"
#include "study/sweep/config_path.h"
#include "study/sweep/kind.h"
#include "study/sweep/model_field.h"
#include "workload/plan/aliases.h"

namespace orrery::sweep {
namespace {

constexpr std::size_t kMostValues = 100;  // of an axis: more mistakes than a message shows
constexpr std::string_view kPlanPrefix = "plan.";
constexpr std::size_t kMostRefused = 20;  // points, where none may be

/// Returns which of the kind's fields `path` begins with.
std::string root_of(std::string_view path) {
  return std::string(path.substr(0, path.find('.')));
}

/// Returns what reading the description refuses.
Error mistakes_of(const Study& study, const Description& description) {
  Error mistakes = description.mistakes;
  mistakes.add(study.kind->prepare(description.node).mistakes);
  return mistakes;
}

/// Adds what parse_value says to a text that is nothing it knows.
template <class T>
void add_reading(const std::string& text, std::set<std::string>& errors) {
  if (const auto value = parse_value<T>(text); !value) {
    errors.insert(value.error());
  }
}

/// Returns whether a field does not read as what it is, whatever other fields say.
bool is_unreadable(const Mistake& mistake, const std::string& text) {
  std::set<std::string> errors{"a single value", "a value without quotes"};
  add_reading<Time>(text, errors);
  add_reading<Bytes>(text, errors);
  add_reading<Bandwidth>(text, errors);
  add_reading<FlopRate>(text, errors);
  add_reading<Power>(text, errors);
  add_reading<EnergyPerByte>(text, errors);
  add_reading<Money>(text, errors);
  add_reading<std::int64_t>(text, errors);
  add_reading<double>(text, errors);
  add_reading<bool>(text, errors);
  return errors.contains(mistake.expected) || mistake.expected.starts_with("one of ") ||
         mistake.expected.starts_with("unknown field");
}

class ValueChecks {
 public:
  explicit ValueChecks(const Study& study) : study_(study) {}

  Error run() {
    take_lasting();
    take_second_names();
    for (std::size_t axis = 0; axis < study_.space.axes.size(); ++axis) {
      const std::vector<ConfigNode>& values = study_.space.axes[axis].values;
      for (std::size_t i = 0; i < std::min(values.size(), kMostValues); ++i) {
        take_value(axis, values[i]);
      }
    }
    return std::move(mistakes_);
  }

 private:
  /// Takes the mistakes of the study without what is varied inside its descriptions, if the first
  /// point has them too.
  void take_lasting() {
    std::set<std::string> first;
    for (const Mistake& mistake : mistakes_of(study_, study_.describe(0)).mistakes) {
      first.insert(Error(mistake).to_string());
    }
    for (const Mistake& mistake : mistakes_of(study_, study_.describe_unvaried()).mistakes) {
      if (first.contains(Error(mistake).to_string())) {
        take(mistake);
      }
    }
  }

  /// Refuses two axes of one field: the last would win, whatever the first one's column says.
  void take_second_names() {
    const ConfigNode description = study_.describe_unvaried().node;
    std::map<std::string, std::string> names;
    for (const Axis& axis : study_.space.axes) {
      const std::string path =
          axis.name.starts_with(kPlanPrefix)
              ? std::string(kPlanPrefix) +
                    std::string(
                        plan::own_name(std::string_view(axis.name).substr(kPlanPrefix.size())))
              : own_model_field(description, axis.name);
      const auto [first, is_new] = names.emplace(resolved_path(description, path), axis.name);
      if (!is_new) {
        take({axis.values.front().where(),
              axis.name,
              {},
              "the same field as " + first->second + "; vary it under one name"});
      }
    }
  }

  void take_value(std::size_t axis, const ConfigNode& value) {
    const Description description = study_.describe_with(axis, value);
    for (const Mistake& mistake : description.mistakes.mistakes) {
      take(mistake);
    }
    const Error refused = study_.kind->prepare(description.node).mistakes;
    for (const Mistake& mistake : refused.mistakes) {
      if (mistake.where == value.where() && is_unreadable(mistake, value.text)) {
        take(mistake);
      }
    }
  }

  /// Each once.
  void take(const Mistake& mistake) {
    if (seen_.insert(Error(mistake).to_string()).second) {
      mistakes_.add(mistake);
    }
  }

  const Study& study_;
  std::set<std::string> seen_;
  Error mistakes_;
};

/// Returns, of points that may not be invalid, what reading refuses.
Error refused_points(const Study& study) {
  Error mistakes;
  for (std::size_t i = 0; i < study.space.count && mistakes.mistakes.size() < kMostRefused; ++i) {
    mistakes.add(mistakes_of(study, study.describe(i)));
  }
  return mistakes;
}

}  // namespace

void check_names(const ConfigNode& node, const KindEntry& kind, Error& mistakes) {
  const std::vector<std::string> known(kind.fields.begin(), kind.fields.end());
  const auto check = [&](const ConfigNode* map) {
    for (const ConfigField& field : map == nullptr ? ConfigNode().fields : map->fields) {
      const std::string root = root_of(field.name);
      if (std::find(known.begin(), known.end(), root) == known.end()) {
        mistakes.add(
            {field.value.where(), "", field.name,
             "a name that begins with one of " + enumerated(known) + did_you_mean(root, known)});
      }
    }
  };
  check(node.find("vary"));
  const ConfigNode* list = node.find("list");
  for (const ConfigNode& point : list == nullptr ? ConfigNode().items : list->items) {
    check(&point);
  }
}

Error check_values(const Study& study) {
  Error mistakes = ValueChecks(study).run();
  if (mistakes.empty() && !study.skip_invalid) {
    return refused_points(study);
  }
  return mistakes;
}

}  // namespace orrery::sweep
