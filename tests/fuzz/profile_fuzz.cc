// SPDX-License-Identifier: Apache-2.0
/// Any YAML as a validation profile, whose settings then describe a run or say why not.
#include "study/profile.h"
#include "tests/fuzz/fuzz.h"

ORRERY_FUZZ(profile) {
  return orrery::fuzz::with_node(
      bytes, size, orrery::ConfigSyntax::yaml, [](const orrery::ConfigNode& node) {
        const auto profile = orrery::study::parse_profile(node);
        if (!profile) {
          orrery::fuzz::hold_error(profile.error());
          return;
        }
        const auto run = orrery::study::make_case(profile->plan);
        if (!run) {
          orrery::fuzz::hold_error(run.error());
          return;
        }
        if (const auto model = run->model(); model) {
          orrery::fuzz::hold(!run->names.model.empty() || model->layers == run->shape.layers,
                             "a model that is not named has the shape");
        } else {
          orrery::fuzz::hold_error(model.error());
        }
      });
}
