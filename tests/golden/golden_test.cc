// SPDX-License-Identifier: Apache-2.0
#include "golden.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "base/file.h"
#include "base/split.h"

namespace orrery::golden {
namespace {

/// Lines of hashes.tsv by case.
std::vector<std::string> stored(const std::string& name) {
  std::vector<std::string> lines;
  const std::string text = read_file(golden_path("hashes.tsv")).value();
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    const std::string line = text.substr(begin, end - begin);
    if (line.starts_with(name + '\t')) {
      lines.push_back(line);
    }
    begin = end + 1;
  }
  return lines;
}

/// Every case of a kind makes the stored hashes, section by section.
void expect_equal(Kind kind) {
  const auto cases = all_cases();
  ASSERT_TRUE(cases) << cases.error().to_string();
  for (const Case& one : *cases) {
    if (one.kind != kind) {
      continue;
    }
    const auto sections = text_of(one);
    ASSERT_TRUE(sections) << one.name << ": " << sections.error().to_string();
    const std::vector<std::string> lines = stored(one.name);
    EXPECT_EQ(lines.size(), sections->size()) << "sections of " << one.name;
    for (std::size_t i = 0; i < std::min(lines.size(), sections->size()); ++i) {
      EXPECT_EQ(hash_line(one, sections->at(i)), lines[i])
          << fmt::format("golden_dump text {} '{}' prints what differs (tests/golden/README.md)",
                         one.name, sections->at(i).name);
    }
  }
}

TEST(Golden, PlansLowerToTheSameTemplates) {
  expect_equal(Kind::plan);
}

TEST(Golden, EnginePassesTakeTheSameTimes) {
  expect_equal(Kind::engine);
}

TEST(Golden, StrategiesOfTheSearchAreTheSame) {
  expect_equal(Kind::spmd);
}

TEST(Golden, EveryStoredHashHasItsCase) {
  const auto cases = all_cases();
  ASSERT_TRUE(cases);
  const std::string text = read_file(golden_path("hashes.tsv")).value();
  std::size_t lines = 0;
  for (const Case& one : *cases) {
    lines += stored(one.name).size();
  }
  EXPECT_EQ(lines, static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n')));
}

}  // namespace
}  // namespace orrery::golden
