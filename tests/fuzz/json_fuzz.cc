// SPDX-License-Identifier: Apache-2.0
/// Any bytes as JSON: a document or a refusal with its reason; every node knows its line.
#include "tests/fuzz/fuzz.h"

namespace {

void hold_lines(const orrery::ConfigNode& node) {
  orrery::fuzz::hold(node.line >= 1, "a node knows its line");
  for (const auto& [name, field] : node.fields) {
    orrery::fuzz::hold(node.find(name) != nullptr, "a field is found by its name");
    hold_lines(field);
  }
  for (const orrery::ConfigNode& item : node.items) {
    hold_lines(item);
  }
}

}  // namespace

// NOLINTNEXTLINE(readability-identifier-naming): libFuzzer's name
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  return orrery::fuzz::with_node(bytes, size, orrery::ConfigSyntax::json, hold_lines);
}
