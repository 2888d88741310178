// SPDX-License-Identifier: Apache-2.0
/// Fuzz targets share this: bytes in, a law that must hold for every input.
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

#include "base/config_node.h"
#include "base/result.h"

/// Begins what a target does with `bytes` and `size`: libFuzzer's entry, or, in the program that
/// replays the inputs of all targets (ORRERY_FUZZ_REPLAY), a function of the target's name.
#ifdef ORRERY_FUZZ_REPLAY
#define ORRERY_FUZZ(name) int name##_input(const std::uint8_t* bytes, std::size_t size)
#else
#define ORRERY_FUZZ(name)                                                  \
  /* NOLINTNEXTLINE(readability-identifier-naming) */                      \
  extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t*, std::size_t); \
  int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size)
#endif

namespace orrery::fuzz {

/// Ends the process, so that libFuzzer keeps the input, when a law does not hold.
inline void hold(bool law, std::string_view sentence) {
  if (!law) {
    std::fprintf(stderr, "law broken: %.*s\n", static_cast<int>(sentence.size()), sentence.data());
    std::abort();
  }
}

/// A refusal names at least one mistake, and every mistake says something.
inline void hold_error(const Error& error) {
  hold(!error.empty(), "an error names a mistake");
  for (const Mistake& mistake : error.mistakes) {
    hold(!mistake.expected.empty(), "a mistake says what would be right");
  }
  hold(!error.to_string().empty(), "an error has a text");
}

inline void hold_lines(const ConfigNode& node) {
  hold(node.line >= 1, "a node knows its line");
  for (const auto& [name, field] : node.fields) {
    hold(node.find(name) != nullptr, "a field is found by its name");
    hold_lines(field);
  }
  for (const ConfigNode& item : node.items) {
    hold_lines(item);
  }
}

/// Hands the node of a document that parses to `next`; a document that does not must say why.
template <class Next>
int with_node(const std::uint8_t* bytes, std::size_t size, ConfigSyntax syntax, Next next) {
  const std::string_view text(reinterpret_cast<const char*>(bytes), size);
  const auto node = parse_config(text, "input", syntax);
  if (node) {
    next(*node);
  } else {
    hold_error(node.error());
  }
  return 0;
}

/// The node of text that the program itself wrote; it must parse.
inline ConfigNode own_node(const std::string& text) {
  auto node = parse_config(text, "own output", ConfigSyntax::yaml);
  if (!node) {
    std::fprintf(stderr, "%s\n%s\n", text.c_str(), node.error().to_string().c_str());
  }
  hold(node.has_value(), "what is written can be read");
  return std::move(*node);
}

}  // namespace orrery::fuzz
