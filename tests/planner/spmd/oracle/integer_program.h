// SPDX-License-Identifier: Apache-2.0
/// An integer linear program of choices with times and bytes, for CBC (coinor-libcbc-dev).
#pragma once

#ifdef ORRERY_CBC

#include <Cbc_C_Interface.h>

#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "base/units.h"

namespace orrery::spmd {

class IntegerProgram {
 public:
  using Row = std::vector<std::pair<int, double>>;  ///< columns and factors

  int add_binary(Time cost, Bytes memory) {
    memory_.emplace_back(columns_, memory / 1_MiB);
    costs_.push_back(to_seconds(cost) * kMicroseconds);
    return columns_++;
  }

  void add_row(const Row& row, char sense, double side) { rows_.push_back({row, sense, side}); }

  /// The least time in seconds; nothing: there is no program.
  std::optional<double> solve(std::optional<Bytes> limit) {
    const std::unique_ptr<Cbc_Model, void (*)(Cbc_Model*)> cbc(Cbc_newModel(), Cbc_deleteModel);
    Cbc_setLogLevel(cbc.get(), 0);
    for (const double cost : costs_) {
      Cbc_addCol(cbc.get(), "", 0, 1, cost, 1, 0, nullptr, nullptr);
    }
    for (const Side& one : rows_) {
      put(one, cbc.get());
    }
    if (limit) {
      put({memory_, 'L', *limit / 1_MiB}, cbc.get());
    }
    Cbc_setAllowableFractionGap(cbc.get(), 0);
    Cbc_setAllowableGap(cbc.get(), 0);
    Cbc_solve(cbc.get());
    if (Cbc_isProvenOptimal(cbc.get()) == 0) {
      return std::nullopt;
    }
    const double* const solution = Cbc_getColSolution(cbc.get());
    chosen_.assign(solution, solution + columns_);
    return Cbc_getObjValue(cbc.get()) / kMicroseconds;
  }
  /// Returns whether the last solution has it.
  bool is_chosen(int column) const { return chosen_[static_cast<std::size_t>(column)] > 0.5; }

 private:
  static constexpr double kMicroseconds = 1e6;

  struct Side {
    Row row;
    char sense = 'L';
    double side = 0;
  };

  static void put(const Side& one, Cbc_Model* cbc) {
    std::map<int, double> sums;
    for (const auto& [column, factor] : one.row) {
      sums[column] += factor;
    }
    std::vector<int> columns;
    std::vector<double> factors;
    for (const auto& [column, factor] : sums) {
      columns.push_back(column);
      factors.push_back(factor);
    }
    Cbc_addRow(cbc, "", static_cast<int>(columns.size()), columns.data(), factors.data(), one.sense,
               one.side);
  }

  int columns_ = 0;
  std::vector<double> costs_;
  std::vector<Side> rows_;
  Row memory_;
  std::vector<double> chosen_;
};

}  // namespace orrery::spmd

#endif
