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

/// Returns the steps from layout to layout; an empty layout stands for the work.
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

/// The layouts that a pair goes through; an empty one: the work.
struct Published {
  std::vector<Layout> base;
  std::vector<Layout> fused;
};

Published layouts_of(Pair pair) {
  switch (pair) {
    case Pair::tp_sp:
      return {{{kSums}, {kCopies}, {kTokens}}, {{kSums}, {kTokens}}};
    case Pair::tp_pp:
      return {{{kSums, kHere}, {kCopies, kHere}, {kTokens, kNext}, {kCopies, kNext}},
              {{kSums, kHere}, {kTokens, kHere}, {kFeatures, kNext}, {kCopies, kNext}}};
    case Pair::tp_ep:
      return {
          {{kSums, kTokens}, {kCopies, kTokens}, {kTokens, kTokens}, {}, {kFeatures, kFeatures}},
          {{kSums, kTokens}, {kTokens, kTokens}, {}, {kFeatures, kFeatures}}};
    case Pair::pp_ep:
      return {{{kCopies, kTokens, kHere},
               {kCopies, kTokens, kNext},
               {kTokens, kTokens, kNext},
               {},
               {kFeatures, kFeatures, kNext}},
              {{kCopies, kTokens, kHere},
               {kTokens, kTokens, kHere},
               {},
               {kFeatures, kFeatures, kNext}}};
    case Pair::sp_pp:
      return {{{kTokens, kHere}, {kCopies, kHere}, {kCopies, kNext}, {kFeatures, kNext}},
              {{kTokens, kHere}, {kFeatures, kNext}}};
    case Pair::sp_ep:
      return {
          {{kTokens, kTokens}, {kCopies, kTokens}, {kTokens, kTokens}, {}, {kFeatures, kFeatures}},
          {{kTokens, kTokens}, {}, {kFeatures, kFeatures}}};
  }
  return {};
}

}  // namespace

std::optional<WrongSize> wrong_size(const PairSizes& sizes) {
  if (sizes.ranks % sizes.dp != 0) {
    return WrongSize{"dp", "a number that divides ranks"};
  }
  if (sizes.element < Bytes(1) || sizes.element > Bytes(1024)) {
    return WrongSize{"element", "1 B to 1024 B"};
  }
  constexpr double kMostPairElements = 1e15;
  if (static_cast<double>(sizes.dp) * static_cast<double>(sizes.tokens) *
          static_cast<double>(sizes.width) * static_cast<double>(sizes.copies) >
      kMostPairElements) {
    return WrongSize{"tokens", "dp groups x tokens x width x top-k of at most 1e15 elements"};
  }
  return std::nullopt;
}

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
  const Published published = layouts_of(pair);
  one.base = sequence(published.base);
  one.fused = sequence(published.fused);
  problem.from = published.base.front();
  problem.to = published.base.back();
  return one;
}

}  // namespace orrery::layout
