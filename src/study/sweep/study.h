// SPDX-License-Identifier: Apache-2.0
/// A study: one description of a run, and what of it is varied.
///
///   kind: simulate              # kind.h; collective
///   model: llama-3-8b           # a name, a file, or the fields themselves; also machine and plan
///   machine: dgx-h100           # as model
///   plan: {global_batch: 64}
///   vary:                       # space.h; dotted names: model, machine.network.1.bandwidth
///     plan.tp: [1, 2, 4, 8]
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/config_node.h"
#include "base/result.h"
#include "study/sweep/space.h"

namespace orrery::sweep {

struct KindEntry;

/// The file of a model, machine or plan that a study names. A model's node has its name as the
/// field kModelName.
using NamedFiles = std::map<std::pair<std::string, std::string>, ConfigNode>;

/// A Description is what a point's kind reads.
struct Description {
  ConfigNode node;
  Error mistakes;  ///< dotted names that lead nowhere; their values are not in `node`
};

struct Study {
  std::string name;  ///< of its file, without folder and extension
  const KindEntry* kind = nullptr;
  ConfigNode base;  ///< the fields of the kind, as the study gives them
  Space space;
  NamedFiles files;  ///< by ("machine", "dgx-h100"): all that base and space name
  bool skip_invalid = true;

  std::vector<std::string> varied() const;  ///< names of the axes
  /// Returns the whole description of one point: base with the point's values, names replaced by
  /// what their files say.
  Description describe(std::size_t point) const;
  /// The first point without what is varied inside models, machines and plans.
  Description describe_unvaried() const;
  /// Returns the first point with another value of one axis.
  Description describe_with(std::size_t axis, const ConfigNode& value) const;
};

inline constexpr std::string_view kModelName = "orrery_name";

/// Parses a study. Mistakes, all at once: unknown fields and kinds, names that no file has, ranges
/// (space.h), varied names that no reader knows, values that do not read as what their field is.
/// A mistake that only a combination of values makes is not the study's but the result of that
/// point (unless it says `skip_invalid: false`: then the first of those are mistakes too).
Result<Study> parse_study(const ConfigNode& node, std::string name);
/// Dotted names and the value that they have in every point.
using FixedFields = std::vector<std::pair<std::string, std::string>>;
/// Loads a study. `fixed`: axes of one value beside those of the file. Mistakes also: one that the
/// file varies.
Result<Study> load_study(const std::string& file, const FixedFields& fixed = {});

}  // namespace orrery::sweep
