// SPDX-License-Identifier: Apache-2.0
/// Plans of configurations in YAML.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "workload/interop/framework.h"

namespace orrery::interop {

inline Result<Imported> import_yaml(const std::string& name, const std::string& text,
                                    const ImportOptions& options = {},
                                    const std::vector<std::string>& overrides = {}) {
  return parse_config(text, "c.yaml", ConfigSyntax::yaml).and_then([&](ConfigNode node) {
    return import_framework(name, std::move(node), overrides, options);
  });
}

inline plan::Plan plan_of(const std::string& name, const std::string& text,
                          const ImportOptions& options = {}) {
  const auto imported = import_yaml(name, text, options);
  EXPECT_TRUE(imported.has_value()) << (imported ? "" : imported.error().to_string());
  return imported ? imported->plan : plan::Plan();
}

}  // namespace orrery::interop
