// SPDX-License-Identifier: Apache-2.0
/// Results of a study in one SQLite file.
///
///   results   hash of the inputs -> figures, error
///   points    number of the point -> hash, varied values
///   rows      the two together: point, varied values, figures, error, hash
///
/// Results are never lost: they stay when the study changes, and a point whose inputs have been run
/// before has its result. Points are those of the study that the store was last opened for. Every
/// put() is a transaction: once it has returned, the row outlives the process, however that ends.
///
/// Every row of results and points has a checksum of its values, and the head one of itself and of
/// the schema: a store of which a disk or a person has changed anything is refused when it is
/// opened.
#pragma once

#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "base/result.h"
#include "study/sweep/cell.h"
#include "study/sweep/database.h"
#include "study/sweep/kind.h"
#include "study/sweep/study.h"

namespace orrery::sweep {

/// A StoreHead is what a store's columns are made of.
struct StoreHead {
  std::string kind;
  std::string version;  ///< of the program
  std::string study;    ///< study_hash()
  std::size_t points = 0;
  std::vector<std::string> varied;
  std::vector<std::string> figures;
};
StoreHead head_of(const Study& study, const std::string& version);

/// Returns the hash of everything that the study's results depend on, files included.
std::string study_hash(const Study& study, const std::string& version);

/// Returns the hash of the inputs of one point, for the program's version.
std::string point_hash(const Prepared& prepared, const std::string& version);

class Store {
 public:
  /// Opens or makes the file. Mistakes: a file that is no store, or one of another kind of study.
  static Result<Store> open(const std::string& file, const StoreHead& head);

  /// Returns whether an input has a result, whichever process has put it there.
  Result<bool> has(const std::string& hash) const;
  /// Hashes that have results.
  Result<std::set<std::string>> done() const;
  /// Returns the numbers of the points that have results.
  Result<std::set<std::size_t>> points() const;

  /// Puts a point's result into the store. Any thread may call it.
  Result<void> put(std::size_t point, const std::string& hash, const std::vector<Cell>& varied,
                   const Outcome* outcome);
  /// Takes over what another store has; of one of another study of this kind only the results.
  Result<void> merge(const std::string& file);
  /// Returns the point, varied values, figures and error, in the order of points.
  Result<Rows> rows() const;
  /// Finishes the file: nothing stands beside it any more, unless another process has it open.
  Result<void> finish();

  const std::string& file() const { return database_.file(); }

 private:
  Store(Database database, StoreHead head)
      : database_(std::move(database)),
        head_(std::move(head)),
        lock_(std::make_unique<std::mutex>()) {}

  Result<void> prepare();
  Result<void> check();
  Result<void> make_points();
  std::string varied_columns(const std::string& prefix) const;
  std::string figure_columns() const;

  mutable Database database_;
  StoreHead head_;
  std::unique_ptr<std::mutex> lock_;
};

/// Reads the head of a store. Mistakes: a file that is none.
Result<StoreHead> read_head(Database& database);

/// Makes or fills `into` with what all of `files` have. Mistakes: stores of different studies.
Result<StoreHead> merge_stores(const std::vector<std::string>& files, const std::string& into);

}  // namespace orrery::sweep
