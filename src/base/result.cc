// SPDX-License-Identifier: Apache-2.0
#include "base/result.h"

namespace orrery {
namespace {

std::string line_of(const Mistake& mistake) {
  std::string line;
  for (const std::string* part : {&mistake.where, &mistake.field}) {
    if (!part->empty()) {
      line += *part + ": ";
    }
  }
  if (mistake.found.empty()) {
    return line + mistake.expected;
  }
  line += "found '" + mistake.found + "'";
  return mistake.expected.empty() ? line : line + ", expected " + mistake.expected;
}

}  // namespace

std::string Error::to_string() const {
  std::string text;
  for (const Mistake& mistake : mistakes) {
    text += (text.empty() ? "" : "\n") + line_of(mistake);
  }
  return text;
}

}  // namespace orrery
