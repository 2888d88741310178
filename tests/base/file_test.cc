// SPDX-License-Identifier: Apache-2.0
#include "base/file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

namespace orrery {
namespace {

namespace fs = std::filesystem;

class FileTest : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::path(::testing::TempDir()) /
              ::testing::UnitTest::GetInstance()->current_test_info()->name();
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }
  std::string path(const std::string& name) const { return (folder_ / name).string(); }

 private:
  fs::path folder_;
};

TEST_F(FileTest, WhatIsWrittenIsReadBackAndNothingElseIsLeft) {
  const std::string content("a\0b\n", 4);
  ASSERT_TRUE(write_file(path("f"), content).has_value());
  EXPECT_EQ(read_file(path("f")).value(), content);
  EXPECT_FALSE(fs::exists(path("f.tmp")));
}

TEST_F(FileTest, AFailedWriteLeavesTheOldFile) {
  ASSERT_TRUE(write_file(path("f"), "old").has_value());
  EXPECT_FALSE(write_file(path("no/such/folder/f"), "new").has_value());
  fs::create_directory(path("d"));
  EXPECT_FALSE(write_file(path("d"), "new").has_value());
  EXPECT_FALSE(fs::exists(path("d.tmp")));
  EXPECT_EQ(read_file(path("f")).value(), "old");
}

TEST_F(FileTest, MissingFoldersAndLargeFilesAreMistakes) {
  EXPECT_THAT(read_file(path("missing")).error().to_string(), ::testing::HasSubstr("no such file"));
  EXPECT_THAT(read_file(path(".")).error().to_string(), ::testing::HasSubstr("folder"));
  ASSERT_TRUE(write_file(path("f"), "12345").has_value());
  EXPECT_FALSE(read_file(path("f"), 4).has_value());
  EXPECT_TRUE(read_file(path("f"), 5).has_value());
}

TEST_F(FileTest, AnUnknownConfigurationListsWhatThereIs) {
  const auto result = find_config("nonsense", "x");
  ASSERT_FALSE(result.has_value());
  EXPECT_THAT(result.error().to_string(),
              ::testing::HasSubstr("nonsense: found 'x', expected a file"));
}

}  // namespace
}  // namespace orrery
