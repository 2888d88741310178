// SPDX-License-Identifier: Apache-2.0
#include "web/page.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "report/schemas.h"

namespace orrery::web {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::string result_named(const std::string& name) {
  return nlohmann::json{{"model", name}, {"machine", name}, {"step_time_s", 1.5}}.dump();
}

/// The JSON of a page's block, as a browser reads it.
nlohmann::json block(const std::string& page, const std::string& id) {
  const std::string begin = "id=\"" + id + "\">";
  const std::size_t at = page.find(begin) + begin.size();
  return nlohmann::json::parse(page.substr(at, page.find("</script>", at) - at));
}

TEST(Page, NamesNeverBecomeMarkup) {
  const std::string hostile = "</script><img src=x onerror=alert(1)><!--<script>";
  const std::string page = page_text({"simulate", "1", result_named(hostile)});
  const std::string plain = page_text({"simulate", "1", result_named("gpt2")});
  EXPECT_THAT(page, Not(HasSubstr("<img")));
  EXPECT_EQ(std::ranges::count(page, '<'), std::ranges::count(plain, '<'));
  EXPECT_EQ(block(page, "result").at("model"), hostile);  // and is read back whole
}

TEST(Page, HasAPolicyThatAllowsNothingButItsOwnScriptAndStyle) {
  const std::string page = page_text({"simulate", "1", result_named("gpt2")});
  EXPECT_THAT(page, HasSubstr("Content-Security-Policy\" content=\"default-src 'none'; "
                              "base-uri 'none'; form-action 'none'; script-src 'sha256-"));
  EXPECT_THAT(page, Not(HasSubstr("unsafe")));
  EXPECT_THAT(page, HasSubstr("Copyright (c) 2022 Leon Sorokin"));  // uPlot's licence
}

TEST(Page, EqualInputsGiveEqualBytes) {
  const auto timed = [](double wall) {
    return page_text({"simulate", "1",
                      nlohmann::json{{"model", "gpt2"}, {"timing", {{"wall_s", wall}}}}.dump()});
  };
  EXPECT_EQ(timed(0.25), timed(0.5));
}

TEST(Page, EmbedsJsonWithoutSpacesMarkupAndClocks) {
  EXPECT_EQ(
      embedded(R"({ "a" : "x < \"y\\", "timing": {"b": [1]}, "c": [1, [2, 3], 4], "d": null })", 2),
      R"({"a":"x \u003c \"y\\","c":[1,[2,3]],"d":null})");
  EXPECT_EQ(embedded(R"({"timing": 1, "a": {"timing": 2}})", 9), R"({"a":{"timing":2}})");
  EXPECT_EQ(embedded("[]", 3), "[]");
  EXPECT_EQ(embedded("{ }\n", 3), "{}");
}

TEST(Page, OfAVeryLongListHoldsTheFirstItemsAndSaysSo) {
  // 300 items of 4 kB are 1.2 MB; the first 100 of them fit.
  std::string rows;
  for (int rank = 0; rank < 300; ++rank) {
    rows += (rows.empty() ? "\"" : ",\"") + std::string(4000, 'n') + "\"";
  }
  const std::string page = page_text({"astra", "1", "{\"ranks\": [" + rows + "]}"});
  EXPECT_LE(page.size(), kMostBytes);
  EXPECT_EQ(block(page, "result").at("ranks").size(), 100U);
  EXPECT_EQ(block(page, "about").at("cut"), 100);
}

TEST(Page, ShowsWithEachFieldWhatItsSchemaSays) {
  const auto schema = block(page_text({"simulate", "1", result_named("gpt2")}), "schema");
  EXPECT_EQ(schema.at("properties").at("tokens_per_s").at("description"), "of all devices");
  for (const char* command : {"explain", "compare", "plan", "sweep", "validate", "serve", "flow",
                              "flit", "astra", "diagnose", "goodput"}) {
    EXPECT_TRUE(block(page_text({command, "1", "{}"}), "schema").contains("description"))
        << command;
  }
}

TEST(Page, IsWrittenWholeOrNotAtAll) {
  const std::string folder = ::testing::TempDir() + "orrery_page";
  std::filesystem::create_directories(folder);
  EXPECT_FALSE(write_page(folder, {"simulate", "1", "{}"}));
  EXPECT_FALSE(write_page(folder + "/none/page.html", {"simulate", "1", "{}"}));
  ASSERT_TRUE(write_page(folder + "/page.html", {"simulate", "1", "{}"}));
  std::ifstream file(folder + "/page.html");
  std::stringstream content;
  content << file.rdbuf();
  EXPECT_EQ(content.str(), page_text({"simulate", "1", "{}"}));
  std::filesystem::remove_all(folder);
}

/// Returns the line of a schema that has its version (tools/schema_versions.py), "" where none has.
std::string version_line(const std::string& schema) {
  const std::size_t begin = schema.find("  \"$id\"");
  return begin == schema.npos ? "" : schema.substr(begin, schema.find('\n', begin) + 1 - begin);
}

std::string text_of(const std::string& path) {
  std::ifstream file(path);
  std::stringstream content;
  content << file.rdbuf();
  return content.str();
}

/// The other results that declare their fields are held to theirs, too. With ORRERY_REFRESH set
/// the files are written first. The line of the version is the file's own.
TEST(Schema, OfAStepIsTheOneThatIsShipped) {
  for (const std::string_view name : report::declared_schemas()) {
    const std::string path = fmt::format("{}/docs/schema/{}.json", ORRERY_SOURCE_DIR, name);
    std::string made = report::declared_schema(name);
    made.insert(made.find("  \"$comment\""), version_line(text_of(path)));
    if (std::getenv("ORRERY_REFRESH") != nullptr) {
      std::ofstream(path) << made;
    }
    EXPECT_EQ(text_of(path), made) << path << " is what report::declared_schema() returns";
  }
  EXPECT_EQ(report::declared_schema("none"), "");
}

}  // namespace
}  // namespace orrery::web
