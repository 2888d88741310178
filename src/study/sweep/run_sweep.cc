// SPDX-License-Identifier: Apache-2.0
#include "study/sweep/run_sweep.h"

#include <algorithm>
#include <atomic>
#include <charconv>
#include <filesystem>
#include <mutex>
#include <utility>

#include "study/parallel.h"
#include "study/sweep/pool.h"

namespace orrery::sweep {
namespace {

/// The first mistake of many threads; after it nothing more is begun.
class FirstMistake {
 public:
  bool failed() const { return failed_; }

  void take(Result<void> result) {
    if (!result) {
      const std::lock_guard guard(lock_);
      mistakes_ = failed_ ? mistakes_ : result.error();
      failed_ = true;
    }
  }

  const Error& mistakes() const { return mistakes_; }

 private:
  std::mutex lock_;
  std::atomic<bool> failed_{false};
  Error mistakes_;
};

/// Returns the file on which sweeps of one study and store lock the points that they run.
std::string claims_name(const Study& study, const Store& store, const std::string& version) {
  constexpr std::size_t kHashShown = 12;
  return store.file() + ".sweep-" + study_hash(study, version).substr(0, kHashShown);
}

/// Runs points on threads, each under its claim.
class PointRunner {
 public:
  PointRunner(const Study& study, Store& store, const SweepOptions& options,
              std::set<std::string> known, PoolFile& claims)
      : study_(study),
        store_(store),
        options_(options),
        known_(std::move(known)),
        claims_(claims) {}

  /// Returns the points that another sweep has at the time; `wait` waits for each.
  std::vector<std::size_t> run(const std::vector<std::size_t>& points, bool wait,
                               const std::function<void(double)>& progress) {
    std::vector<std::size_t> held;
    const auto work = [&](std::size_t i) {
      if (first_.failed() || (options_.go_on && !options_.go_on())) {
        return;
      }
      if (claims_.claim(points[i], wait) == PoolFile::Claim::taken) {
        first_.take(run(points[i]));
        claims_.release(points[i], false);
      } else {
        const std::lock_guard guard(lock_);
        held.push_back(points[i]);
      }
    };
    study::run_parallel(points.size(), options_.threads, work, progress);
    std::sort(held.begin(), held.end());
    return held;
  }

  const FirstMistake& mistake() const { return first_; }
  std::size_t again() const { return again_; }
  std::size_t ran() const { return ran_; }

 private:
  Result<void> run(std::size_t number) {
    const SweepPoint point = prepare_point(study_, number, options_.version);
    const std::vector<Cell> varied = varied_cells(study_, number);
    const bool here = [&] {  // or run just now: points may have the same inputs
      const std::lock_guard guard(lock_);
      return !known_.insert(point.hash).second;
    }();
    const auto there = here ? Result<bool>(true) : store_.has(point.hash);
    if (!there) {
      return fail(there.error());
    }
    if (*there) {
      ++again_;
      return store_.put(number, point.hash, varied, nullptr);
    }
    ++ran_;
    Outcome outcome = point.run(shared_);
    outcome.figures.resize(study_.kind->figures.size());
    return store_.put(number, point.hash, varied, &outcome);
  }

  const Study& study_;
  Store& store_;
  const SweepOptions& options_;
  std::set<std::string> known_;
  PoolFile& claims_;
  Shared shared_;
  std::mutex lock_;
  FirstMistake first_;
  std::atomic<std::size_t> again_{0};
  std::atomic<std::size_t> ran_{0};
};

std::vector<std::size_t> missing_points(const Study& study, const std::set<std::size_t>& there,
                                        const Shard& shard) {
  std::vector<std::size_t> missing;
  for (std::size_t point = shard.index; point < study.space.count; point += shard.count) {
    if (!there.contains(point)) {
      missing.push_back(point);
    }
  }
  return missing;
}

}  // namespace

std::optional<Shard> parse_shard(const std::string& text) {
  Shard shard;
  const char* const end = text.data() + text.size();
  const auto index = std::from_chars(text.data(), end, shard.index);
  if (index.ec != std::errc() || index.ptr == end || *index.ptr != '/') {
    return std::nullopt;
  }
  const auto count = std::from_chars(index.ptr + 1, end, shard.count);
  const bool right = count.ec == std::errc() && count.ptr == end && shard.index < shard.count;
  return right ? std::optional(shard) : std::nullopt;
}

Outcome SweepPoint::run(Shared& shared) const {
  return prepared.run ? prepared.run(shared) : refused(0, prepared.mistakes);
}

SweepPoint prepare_point(const Study& study, std::size_t point, const std::string& version) {
  SweepPoint ready;
  Description description = study.describe(point);
  if (description.mistakes.empty()) {
    ready.prepared = study.kind->prepare(description.node);
  } else {
    ready.prepared.inputs = "nowhere " + without_places(description.mistakes).to_string();
    ready.prepared.mistakes = std::move(description.mistakes);
  }
  ready.hash = point_hash(ready.prepared, version);
  return ready;
}

std::vector<Cell> varied_cells(const Study& study, std::size_t point) {
  std::vector<Cell> cells;
  for (std::size_t axis = 0; axis < study.space.axes.size(); ++axis) {
    const ConfigNode* value = study.space.value(point, axis);
    cells.push_back(value == nullptr ? Cell() : cell_of(value->text));
  }
  return cells;
}

Result<SweepCount> run_sweep(const Study& study, Store& store, const SweepOptions& options) {
  const auto there = store.points();
  const auto known = store.done();
  if (!there || !known) {
    return fail(there ? known.error() : there.error());
  }
  std::vector<std::size_t> missing = missing_points(study, *there, options.shard);
  SweepCount count;
  for (std::size_t p = options.shard.index; p < study.space.count; p += options.shard.count) {
    ++count.points;
  }
  count.known = count.points - missing.size();
  if (options.limit > 0 && missing.size() > options.limit) {
    missing.resize(options.limit);
  }
  auto claims = PoolFile::open(claims_name(study, store, options.version));
  if (!claims) {
    return fail(std::move(claims.error()));
  }
  claims->join(study.space.count);
  PointRunner runner(study, store, options, *known, *claims);
  const auto held = runner.run(missing, false, options.progress);
  (void)runner.run(held, true, {});  // each is done once its lock can be had, or its holder is dead
  claims->leave(study.space.count);
  if (claims->merge(study.space.count)) {
    std::error_code ignored;
    std::filesystem::remove(claims->name(), ignored);
  }
  if (runner.mistake().failed()) {
    return fail(runner.mistake().mistakes());
  }
  count.known += runner.again();
  count.run = runner.ran();
  return count;
}

}  // namespace orrery::sweep
