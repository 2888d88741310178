// SPDX-License-Identifier: Apache-2.0
/// These checks find what of a study is wrong at every point, before any runs.
#pragma once

#include "base/result.h"
#include "study/sweep/study.h"

namespace orrery::sweep {

/// Checks the names in `vary` and `list` of the study `node` that do not begin with a field of its
/// kind.
void check_names(const ConfigNode& node, const KindEntry& kind, Error& mistakes);

/// Reads the study with each of its values in turn. Mistakes: fields that no reader knows, values
/// that do not read as what their field is, files that are wrong whatever is varied; unless the
/// study skips invalid points also what reading refuses of the first of those.
Error check_values(const Study& study);

}  // namespace orrery::sweep
