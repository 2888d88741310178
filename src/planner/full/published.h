// SPDX-License-Identifier: Apache-2.0
/// A published plan beside the best one for the same work on the same devices.
///
///   work     model, batch, sequence and all that changes results or names the software: number
///            formats, kernels, documents, costs of the host. They stay as published
///   open     what space.h chooses, overlaps, buckets and shards
///
/// The published plan is no part of the search: that the answer is no slower is what is tested.
#pragma once

#include <map>
#include <string>
#include <utility>

#include "planner/full/search.h"
#include "study/validate.h"

namespace orrery::full {

struct PublishedComparison {
  std::string key;
  std::string machine;
  plan::Plan plan;    ///< the published one
  Time published{0};  ///< simulated, whether it fits or not
  double mfu = 0;
  bool fits = false;    ///< by our model of memory, with no reserve
  std::string problem;  ///< why it cannot run; then there is nothing to compare
  std::string refused;  ///< why no plan was found, or the published one is not accepted as one
  Answer answer;

  bool compared() const { return problem.empty() && !answer.top.empty(); }
  /// Above 1: so much faster is the best plan.
  double gain() const { return compared() ? published / answer.top.front().step_time : 0; }
};

/// Compares runs one after the other; runs that differ in what is open alone share one search.
class PublishedPlans {
 public:
  /// Takes the options but for the reserve, which does not count: it is 0.
  explicit PublishedPlans(Options options) : options_(std::move(options)) {
    options_.reserve = Bytes(0);
  }

  PublishedComparison compare(const study::PublishedRun& run);

 private:
  Options options_;
  std::map<std::string, Result<Answer>> known_;  ///< by the work; only looked up
};

}  // namespace orrery::full
