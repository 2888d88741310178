// SPDX-License-Identifier: Apache-2.0
/// Any bytes as YAML: a document or a refusal with its reason; every node knows its line.
#include "tests/fuzz/fuzz.h"

ORRERY_FUZZ(yaml) {
  return orrery::fuzz::with_node(bytes, size, orrery::ConfigSyntax::yaml, orrery::fuzz::hold_lines);
}
