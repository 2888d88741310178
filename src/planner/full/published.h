// SPDX-License-Identifier: Apache-2.0
/// A published plan beside the best one for the same work on the same devices.
///
///   work     model, batch, sequence and all that changes results or names the software: number
///            formats, kernels, documents, costs of the host. They stay as published
///   open     what space.h chooses, overlaps, buckets and shards; of modules that run again also
///            those of the published plan, which may keep inputs in fewer bits (narrow_act)
///
/// The published plan is no part of the search: that the answer is no slower is what is tested.
///
/// A win of more than kSuspect may come from what the search's network leaves out. Both plans are
/// simulated again with messages that share links (`flow`) and a node whose kernels take
/// kStragglerFactor times as long. Fused communication, which those messages do not know, is left
/// out of both.
/// Source of the straggler: about 0.5 % of machines take some 10 % longer for the same forward pass
/// (Jiang et al., MegaScale, NSDI 2024, section 5.1; recalled).
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>

#include "planner/full/search.h"
#include "study/validate.h"

namespace orrery::full {

/// A search that ends above the published plan begins anew with so many times the estimates and
/// simulations: it is told that something faster is there, not what.
inline constexpr std::size_t kPatience = 5;
inline constexpr double kSuspect = 1.15;  ///< times as fast as published
inline constexpr double kStragglerFactor = 1.1;

/// PublishedAgain has the steps of both plans on shared links, with a straggler.
struct PublishedAgain {
  Time published{0};
  Time best{0};

  double gain() const { return published / best; }
};

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
  std::optional<PublishedAgain> again;  ///< of a suspect, where that was asked for
  std::string again_problem;            ///< why it cannot run

  bool compared() const { return problem.empty() && !answer.top.empty(); }
  /// Returns how many times faster the best plan is, if above 1; 0 if there is nothing to compare.
  double gain() const { return compared() ? published / answer.top.front().step_time : 0; }
};

/// Compares runs one after the other; runs that differ in what is open alone share one search.
class PublishedPlans {
 public:
  /// Takes the options but for the reserve, which does not count: it is 0.
  explicit PublishedPlans(Options options, bool simulate_suspects = false)
      : options_(std::move(options)), simulate_suspects_(simulate_suspects) {
    options_.reserve = Bytes(0);
  }

  PublishedComparison compare(const study::PublishedRun& run);

 private:
  Options options_;
  bool simulate_suspects_;
  std::map<std::string, Result<Answer>> known_;  ///< by the work; only looked up
};

}  // namespace orrery::full
