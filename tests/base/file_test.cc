// SPDX-License-Identifier: Apache-2.0
#include "base/file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <iterator>

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
  std::ptrdiff_t files() const {
    return std::distance(fs::directory_iterator(folder_), fs::directory_iterator());
  }

 private:
  fs::path folder_;
};

TEST_F(FileTest, WhatIsWrittenIsReadBackAndNothingElseIsLeft) {
  const std::string content("a\0b\n", 4);
  ASSERT_TRUE(write_file(path("f"), content).has_value());
  EXPECT_EQ(read_file(path("f")).value(), content);
  EXPECT_EQ(files(), 1);
}

TEST_F(FileTest, APipeIsRefusedBeforeItIsRead) {
  ASSERT_EQ(mkfifo(path("pipe").c_str(), 0600), 0);
  const auto read = read_file(path("pipe"));
  ASSERT_FALSE(read.has_value());
  EXPECT_THAT(read.error().to_string(), ::testing::HasSubstr("is a device or a pipe"));
}

TEST_F(FileTest, AFailedWriteLeavesTheOldFile) {
  ASSERT_TRUE(write_file(path("f"), "old").has_value());
  EXPECT_FALSE(write_file(path("no/such/folder/f"), "new").has_value());
  fs::create_directory(path("d"));
  EXPECT_FALSE(write_file(path("d"), "new").has_value());
  EXPECT_EQ(files(), 2);
  EXPECT_EQ(read_file(path("f")).value(), "old");
}

TEST_F(FileTest, AFileKeepsItsMode) {
  ASSERT_TRUE(write_file(path("f"), "old").has_value());
  fs::permissions(path("f"), fs::perms(0640));
  ASSERT_TRUE(write_file(path("f"), "new").has_value());
  EXPECT_EQ(fs::status(path("f")).permissions(), fs::perms(0640));
}

TEST_F(FileTest, LinksAndDevicesStayWhatTheyAre) {
  ASSERT_TRUE(write_file(path("target"), "old").has_value());
  fs::create_symlink(path("target"), path("link"));
  ASSERT_TRUE(write_file(path("link"), "new").has_value());
  EXPECT_TRUE(fs::is_symlink(path("link")));
  EXPECT_EQ(read_file(path("target")).value(), "new");
  ASSERT_TRUE(write_file("/dev/null", "x").has_value());
  EXPECT_TRUE(fs::is_character_file("/dev/null"));
}

TEST_F(FileTest, AFolderOfConfigurationsIsSearchedByNameOrGivenByPath) {
  fs::create_directories(path("machines"));
  ASSERT_TRUE(write_file(path("machines/tiny.1.yaml"), "a: 1").has_value());
  const char* before = std::getenv("ORRERY_CONFIGS");
  const std::string kept = before == nullptr ? "" : before;
  setenv("ORRERY_CONFIGS", path("").c_str(), 1);
  EXPECT_EQ(config_folders().front(), path(""));
  EXPECT_THAT(list_configs("machines"), ::testing::Contains("tiny.1"));
  EXPECT_EQ(find_config("machines", "tiny.1").value(), path("machines/tiny.1.yaml"));
  EXPECT_THAT(find_config("machines", "tiny1").error().to_string(),
              ::testing::HasSubstr("(did you mean 'tiny.1'?)"));
  ASSERT_TRUE(write_file(path("machines/large.1.yaml"), "a: 1").has_value());
  EXPECT_EQ(find_config("machines", "tin").error().mistakes.front().expected,
            "a file or one of: tiny.1, or " + std::to_string(list_configs("machines").size() - 1) +
                " that begin otherwise (did you mean 'tiny.1'?)");
  EXPECT_EQ(find_config("machines", "someone/Tiny.1").error().to_string(),
            "someone/Tiny.1: no such file (did you mean 'tiny.1'?)");
  EXPECT_EQ(find_config("machines", "tiny1.yaml").error().to_string(),
            "tiny1.yaml: no such file (did you mean 'tiny.1'?)");
  setenv("ORRERY_CONFIGS", kept.c_str(), 1);
  EXPECT_EQ(find_config("machines", path("machines/tiny.1.yaml")).value(),
            path("machines/tiny.1.yaml"));
  EXPECT_EQ(find_config("machines", ".").value(), ".");  // is there, if of no use
  EXPECT_FALSE(find_config("machines", path(std::string(5000, 'x') + ".yaml")).has_value());
}

TEST_F(FileTest, AFolderOfConfigurationsThatIsNotThereIsSaid) {
  const char* before = std::getenv("ORRERY_CONFIGS");
  const std::string kept = before == nullptr ? "" : before;
  setenv("ORRERY_CONFIGS", path("nowhere").c_str(), 1);
  EXPECT_THAT(find_config("machines", "dgx-h100").error().to_string(),
              ::testing::HasSubstr("ORRERY_CONFIGS: found '" + path("nowhere") + "'"));
  setenv("ORRERY_CONFIGS", kept.c_str(), 1);
}

TEST_F(FileTest, MissingFoldersAndLargeFilesAreMistakes) {
  EXPECT_THAT(read_file(path("missing")).error().to_string(), ::testing::HasSubstr("no such file"));
  EXPECT_THAT(read_file(path(".")).error().to_string(), ::testing::HasSubstr("folder"));
  ASSERT_TRUE(write_file(path("f"), "12345").has_value());
  EXPECT_THAT(read_file(path("f"), 4).error().to_string(),
              ::testing::EndsWith("f: larger than 4 bytes, the most that is read of such a file "
                                  "without --big"));
  setenv("ORRERY_BIG", "1", 1);
  EXPECT_TRUE(read_file(path("f"), 4));
  unsetenv("ORRERY_BIG");
  // Opens, and fails when it is read: what stands there is not empty.
  EXPECT_THAT(read_file("/proc/self/mem").error().to_string(),
              ::testing::HasSubstr("cannot be read"));
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
