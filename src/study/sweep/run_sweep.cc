// SPDX-License-Identifier: Apache-2.0
#include "study/sweep/run_sweep.h"

#include <atomic>
#include <charconv>
#include <mutex>

#include "study/parallel.h"

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
  auto known = store.done();
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
  FirstMistake first;
  Shared shared;
  std::mutex lock;
  std::atomic<std::size_t> again{0};
  const auto work = [&](std::size_t i) {
    if (first.failed()) {
      return;
    }
    const SweepPoint point = prepare_point(study, missing[i], options.version);
    const std::vector<Cell> varied = varied_cells(study, missing[i]);
    const bool is_known = [&] {  // or run just now: points may have the same inputs
      const std::lock_guard guard(lock);
      return !known->insert(point.hash).second;
    }();
    if (is_known) {
      ++again;
      first.take(store.put(missing[i], point.hash, varied, nullptr));
      return;
    }
    Outcome outcome = point.run(shared);
    outcome.figures.resize(study.kind->figures.size());
    first.take(store.put(missing[i], point.hash, varied, &outcome));
  };
  study::run_parallel(missing.size(), options.threads, work, options.progress);
  if (first.failed()) {
    return fail(first.mistakes());
  }
  count.known += again;
  count.run = missing.size() - again;
  return count;
}

}  // namespace orrery::sweep
