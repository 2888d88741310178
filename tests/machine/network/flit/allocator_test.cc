// SPDX-License-Identifier: Apache-2.0
#include "machine/network/flit/allocator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <set>

namespace orrery::flit {
namespace {

using Requests = std::vector<SparseAllocator::Request>;
using ::testing::UnorderedElementsAre;

constexpr auto kAllocators = std::to_array<Allocator>(
    {Allocator::separable_input_first, Allocator::separable_output_first, Allocator::islip,
     Allocator::wavefront, Allocator::pim, Allocator::loa, Allocator::max_size});

Requests match(SparseAllocator& with, const Requests& requests, Allocator allocator,
               int iterations = 1) {
  static Random random(7);
  for (const SparseAllocator::Request& request : requests) {
    with.ask(request);
  }
  return with.match(allocator, iterations, random);
}

SparseAllocator square(std::uint32_t size, Arbiter arbiter = Arbiter::round_robin) {
  SparseAllocator made;
  made.resize(std::vector<std::uint32_t>(size), std::vector<std::uint32_t>(size), arbiter);
  return made;
}

/// Returns the most pairs of requests that share no side, by trying all.
std::size_t most_of(const Requests& requests, std::size_t from, std::set<std::uint32_t> inputs,
                    std::set<std::uint32_t> outputs) {
  if (from == requests.size()) {
    return 0;
  }
  const std::size_t without = most_of(requests, from + 1, inputs, outputs);
  if (inputs.insert(requests[from].input).second && outputs.insert(requests[from].output).second) {
    return std::max(without, 1 + most_of(requests, from + 1, inputs, outputs));
  }
  return without;
}

TEST(FlitAllocator, AWavefrontGrantsDiagonalsInTurn) {
  // 3 x 3, all ask for all: diagonal 0 is (0,0), (1,2), (2,1), the next (0,1), (1,0), (2,2).
  Requests all;
  for (std::uint32_t i = 0; i < 9; ++i) {
    all.push_back({i / 3, i % 3});
  }
  SparseAllocator wavefront = square(3);
  using R = SparseAllocator::Request;
  EXPECT_THAT(match(wavefront, all, Allocator::wavefront),
              UnorderedElementsAre(R{0, 0}, R{1, 2}, R{2, 1}));
  EXPECT_THAT(match(wavefront, all, Allocator::wavefront),
              UnorderedElementsAre(R{0, 1}, R{1, 0}, R{2, 2}));
  EXPECT_THAT(match(wavefront, all, Allocator::wavefront),
              UnorderedElementsAre(R{0, 2}, R{2, 0}, R{1, 1}));
}

TEST(FlitAllocator, RoutersHaveDiagonalsOfTheirOwn) {
  // Router 0 with inputs 0, 1 and outputs 0, 1, router 1 with 2, 3: what router 0 does does not
  // move the diagonal of router 1.
  SparseAllocator wavefront;
  wavefront.resize({0, 0, 1, 1}, {0, 0, 1, 1}, Arbiter::round_robin);
  const Requests first{{0, 0}, {0, 1}, {1, 0}, {1, 1}};
  const Requests second{{2, 2}, {2, 3}, {3, 2}, {3, 3}};
  using R = SparseAllocator::Request;
  match(wavefront, first, Allocator::wavefront);
  EXPECT_THAT(match(wavefront, second, Allocator::wavefront),
              UnorderedElementsAre(R{2, 2}, R{3, 3}));
  EXPECT_THAT(match(wavefront, first, Allocator::wavefront),
              UnorderedElementsAre(R{0, 1}, R{1, 0}));
}

TEST(FlitAllocator, ALonelyOutputIsAskedFirst) {
  // Input 0 asks 0 and 1, input 1 asks 0: output 1 is asked once, so input 0 leaves 0 to input 1.
  // Separable, input 0 takes 0, which is first in turn, and input 1 gets nothing.
  const Requests requests{{0, 0}, {0, 1}, {1, 0}};
  SparseAllocator loa = square(2);
  using R = SparseAllocator::Request;
  EXPECT_THAT(match(loa, requests, Allocator::loa), UnorderedElementsAre(R{0, 1}, R{1, 0}));
  SparseAllocator plain = square(2);
  EXPECT_THAT(match(plain, requests, Allocator::separable_input_first),
              UnorderedElementsAre(R{0, 0}));
}

TEST(FlitAllocator, AMatrixArbiterGrantsTheOneThatHasWaitedLongest) {
  // Three inputs for one output: at first the highest. Input 1 does not ask in the third round and
  // comes first in the fourth; round robin, behind input 0, would go on with 1, 2 and 0.
  SparseAllocator matrix = square(3, Arbiter::matrix);
  const auto winner = [&](const Requests& requests) {
    return match(matrix, requests, Allocator::separable_input_first).front().input;
  };
  EXPECT_EQ(winner({{0, 0}, {1, 0}, {2, 0}}), 2U);
  EXPECT_EQ(winner({{0, 0}, {1, 0}, {2, 0}}), 1U);
  EXPECT_EQ(winner({{0, 0}, {2, 0}}), 0U);
  EXPECT_EQ(winner({{1, 0}, {2, 0}}), 2U);
  EXPECT_EQ(winner({{0, 0}, {1, 0}, {2, 0}}), 1U);
}

TEST(FlitAllocator, PrioritiesComeBeforeTurns) {
  // Input 0 is first in turn; input 1 has the higher priority at the output. Of two outputs input 1
  // takes the one of higher priority there.
  SparseAllocator plain = square(2);
  const auto matches =
      match(plain, {{0, 0, 0, 1}, {1, 0, 1, 2}, {1, 1, 0, 0}}, Allocator::separable_input_first);
  ASSERT_EQ(matches.size(), 1U);
  EXPECT_EQ(matches.front().input, 1U);
  EXPECT_EQ(matches.front().output, 0U);
}

TEST(FlitAllocator, ParallelIterativeMatchingIsFair) {
  // Two inputs for one output: each wins half of 10,000 times, within 3 standard deviations of 50.
  SparseAllocator pim = square(2);
  int first = 0;
  for (int i = 0; i < 10'000; ++i) {
    first += match(pim, {{0, 0}, {1, 0}}, Allocator::pim).front().input == 0 ? 1 : 0;
  }
  EXPECT_NEAR(first, 5000, 150);
}

RC_GTEST_PROP(FlitAllocator, MatchesAreRequestsAndShareNoSide, ()) {
  const auto size = *rc::gen::inRange<std::uint32_t>(1, 6);
  SparseAllocator allocator = square(size);
  const Allocator by = *rc::gen::elementOf(kAllocators);
  for (int round = 0; round < 3; ++round) {
    const auto cells = *rc::gen::container<std::vector<std::uint32_t>>(
        *rc::gen::inRange<std::size_t>(0, 12), rc::gen::inRange<std::uint32_t>(0, size * size));
    Requests requests;
    for (const std::uint32_t cell : std::set(cells.begin(), cells.end())) {
      requests.push_back({cell / size, cell % size});
    }
    const Requests matches = match(allocator, requests, by, by == Allocator::pim ? 100 : 1);
    std::set<std::uint32_t> inputs;
    std::set<std::uint32_t> outputs;
    for (const auto& one : matches) {
      RC_ASSERT(std::find(requests.begin(), requests.end(), one) != requests.end());
      RC_ASSERT(inputs.insert(one.input).second && outputs.insert(one.output).second);
    }
    RC_ASSERT(requests.empty() || !matches.empty());
    const bool leaves_none =
        by == Allocator::wavefront || by == Allocator::max_size || by == Allocator::pim;
    for (const auto& one : requests) {
      RC_ASSERT(!leaves_none || inputs.contains(one.input) || outputs.contains(one.output));
    }
    if (by == Allocator::max_size) {
      RC_ASSERT(matches.size() == most_of(requests, 0, {}, {}));
    }
  }
}

}  // namespace
}  // namespace orrery::flit
