// SPDX-License-Identifier: Apache-2.0
/// A pool: several processes, on one machine or many, share a study's points as they get to them.
///
/// Beside the store s.db stand s.db.pool-HASH, one byte per point that says whether it is done, and
/// s.db.rankN, the store of each process. Whoever runs a point holds a lock on its byte. The system
/// lets go of the locks of a process that ends, however it ends, so a point is either done, being
/// run, or free; nobody has to notice that somebody died. The last to finish merges. A pool that
/// was stopped as a whole goes on where it was when it is started again, with any number of
/// processes.
///
/// Requires a file system with locks (fcntl) that all processes see; no messages are sent.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/result.h"
#include "study/sweep/run_sweep.h"

namespace orrery::sweep {

/// The bytes and locks of a pool. One object per thread: a lock belongs to the object that took it.
class PoolFile {
 public:
  static Result<PoolFile> open(const std::string& file);
  PoolFile(PoolFile&& other) noexcept;
  PoolFile& operator=(PoolFile&&) = delete;
  ~PoolFile();

  enum class Claim : std::uint8_t { taken, held, done };
  /// Claims a point that is not done. `wait`: until whoever holds it is done or dead.
  Claim claim(std::size_t point, bool wait);
  /// Lets go of what claim() has taken.
  void release(std::size_t point, bool done);

  /// Joins those that work on these points: while any object does, nobody gets merge().
  void join(std::size_t points);
  void leave(std::size_t points);
  /// True for one of all that ask, once all have left.
  bool merge(std::size_t points);

  const std::string& name() const { return name_; }

 private:
  PoolFile(std::string name, int descriptor) : name_(std::move(name)), descriptor_(descriptor) {}
  bool lock(std::size_t byte, short how, bool wait) const;

  std::string name_;
  int descriptor_ = -1;
};

/// Returns the number of this process among those that mpirun or srun has started; nothing outside
/// them.
std::optional<int> rank_of_process();

struct PoolResult {
  std::size_t run = 0;      ///< points that this process ran
  bool merged = false;      ///< it was the last, and the store is whole
  std::size_t missing = 0;  ///< of a merged store: points whose rows somebody has deleted
};

/// Runs what run_sweep does, as process `rank` of a pool around the store `file`. `options.shard`
/// is of no use.
Result<PoolResult> run_pool(const Study& study, const std::string& file, int rank,
                            const SweepOptions& options);

}  // namespace orrery::sweep
