// SPDX-License-Identifier: Apache-2.0
/// Any bytes as JSON: a document or a refusal with its reason; every node knows its line.
#include "tests/fuzz/fuzz.h"

ORRERY_FUZZ(json) {
  return orrery::fuzz::with_node(bytes, size, orrery::ConfigSyntax::json, orrery::fuzz::hold_lines);
}
