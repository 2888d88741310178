// SPDX-License-Identifier: Apache-2.0
#include "base/result.h"

#include <algorithm>

#include "base/printable.h"

namespace orrery {
namespace {

constexpr std::size_t kMostMistakes = 50;  // more lines tell a reader nothing
constexpr std::size_t kMostBytes = 200;    // of a field's path or of what was found
constexpr std::size_t kMostSentence = 4000;

std::string line_of(const Mistake& mistake) {
  std::string line;
  for (const std::string& part :
       {shortened(mistake.where, kMostSentence), shortened(mistake.field, kMostBytes)}) {
    if (!part.empty()) {
      line += part + ": ";
    }
  }
  const std::string expected = shortened(mistake.expected, kMostSentence);
  if (mistake.found.empty()) {
    return line + expected;
  }
  line += "found '" + shortened(mistake.found, kMostBytes) + "'";
  return expected.empty() ? line : line + ", expected " + expected;
}

}  // namespace

std::string Error::to_string() const {
  std::string text;
  for (std::size_t i = 0; i < std::min(mistakes.size(), kMostMistakes); ++i) {
    text += (i == 0 ? "" : "\n") + printable(line_of(mistakes[i]));
  }
  if (mistakes.size() > kMostMistakes) {
    text += "\n... and " + std::to_string(mistakes.size() - kMostMistakes) + " more mistakes";
  }
  return text;
}

}  // namespace orrery
