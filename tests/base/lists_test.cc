// SPDX-License-Identifier: Apache-2.0
#include "base/lists.h"

#include <gtest/gtest.h>

#include <map>

#include "base/letters.h"
#include "base/one_of.h"
#include "base/words.h"

namespace orrery {
namespace {

struct Fruit {
  std::string_view name;
  int seeds;
};

TEST(Lists, MappedKeepsTheOrderAndTakesAMemberOrAFunction) {
  const std::vector<Fruit> fruits{{"pear", 10}, {"plum", 1}};
  EXPECT_EQ(mapped(fruits, &Fruit::seeds), (std::vector<int>{10, 1}));
  EXPECT_EQ(mapped<std::string>(fruits, &Fruit::name), (std::vector<std::string>{"pear", "plum"}));
  EXPECT_EQ(mapped(fruits, [](const Fruit& one) { return one.seeds * 2.5; }),
            (std::vector<double>{25, 2.5}));
  EXPECT_TRUE(mapped(std::vector<Fruit>(), &Fruit::seeds).empty());
}

TEST(Lists, JoinedPutsTheSeparatorBetweenAlsoOfEmptyTexts) {
  EXPECT_EQ(joined(std::vector<std::string>{"a", "b", "c"}), "a, b, c");
  EXPECT_EQ(joined(std::vector<int>{8, 4, 2}, "x"), "8x4x2");
  EXPECT_EQ(joined(std::vector<std::string>{"", "b"}, "/"), "/b");
  EXPECT_EQ(joined(std::map<int, std::string>{{1, "one"}, {2, "two"}}, " ",
                   [](const auto& entry) { return entry.second; }),
            "one two");
  EXPECT_EQ(joined(std::vector<int>(), "x"), "");
}

TEST(Lists, OneOfNamesAllAndTheClosest) {
  EXPECT_EQ(one_of("rng", {"ring", "tree"}), "one of ring, tree (did you mean 'ring'?)");
  EXPECT_EQ(one_of("zzzz", {"ring", "tree"}), "one of ring, tree");
}

TEST(Lists, WordsAreBetweenBlanksOrOtherSeparators) {
  EXPECT_EQ(words_of(" a\tb  c\r\n"), (std::vector<std::string_view>{"a", "b", "c"}));
  EXPECT_EQ(words_of<std::string>("8x4xx2", "x"), (std::vector<std::string>{"8", "4", "2"}));
  EXPECT_TRUE(words_of(" \n").empty());
  EXPECT_EQ(trimmed(" \ta b\r\n"), "a b");
  EXPECT_EQ(trimmed(" \n"), "");
  EXPECT_EQ(trimmed(""), "");
}

TEST(Lists, LowerCaseLeavesWhatIsNoLetterOfAscii) {
  EXPECT_EQ(lower_case("H100-SXM5 Ä"), "h100-sxm5 Ä");
}

}  // namespace
}  // namespace orrery
