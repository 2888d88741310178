// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "mpi_calls/matching.h"

namespace orrery::mpi_calls {
namespace {

struct Side {
  Label label;
  Call call;
  std::optional<std::size_t> pair{};
};

std::vector<Side> side_of(const Record& record) {
  std::vector<Side> side;
  for (const Label& label : parse_labels(record.mpi_labels)) {
    side.push_back({label, call_of(label)});
  }
  std::stable_sort(side.begin(), side.end(),
                   [](const Side& a, const Side& b) { return a.label.line < b.label.line; });
  return side;
}

bool is_near(const Label& a, const Label& b, std::int64_t tolerance) {
  return std::abs(a.line - b.line) <= tolerance && (tolerance > 0 || (a.sub == 0) == (b.sub == 0));
}

/// Pairs what has no pair yet, each call with the first prediction that is near: in the order of
/// lines this makes as many pairs as there can be.
template <class Fits>
void pair_up(std::vector<Side>& truth, std::vector<Side>& predicted, const Fits& fits) {
  for (std::size_t i = 0; i < truth.size(); ++i) {
    for (std::size_t k = 0; k < predicted.size() && !truth[i].pair; ++k) {
      if (!predicted[k].pair && fits(truth[i], predicted[k])) {
        truth[i].pair = k;
        predicted[k].pair = i;
      }
    }
  }
}

double equal_share(const std::vector<std::string>& a, const std::vector<std::string>& b) {
  const std::size_t longer = std::max(a.size(), b.size());
  double equal = 0;
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    equal += a[i] == b[i] ? 1 : 0;
  }
  return longer == 0 ? 1 : equal / static_cast<double>(longer);
}

}  // namespace

Matching match_strictly(const Record& truth, const Record& predicted, const ScoreOptions& options) {
  std::vector<Side> calls = side_of(truth);
  std::vector<Side> answers = side_of(predicted);
  // At a distance of 0 first: what is exactly right is never given away to a neighbour.
  for (const std::int64_t tolerance : {std::int64_t{0}, options.tolerance}) {
    pair_up(calls, answers, [&](const Side& a, const Side& b) {
      return a.call.name == b.call.name && is_near(a.label, b.label, tolerance);
    });
  }
  pair_up(calls, answers, [&](const Side& a, const Side& b) {
    return is_near(a.label, b.label, options.tolerance);
  });
  Matching matching;
  for (const Side& call : calls) {
    Outcome outcome{call.call.name, call.pair.has_value()};
    if (call.pair && answers[*call.pair].call.name == call.call.name) {
      outcome.named = true;
      outcome.args = equal_share(call.call.arguments, answers[*call.pair].call.arguments);
    }
    if (!options.common_core || is_common_core(outcome.name)) {
      matching.calls.push_back(std::move(outcome));
    }
  }
  for (const Side& answer : answers) {
    if (!options.common_core || is_common_core(answer.call.name)) {
      matching.predictions.emplace_back(
          answer.call.name, answer.pair && calls[*answer.pair].call.name == answer.call.name);
    }
  }
  return matching;
}

}  // namespace orrery::mpi_calls
