// SPDX-License-Identifier: Apache-2.0
#include "study/sweep/pool.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <mutex>
#include <thread>
#include <vector>

#include "base/reader.h"

namespace orrery::sweep {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kHashShown = 12;  // digits in a file's name

/// Launchers call the number of a process so.
constexpr std::array kRankVariables{"OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID"};

std::string pool_name(const std::string& store, const StoreHead& head) {
  return store + ".pool-" + head.study.substr(0, kHashShown);
}

/// Returns the stores of all processes that there are or were.
std::vector<std::string> rank_stores(const std::string& store) {
  std::vector<std::string> files;
  std::error_code ignored;
  const fs::path path(store);
  const fs::path folder = path.has_parent_path() ? path.parent_path() : fs::path(".");
  const std::string prefix = path.filename().string() + ".rank";
  for (const auto& entry : fs::directory_iterator(folder, ignored)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with(prefix) &&
        name.find_first_not_of("0123456789", prefix.size()) == std::string::npos) {
      files.push_back((path.parent_path() / name).string());
    }
  }
  std::sort(files.begin(), files.end());
  return files;
}

void remove_store(const std::string& file) {
  std::error_code ignored;
  for (const char* suffix : {"", "-wal", "-shm", "-journal"}) {
    fs::remove(file + suffix, ignored);
  }
}

/// Before is what the store of the whole study has already: it is read before anything is run.
struct Before {
  std::set<std::size_t> points;
  std::set<std::string> hashes;
};

Result<Before> read_before(const std::string& file, const StoreHead& head) {
  Before before;
  std::error_code ignored;
  if (!fs::exists(file, ignored)) {
    return before;
  }
  auto store = Database::open(file, Database::Mode::read);
  if (!store) {
    return fail(std::move(store.error()));
  }
  const auto tables = store->query("SELECT name FROM sqlite_master WHERE name = 'rows'");
  if (!tables) {
    return fail(tables.error());
  }
  if (tables->rows.empty()) {
    return before;  // a merge that was killed has just made the file; the next one will see
  }
  const auto there = read_head(*store);
  if (!there) {
    return fail(there.error());
  }
  if (there->kind != head.kind || there->figures != head.figures) {
    return fail(
        Error(Mistake{file, {}, there->kind, "a store of kind " + head.kind + " of this version"}));
  }
  const auto hashes = store->query("SELECT hash FROM results");
  const bool same = there->study == head.study;
  const auto points = store->query(same ? "SELECT point FROM rows" : "SELECT 0 LIMIT 0");
  if (!hashes || !points) {
    return fail(hashes ? points.error() : hashes.error());
  }
  for (const std::vector<Cell>& row : hashes->rows) {
    before.hashes.insert(to_string(row.front()));
  }
  for (const std::vector<Cell>& row : points->rows) {
    before.points.insert(static_cast<std::size_t>(std::get<std::int64_t>(row.front())));
  }
  return before;
}

/// A result that the whole store has goes into none of the others.
class PoolWork {
 public:
  PoolWork(const Study& study, Store& store, const Before& before, const SweepOptions& options)
      : study_(study), store_(store), before_(before), options_(options) {}

  /// One thread's part. First what is free, then what others held when they were asked for it:
  /// each of those is done once its lock can be had, or is free because its holder is dead.
  void run(PoolFile& pool, bool reports) {
    std::vector<std::size_t> held;
    for (std::size_t point = 0; point < study_.space.count; ++point) {
      if (try_point(pool, point, false) == PoolFile::Claim::held) {
        held.push_back(point);
      }
      if (reports && options_.progress) {
        options_.progress(static_cast<double>(point + 1) / static_cast<double>(study_.space.count));
      }
    }
    for (const std::size_t point : held) {
      try_point(pool, point, true);
    }
  }

  std::size_t ran() const { return ran_; }
  bool failed() const { return failed_; }
  const Error& mistakes() const { return mistakes_; }

 private:
  PoolFile::Claim try_point(PoolFile& pool, std::size_t point, bool wait) {
    if (failed_ || before_.points.contains(point)) {
      return PoolFile::Claim::done;
    }
    const PoolFile::Claim claim = pool.claim(point, wait);
    if (claim != PoolFile::Claim::taken) {
      return claim;
    }
    const Result<void> put = run_point(point);
    if (!put) {
      const std::lock_guard guard(lock_);
      mistakes_ = put.error();
      failed_ = true;
    }
    pool.release(point, put.has_value());
    return claim;
  }

  Result<void> run_point(std::size_t number) {
    const SweepPoint point = prepare_point(study_, number, options_.version);
    const std::vector<Cell> varied = varied_cells(study_, number);
    if (before_.hashes.contains(point.hash)) {
      return store_.put(number, point.hash, varied, nullptr);
    }
    ++ran_;
    Outcome outcome = point.run(shared_);
    outcome.figures.resize(study_.kind->figures.size());
    return store_.put(number, point.hash, varied, &outcome);
  }

  const Study& study_;
  Store& store_;
  const Before& before_;
  const SweepOptions& options_;
  Shared shared_;
  std::mutex lock_;
  std::atomic<std::size_t> ran_{0};
  std::atomic<bool> failed_{false};
  Error mistakes_;
};

/// Runs with the store of this rank open; its number of points run.
Result<std::size_t> run_rank(const Study& study, const std::string& file, const StoreHead& head,
                             const std::string& pool_file, const SweepOptions& options) {
  const auto before = read_before(file.substr(0, file.rfind(".rank")), head);
  if (!before) {
    return fail(before.error());
  }
  auto store = Store::open(file, head);
  if (!store) {
    return fail(std::move(store.error()));
  }
  std::vector<PoolFile> pools;
  for (int i = 0; i < std::max(options.threads, 1); ++i) {
    auto pool = PoolFile::open(pool_file);
    if (!pool) {
      return fail(std::move(pool.error()));
    }
    pools.push_back(std::move(*pool));
  }
  PoolWork work(study, *store, *before, options);
  {
    std::vector<std::jthread> threads;
    for (std::size_t i = 1; i < pools.size(); ++i) {
      threads.emplace_back([&, i] { work.run(pools[i], false); });
    }
    work.run(pools.front(), true);
  }
  if (work.failed()) {
    return fail(work.mistakes());
  }
  return store->finish().map([&] { return work.ran(); });
}

Result<PoolResult> merge_pool(const std::string& file, const StoreHead& head, PoolResult result) {
  const std::vector<std::string> ranks = rank_stores(file);
  auto store = Store::open(file, head);
  if (!store) {
    return fail(std::move(store.error()));
  }
  for (const std::string& rank : ranks) {
    if (auto ok = store->merge(rank); !ok) {
      return fail(std::move(ok.error()));
    }
  }
  const auto points = store->points();
  if (!points) {
    return fail(points.error());
  }
  if (auto ok = store->finish(); !ok) {
    return fail(std::move(ok.error()));
  }
  std::for_each(ranks.begin(), ranks.end(), remove_store);
  result.merged = true;
  result.missing = head.points - points->size();
  return result;
}

}  // namespace

std::optional<int> rank_of_process() {
  for (const char* variable : kRankVariables) {
    const char* const text = std::getenv(variable);
    const auto rank = text == nullptr ? std::nullopt : std::optional(parse_value<int>(text));
    if (rank && *rank && **rank >= 0) {
      return **rank;
    }
  }
  return std::nullopt;
}

Result<PoolResult> run_pool(const Study& study, const std::string& file, int rank,
                            const SweepOptions& options) {
  const StoreHead head = head_of(study, options.version);
  auto pool = PoolFile::open(pool_name(file, head));
  if (!pool) {
    return fail(std::move(pool.error()));
  }
  pool->join(head.points);
  const auto ran =
      run_rank(study, file + ".rank" + std::to_string(rank), head, pool->name(), options);
  if (!ran) {
    return fail(ran.error());
  }
  pool->leave(head.points);
  PoolResult result{.run = *ran, .merged = false, .missing = 0};
  if (!pool->merge(head.points)) {
    return result;
  }
  auto merged = merge_pool(file, head, result);
  if (merged) {
    std::error_code ignored;
    fs::remove(pool->name(), ignored);
  }
  return merged;
}

}  // namespace orrery::sweep
