// SPDX-License-Identifier: Apache-2.0
#include "mpi_calls/score.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "mpi_calls/matching.h"

namespace orrery::mpi_calls {
namespace {

constexpr std::array<std::string_view, 8> kCommonCore{
    "MPI_Init", "MPI_Finalize", "MPI_Comm_rank", "MPI_Comm_size",
    "MPI_Send", "MPI_Recv",     "MPI_Reduce",    "MPI_Bcast"};

/// The collectives, without MPI_I: MPI_Iallreduce is one, too.
constexpr std::array<std::string_view, 16> kCollectives{
    "allreduce", "reduce",   "bcast",     "barrier",       "gather",   "gatherv",
    "scatter",   "scatterv", "allgather", "allgatherv",    "alltoall", "alltoallv",
    "scan",      "exscan",   "alltoallw", "reduce_scatter"};

/// The mean of what there is.
class MeanOf {
 public:
  void add(double value) {
    sum_ += value;
    ++count_;
  }
  double value() const { return count_ == 0 ? 0 : sum_ / static_cast<double>(count_); }

 private:
  double sum_ = 0;
  std::int64_t count_ = 0;
};

/// Shares of one program, and what it adds to the tallies.
class Scorer {
 public:
  Scorer() {
    for (const char* const name : {"sends", "receives", "collectives", "other"}) {
      groups_.push_back({name});
    }
  }

  void add(const Matching& matching) {
    if (matching.calls.empty() && matching.predictions.empty()) {
      return;
    }
    ++programs_;
    double located = 0;
    double named = 0;
    double counted = 0;
    MeanOf args;
    for (const Outcome& call : matching.calls) {
      located += call.located ? 1 : 0;
      named += call.named ? 1 : 0;
      counted += 1;
      if (call.args) {
        args.add(*call.args);
      }
      count(call.name, 1, 0, call.named ? 1 : 0);
    }
    for (const auto& [name, right] : matching.predictions) {
      count(name, 0, 1, 0);
      right_predictions_ += right ? 1 : 0;
    }
    if (counted > 0) {
      location_.add(located / counted);
    }
    if (located > 0) {
      function_.add(named / located);
    }
    if (named > 0) {
      args_.add(args.value());
    }
  }

  Score take() {
    Score score{.programs = programs_,
                .location = location_.value(),
                .function = function_.value(),
                .args = args_.value()};
    score.precision = all_.predicted == 0 ? 0
                                          : static_cast<double>(right_predictions_) /
                                                static_cast<double>(all_.predicted);
    score.recall =
        all_.truth == 0 ? 0 : static_cast<double>(all_.matched) / static_cast<double>(all_.truth);
    const double sum = score.precision + score.recall;
    score.f1 = sum > 0 ? 2 * score.precision * score.recall / sum : 0;
    score.groups = std::move(groups_);
    for (auto& [name, tally] : functions_) {
      score.functions.push_back(std::move(tally));
    }
    return score;
  }

 private:
  void count(const std::string& name, std::int64_t truth, std::int64_t predicted,
             std::int64_t matched) {
    Tally& function = functions_.try_emplace(name, Tally{name}).first->second;
    Tally& group = *std::ranges::find(groups_, group_of(name), &Tally::name);
    for (Tally* const tally : {&function, &group, &all_}) {
      tally->truth += truth;
      tally->predicted += predicted;
      tally->matched += matched;
    }
  }

  std::int64_t programs_ = 0;
  std::int64_t right_predictions_ = 0;  ///< of several calls that one answers it is one
  MeanOf location_;
  MeanOf function_;
  MeanOf args_;
  Tally all_{"all"};
  std::vector<Tally> groups_;
  std::map<std::string, Tally> functions_;
};

bool has_own_names(const std::vector<Record>& records) {
  std::set<std::string> names;
  return std::ranges::all_of(records, [&](const Record& record) {
    return !record.program.empty() && names.insert(record.program).second;
  });
}

/// Returns the prediction of each program.
Result<std::vector<const Record*>> pairs_of(const std::vector<Record>& truth,
                                            const std::vector<Record>& predicted) {
  std::vector<const Record*> pairs;
  if (truth.size() != predicted.size()) {
    return fail(std::to_string(truth.size()) + " programs, but predictions for " +
                std::to_string(predicted.size()) + ": expected one for each");
  }
  if (!has_own_names(truth) || !has_own_names(predicted)) {
    for (const Record& record : predicted) {
      pairs.push_back(&record);
    }
    return pairs;
  }
  std::map<std::string, const Record*> by_name;
  for (const Record& record : predicted) {
    by_name[record.program] = &record;
  }
  Error mistakes;
  for (const Record& record : truth) {
    const auto found = by_name.find(record.program);
    if (found == by_name.end()) {
      mistakes.add({{}, "program", record.program, "one that has a prediction"});
      continue;
    }
    pairs.push_back(found->second);
  }
  return mistakes.empty() ? Result<std::vector<const Record*>>(std::move(pairs))
                          : fail(std::move(mistakes));
}

double share(std::int64_t part, std::int64_t whole, std::int64_t other) {
  return whole > 0 ? static_cast<double>(part) / static_cast<double>(whole) : other > 0 ? 0 : 1;
}

}  // namespace

double Tally::precision() const {
  return share(matched, predicted, truth);
}

double Tally::recall() const {
  return share(matched, truth, predicted);
}

double Tally::f1() const {
  const double sum = precision() + recall();
  return sum > 0 ? 2 * precision() * recall() / sum : 0;
}

bool is_common_core(const std::string& function) {
  return std::ranges::find(kCommonCore, function) != kCommonCore.end();
}

std::string group_of(const std::string& function) {
  std::string name = function.starts_with("MPI_") ? function.substr(4) : function;
  std::ranges::transform(name, name.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
  });
  if (name.ends_with("send") || name.ends_with("sendrecv") || name.ends_with("sendrecv_replace") ||
      name.ends_with("send_init")) {
    return "sends";
  }
  if (name.ends_with("recv") || name.ends_with("recv_init")) {
    return "receives";
  }
  const std::string started = name.starts_with("i") ? name.substr(1) : name;
  const auto is_one = [&](std::string_view word) { return name == word || started == word; };
  return std::ranges::any_of(kCollectives, is_one) ? "collectives" : "other";
}

Result<Score> score_records(const std::vector<Record>& truth, const std::vector<Record>& predicted,
                            const ScoreOptions& options) {
  const auto pairs = pairs_of(truth, predicted);
  if (!pairs) {
    return fail(pairs.error());
  }
  Scorer scorer;
  for (std::size_t i = 0; i < truth.size(); ++i) {
    const bool strict = options.mode == ScoreMode::strict;
    const Record& answer = *(*pairs)[i];
    // How many calls a program has: without common_core.
    const auto calls = static_cast<std::int64_t>(
        strict
            ? parse_labels(truth[i].mpi_labels).size()
            : match_as_mpirigen(truth[i], answer, {options.mode, options.tolerance}).calls.size());
    if (options.calls > 0 && calls > options.calls) {
      continue;
    }
    scorer.add(strict ? match_strictly(truth[i], answer, options)
                      : match_as_mpirigen(truth[i], answer, options));
  }
  return scorer.take();
}

}  // namespace orrery::mpi_calls
