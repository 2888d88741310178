// SPDX-License-Identifier: Apache-2.0
/// Prints what tests/golden compares (README.md of this folder).
///
///   golden_dump hashes              every line of hashes.tsv
///   golden_dump text CASE [SECTION] the text of a case, or of one of its sections
///   golden_dump list                names of the cases
#include <fmt/format.h>

#include "golden.h"

namespace {

using namespace orrery;  // NOLINT(google-build-using-namespace): a program's own file

void print_text(const golden::Section& section) {
  for (std::size_t i = 0; i < section.columns.size(); ++i) {
    fmt::print("== {} column {}\n{}", section.name, i + 1, section.columns[i]);
  }
}

int run(const std::vector<std::string>& words) {
  const std::string verb = words.empty() ? "" : words[0];
  if (verb != "hashes" && verb != "list" && (verb != "text" || words.size() < 2)) {
    fmt::print(stderr, "golden_dump hashes | list | text CASE [SECTION]\n");
    return 2;
  }
  const auto cases = golden::all_cases();
  if (!cases) {
    fmt::print(stderr, "{}\n", cases.error().to_string());
    return 1;
  }
  bool found = verb != "text";
  bool failed = false;
  for (const golden::Case& one : *cases) {
    if (verb == "list") {
      fmt::print("{}\n", one.name);
      continue;
    }
    if (verb == "text" && one.name != words[1]) {
      continue;
    }
    const auto sections = golden::text_of(one);
    if (!sections) {
      fmt::print(stderr, "{}: {}\n", one.name, sections.error().to_string());
      failed = true;
      continue;
    }
    for (const golden::Section& section : *sections) {
      if (verb == "hashes") {
        fmt::print("{}\n", golden::hash_line(one, section));
      } else if (words.size() < 3 || section.name == words[2]) {
        print_text(section);
        found = true;
      }
    }
  }
  return found && !failed ? 0 : 1;
}

}  // namespace

int main(int count, char** words) {
  return run({words + 1, words + count});
}
