// SPDX-License-Identifier: Apache-2.0
#include "collective/layout/pairs.h"

#include <cassert>

namespace orrery::layout {
namespace {

constexpr Placement kCopies = Placement::replicate();
constexpr Placement kSums = Placement::partial();
constexpr Placement kTokens = Placement::shard(0);
constexpr Placement kFeatures = Placement::shard(1);
constexpr Placement kHere = Placement::only(0);
constexpr Placement kNext = Placement::only(1);

/// From layout to layout; an empty one: the work.
std::vector<Step> sequence(const std::vector<Layout>& layouts) {
  std::vector<Step> steps;
  bool worked = false;
  Layout at = layouts.front();
  for (std::size_t i = 1; i < layouts.size(); ++i) {
    if (layouts[i].empty()) {
      steps.push_back({Operation::apply, at, at, false});
      worked = true;
      continue;
    }
    auto step = step_between(at, layouts[i]);
    assert(step && "published sequences consist of steps");
    step->after_work = worked;
    steps.push_back(*step);
    at = layouts[i];
  }
  return steps;
}

}  // namespace

PairCase pair_case(Pair pair, const PairSizes& sizes) {
  PairCase one;
  Problem& problem = one.problem;
  const bool experts = pair == Pair::tp_ep || pair == Pair::pp_ep || pair == Pair::sp_ep;
  const bool stages = pair == Pair::tp_pp || pair == Pair::pp_ep || pair == Pair::sp_pp;
  const std::int64_t dp = experts ? sizes.dp : 1;
  const bool sp = pair == Pair::sp_pp || pair == Pair::sp_ep;
  problem.mesh.axes = {{sp ? "sp" : "tp", sizes.ranks / dp}};
  problem.shape = {{sizes.tokens * dp, sizes.width}, sizes.element};
  if (experts) {
    problem.mesh.axes.push_back({"dp", dp});
    problem.work = Work{{{sizes.tokens * dp, sizes.width * sizes.copies}, sizes.element}, {1}};
  }
  if (stages) {
    problem.mesh.axes.push_back({"pp", 2});
  }
  std::vector<Layout> layouts;
  switch (pair) {
    case Pair::tp_sp:
      layouts = {{kSums}, {kCopies}, {kTokens}};
      break;
    case Pair::tp_pp:
      layouts = {{kSums, kHere}, {kCopies, kHere}, {kTokens, kNext}, {kCopies, kNext}};
      break;
    case Pair::tp_ep:
      layouts = {
          {kSums, kTokens}, {kCopies, kTokens}, {kTokens, kTokens}, {}, {kFeatures, kFeatures}};
      break;
    case Pair::pp_ep:
      layouts = {{kCopies, kTokens, kHere},
                 {kCopies, kTokens, kNext},
                 {kTokens, kTokens, kNext},
                 {},
                 {kFeatures, kFeatures, kNext}};
      break;
    case Pair::sp_pp:
      layouts = {{kTokens, kHere}, {kCopies, kHere}, {kCopies, kNext}, {kFeatures, kNext}};
      break;
    case Pair::sp_ep:
      layouts = {
          {kTokens, kTokens}, {kCopies, kTokens}, {kTokens, kTokens}, {}, {kFeatures, kFeatures}};
      break;
  }
  one.base = sequence(layouts);
  problem.from = layouts.front();
  problem.to = layouts.back();
  return one;
}

}  // namespace orrery::layout
