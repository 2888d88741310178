// SPDX-License-Identifier: Apache-2.0
#include "mpi/pairs.h"

#include <fmt/format.h>
#include <mpi.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <random>

#include "collective/layout/convert.h"
#include "collective/layout/pairs.h"
#include "mpi/exchange.h"

namespace orrery::mpi {
namespace {

/// An expert layer's gate: reads the whole token, depends on the order of its parts, not linear.
double gate(const std::array<std::int64_t, layout::Shape::kMost>& at,
            std::span<const double> token) {
  double sum = static_cast<double>(at[1]);
  for (const double value : token) {
    sum += value * value;
  }
  return sum * token[static_cast<std::size_t>(at[1]) % token.size()];
}

/// The same in a few steps, for what is measured: the other one takes a token's length for each of
/// its elements, minutes of a run beside seconds of messages.
double quick_gate(const std::array<std::int64_t, layout::Shape::kMost>& at,
                  std::span<const double> token) {
  return (token.front() + token.back()) * token[static_cast<std::size_t>(at[1]) % token.size()];
}

/// Returns what every rank holds first; the same numbers in every process.
std::vector<layout::Part> start(const layout::Problem& problem) {
  std::mt19937_64 random(2025);
  std::uniform_real_distribution<double> uniform(-1, 1);
  const bool sums = std::any_of(
      problem.from.begin(), problem.from.end(),
      [](const layout::Placement& p) { return p.kind == layout::Placement::Kind::partial; });
  const std::int64_t elements = problem.shape.bytes().value() / problem.shape.element.value();
  std::vector<std::vector<double>> partial_sums(
      sums ? static_cast<std::size_t>(problem.mesh.ranks()) : 1);
  for (std::vector<double>& values : partial_sums) {
    std::generate_n(std::back_inserter(values), elements, [&] { return uniform(random); });
  }
  return layout::scattered(problem.shape, problem.mesh, problem.from, partial_sums);
}

bool equal_bits(const layout::Part& a, const layout::Part& b) {
  return a.values.size() == b.values.size() &&
         std::memcmp(a.values.data(), b.values.data(), a.values.size() * sizeof(double)) == 0;
}

bool on_all_ranks(bool mine) {
  int good = mine ? 1 : 0;
  MPI_Allreduce(MPI_IN_PLACE, &good, 1, MPI_INT, MPI_LAND, MPI_COMM_WORLD);
  return good != 0;
}

/// Base and fused sequence of a pair.
struct Both {
  layout::Problem problem;
  std::vector<layout::Step> base;
  std::vector<layout::Step> fused;

  Both(layout::Pair pair, const layout::PairSizes& sizes) {
    layout::PairCase one = pair_case(pair, sizes);
    fused = layout::cheapest(one.problem, layout::byte_cost(one.problem.mesh)).value_or(one.base);
    problem = std::move(one.problem);
    base = std::move(one.base);
  }
};

/// Checks both sequences against the reference executor, at extents that divide by nothing.
bool equals_reference(layout::Pair pair, layout::PairSizes sizes, int rank) {
  sizes.tokens = 13;
  sizes.width = 7;
  const Both both(pair, sizes);
  const std::vector<layout::Part> ranks = start(both.problem);
  const auto mine = static_cast<std::size_t>(rank);
  bool equal = true;
  for (const auto* steps : {&both.base, &both.fused}) {
    const auto expected = move(ranks, *steps, both.problem, gate);
    const Exchange exchange(both.problem, *steps, rank);
    const layout::Part moved = exchange.run(ranks[mine], gate).held;
    equal = equal && expected && equal_bits(moved, (*expected)[mine]);
  }
  return on_all_ranks(equal);
}

struct Times {
  double base = 0;
  double fused = 0;
  bool equal = true;
};

/// Returns the least, over the repetitions, of the slowest rank's time: what else a host does only
/// adds to it. Both in turn, after one round each.
Times measure(const Both& both, int repeat, int rank) {
  const layout::Part mine = start(both.problem)[static_cast<std::size_t>(rank)];
  const Exchange base(both.problem, both.base, rank);
  const Exchange fused(both.problem, both.fused, rank);
  constexpr double kNever = std::numeric_limits<double>::infinity();
  Times times{.base = kNever, .fused = kNever};
  for (int round = 0; round <= repeat; ++round) {
    const Exchange::Result before = base.run(mine, quick_gate);
    const Exchange::Result after = fused.run(mine, quick_gate);
    times.equal = times.equal && equal_bits(before.held, after.held);
    std::array<double, 2> slowest{before.seconds, after.seconds};
    MPI_Allreduce(MPI_IN_PLACE, slowest.data(), 2, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    if (round > 0) {
      times.base = std::min(times.base, slowest[0]);
      times.fused = std::min(times.fused, slowest[1]);
    }
  }
  times.equal = on_all_ranks(times.equal);
  return times;
}

/// False if a result differs.
bool run_pair(const Named<layout::Pair>& pair, const PairRun& sizes, int rank, int processes) {
  const bool stages = pair.value == layout::Pair::tp_pp || pair.value == layout::Pair::pp_ep ||
                      pair.value == layout::Pair::sp_pp;
  const std::int64_t ranks = stages ? processes / 2 : processes;
  const auto say = [&](const std::string& text) {
    if (rank == 0) {
      fmt::print("{}\n", text);
      std::fflush(stdout);
    }
  };
  if (stages && processes % 2 != 0) {
    say(sizes.json ? fmt::format(R"({{"pair": "{}", "reason": "two stages need an even number"}})",
                                 pair.name)
                   : fmt::format("{:<7}two stages need an even number of processes", pair.name));
    return true;
  }
  const layout::PairSizes of{.ranks = ranks,
                             .dp = ranks % sizes.dp == 0 ? sizes.dp : 1,
                             .tokens = sizes.tokens,
                             .width = sizes.width,
                             .copies = sizes.copies,
                             .element = Bytes(sizeof(double))};
  const bool right = equals_reference(pair.value, of, rank);
  const Both both(pair.value, of);
  const Times times = measure(both, sizes.repeat, rank);
  const layout::Cost cost = layout::byte_cost(both.problem.mesh);
  const double before = total_cost(both.problem, both.base, cost);
  const double after = total_cost(both.problem, both.fused, cost);
  const bool equal = right && times.equal;
  say(fmt::format(
      fmt::runtime(sizes.json
                       ? R"({{"pair": "{}", "processes": {}, "base_bytes": {:.0f}, "fused_bytes": )"
                         R"({:.0f}, "base_s": {:.9f}, "fused_s": {:.9f}, "speedup": {:.4f}, )"
                         R"("equal": {}}})"
                       : "{:<7}{:>3}{:>12.0f}{:>12.0f}{:>12.6f}{:>12.6f}{:>9.3f}  {}"),
      pair.name, processes, before, after, times.base, times.fused, times.base / times.fused,
      equal));
  return equal;
}

}  // namespace

bool run_pairs(const PairRun& sizes) {
  int rank = 0;
  int processes = 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &processes);
  if (rank == 0 && !sizes.json) {
    fmt::print("{:<7}{:>3}{:>12}{:>12}{:>12}{:>12}{:>9}  {}\n", "pair", "np", "base_bytes",
               "fused_bytes", "base_s", "fused_s", "speedup", "equal");
  }
  bool equal = true;
  for (const Named<layout::Pair>& pair : kNames<layout::Pair>) {
    equal = run_pair(pair, sizes, rank, processes) && equal;
  }
  return equal;
}

}  // namespace orrery::mpi
