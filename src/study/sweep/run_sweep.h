// SPDX-License-Identifier: Apache-2.0
/// Runs what of a study a store does not have yet.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "study/sweep/store.h"
#include "study/sweep/study.h"

namespace orrery::sweep {

/// Every count-th point, from number `index` on.
struct Shard {
  std::size_t index = 0;
  std::size_t count = 1;
};

/// Reads "3/8": 0 to 7 of 8.
std::optional<Shard> parse_shard(const std::string& text);

struct SweepOptions {
  std::string version{};                   ///< of the program: part of every hash
  int threads = 0;                         ///< 0 = one per processor
  Shard shard{};                           ///< the points of this process
  std::size_t limit = 0;                   ///< runs at most so many points; 0 = all
  std::function<void(double)> progress{};  ///< share of the points that are to be run
  std::function<bool()> go_on{};           ///< asked before each point; false: no more are begun
};

struct SweepCount {
  std::size_t points = 0;  ///< of the shard
  std::size_t known = 0;   ///< had a result before
  std::size_t run = 0;
};

/// One point of a study: its description read, its inputs hashed.
struct SweepPoint {
  std::string hash;
  Prepared prepared;
  Outcome run(Shared& shared) const;
};
SweepPoint prepare_point(const Study& study, std::size_t point, const std::string& version);

/// Returns the varied values of a point, as the store has them.
std::vector<Cell> varied_cells(const Study& study, std::size_t point);

/// Points whose inputs the store knows get its result, others are run and put into it as each
/// finishes. The rows of the store do not depend on threads, shards, or on how often the sweep was
/// stopped. Several at a time with one store share its points: each runs what no other runs or has
/// run, by locks on a file FILE.sweep-HASH beside it (pool.h). Mistakes: those of the store.
Result<SweepCount> run_sweep(const Study& study, Store& store, const SweepOptions& options);

}  // namespace orrery::sweep
