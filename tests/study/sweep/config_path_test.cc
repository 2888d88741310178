// SPDX-License-Identifier: Apache-2.0
#include "study/sweep/config_path.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace orrery::sweep {
namespace {

using testing::HasSubstr;

ConfigNode document(const std::string& text) {
  return *parse_config(text, "f.yaml", ConfigSyntax::yaml);
}

TEST(ConfigPath, ListsAreWalkedByNumberOrName) {
  ConfigNode root = document("network: [{name: a, rate: 1}, {name: b, rate: 2}]\nunits: 3\n");
  const ConfigNode value = document("7");
  EXPECT_TRUE(set_field(root, "network.0.rate", value));
  EXPECT_TRUE(set_field(root, "network.b.rate", value));
  EXPECT_TRUE(set_field(root, "network.b.new", value));
  EXPECT_TRUE(set_field(root, "other.inner", value));
  EXPECT_EQ(canonical_text(root),
            canonical_text(document("network: [{name: a, rate: 7}, {name: b, rate: 7, new: 7}]\n"
                                    "units: 3\nother: {inner: 7}\n")));
  EXPECT_EQ(root.find("network")->items[1].find("new")->path, "network.b.new");
}

TEST(ConfigPath, AWayThatLeadsNowhereIsAMistake) {
  ConfigNode root = document("network: [{name: nvlink}]\nunits: 3\n");
  const ConfigNode value = document("7");
  const auto mistake = [&](const char* path) {
    return set_field(root, path, value).error().to_string();
  };
  EXPECT_THAT(mistake("network.1.rate"), HasSubstr("an item of network"));
  EXPECT_THAT(mistake("network.nvlnk.rate"), HasSubstr("did you mean 'nvlink'?"));
  EXPECT_THAT(mistake("units.more"), HasSubstr("units is one value"));
  EXPECT_THAT(mistake("units..more"), HasSubstr("one dot"));
}

TEST(ConfigPath, CanonicalTextForgetsLayoutAndPlace) {
  EXPECT_EQ(canonical_text(document("a: [1, x]\nb: {c: 2}\n")),
            canonical_text(document("# note\na:\n- 1\n- x\nb:\n  c: 2\n")));
  EXPECT_NE(canonical_text(document("a: 1")), canonical_text(document("a: \"1\"")));
}

}  // namespace
}  // namespace orrery::sweep
