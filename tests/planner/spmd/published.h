// SPDX-License-Identifier: Apache-2.0
/// HiDup's own figures (hidup/README.md) for the tests.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "base/csv.h"
#include "planner/spmd/models.h"
#include "planner/spmd/prices.h"
#include "planner/spmd/profile.h"
#include "planner/spmd/search.h"

namespace orrery::spmd {

inline std::string published(const std::string& file) {
  return std::string(ORRERY_SOURCE_DIR) + "/tests/planner/spmd/hidup/" + file;
}

/// One row of a table, by column.
class PublishedRow {
 public:
  PublishedRow(const CsvTable& table, const CsvRow& row) : table_(table), row_(row) {}
  std::string operator[](std::string_view column) const {
    return std::string(row_.cells[table_.column(column).value()]);
  }
  double number(std::string_view column) const { return std::stod((*this)[column]); }
  std::int64_t count(std::string_view column) const { return std::stoll((*this)[column]); }

 private:
  const CsvTable& table_;
  const CsvRow& row_;
};

inline Overlap overlap_named(const std::string& published_name) {
  return published_name == "forward" ? Overlap::forward
         : published_name == "none"  ? Overlap::none
                                     : Overlap::both;
}

inline OperatorGraph model(const std::string& name, std::int64_t devices, std::int64_t layers) {
  return build_model(value_of<ModelName>(name).value(), {devices, layers}).value();
}

inline PublishedPrices::Setting setting(std::int64_t devices, const std::string& profile,
                                        Overlap overlap = Overlap::forward) {
  return {devices, load_profile(profile).value(), overlap};
}

inline double optimum(const OperatorGraph& graph, const PublishedPrices::Setting& cost,
                      const SearchOptions& options = {}) {
  const PublishedPrices prices(cost);
  return to_seconds(search(graph, prices, options).value().total);
}

}  // namespace orrery::spmd
