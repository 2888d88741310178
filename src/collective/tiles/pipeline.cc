// SPDX-License-Identifier: Apache-2.0
#include "collective/tiles/pipeline.h"

#include <fmt/format.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <memory>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "base/format.h"
#include "collective/tiles/rank.h"

namespace orrery::tiles {
namespace {

constexpr std::int64_t kMostRanks = 16;
constexpr std::int64_t kMostSide = 1 << 14;
constexpr std::int64_t kMostElements = std::int64_t{1} << 24;  // of a summand or a factor
constexpr std::int64_t kMostRuns = 1000;

Error mistakes_of(const Problem& problem) {
  Error error;
  const auto in_range = [&](const char* field, std::int64_t value, std::int64_t least,
                            std::int64_t most) {
    if (value < least || value > most) {
      error.add({{},
                 field,
                 std::to_string(value),
                 fmt::format("a whole number from {} to {}", least, most)});
    }
  };
  in_range("ranks", problem.ranks, 2, kMostRanks);
  in_range("rows", problem.rows, 1, kMostSide);
  in_range("columns", problem.columns, 1, kMostSide);
  in_range("inner", problem.inner, 1, kMostSide);
  in_range("tiles", problem.tiles, 1, kMostSide);
  in_range("repeat", problem.repeat, 1, kMostRuns);
  if (!(problem.bandwidth.value() >= 0)) {
    error.add({{}, "bandwidth", to_string(problem.bandwidth), "a rate of 0 or more"});
  }
  if (!error.empty()) {
    return error;
  }
  if (problem.rows % problem.all_tiles() != 0) {
    error.add({{},
               "rows",
               std::to_string(problem.rows),
               fmt::format("a multiple of ranks x tiles = {}", problem.all_tiles())});
  }
  for (const std::int64_t elements : {problem.rows * problem.columns, problem.rows * problem.inner,
                                      problem.columns * problem.inner}) {
    if (elements > kMostElements) {
      error.add({{},
                 "rows x columns x inner",
                 fmt::format("{} x {} x {}", problem.rows, problem.columns, problem.inner),
                 fmt::format("matrices of at most {} elements", kMostElements)});
      break;
    }
  }
  return error;
}

/// The sockets of a ring: rank r writes to out[r], which in[r + 1] reads.
class Ring {
 public:
  explicit Ring(std::int64_t ranks) : in_(static_cast<std::size_t>(ranks), -1), out_(in_) {}
  Ring(const Ring&) = delete;
  Ring& operator=(const Ring&) = delete;
  ~Ring() {
    for (const std::vector<int>* ends : {&in_, &out_}) {
      for (const int end : *ends) {
        if (end >= 0) {
          ::close(end);
        }
      }
    }
  }

  Result<void> open() {
    for (std::size_t rank = 0; rank < out_.size(); ++rank) {
      std::array<int, 2> pair{};
      if (::socketpair(AF_UNIX, SOCK_STREAM, 0, pair.data()) != 0) {
        return fail("a pair of sockets cannot be had: " +
                    std::error_code(errno, std::generic_category()).message());
      }
      out_[rank] = pair[0];
      in_[(rank + 1) % in_.size()] = pair[1];
    }
    return {};
  }

  int in(std::size_t rank) const { return in_[rank]; }
  int out(std::size_t rank) const { return out_[rank]; }

 private:
  std::vector<int> in_;
  std::vector<int> out_;
};

struct OneRun {
  Measured measured;
  bool equal = true;
  std::int64_t updates = 0;
  std::int64_t triggered = 0;
};

double seconds(Clock::duration duration) {
  return std::chrono::duration<double>(duration).count();
}

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return std::ranges::equal(a, b, {}, std::bit_cast<std::uint32_t, float>,
                            std::bit_cast<std::uint32_t, float>);
}

Result<OneRun> run_once(const Problem& problem, const Operands& operands,
                        const std::vector<float>& sum, bool overlaps) {
  Ring ring(problem.ranks);
  if (auto opened = ring.open(); !opened) {
    return fail(std::move(opened.error()));
  }
  const auto count = static_cast<std::size_t>(problem.ranks);
  std::vector<std::unique_ptr<Rank>> ranks;
  for (std::size_t r = 0; r < count; ++r) {
    ranks.push_back(std::make_unique<Rank>(problem, operands, static_cast<std::int64_t>(r),
                                           ring.in(r), ring.out(r)));
  }
  std::vector<Rank::Moments> moments(count);
  std::barrier<> all(static_cast<std::ptrdiff_t>(count));
  {
    std::vector<std::jthread> threads;
    for (std::size_t r = 0; r < count; ++r) {
      threads.emplace_back([&, r] { ranks[r]->receive(); });
      threads.emplace_back([&, r] { ranks[r]->send(); });
      threads.emplace_back([&, r] { moments[r] = ranks[r]->produce(all, overlaps); });
    }
  }
  OneRun run;
  Clock::time_point start = Clock::time_point::max();
  for (const Rank::Moments& moment : moments) {
    start = std::min(start, moment.started);
  }
  for (std::size_t r = 0; r < count; ++r) {
    if (ranks[r]->failed()) {
      return fail("a socket between ranks broke");
    }
    Measured& most = run.measured;
    most.product_s = std::max(most.product_s, seconds(moments[r].made - start));
    most.reduced_s = std::max(most.reduced_s, seconds(moments[r].reduced - start));
    most.gathered_s = std::max(most.gathered_s, seconds(moments[r].gathered - start));
    run.equal = run.equal && same_bits(ranks[r]->result(), sum);
    run.updates += ranks[r]->updates();
    run.triggered += ranks[r]->triggered();
  }
  return run;
}

Measured median_of(std::vector<Measured> runs) {
  std::ranges::sort(runs, {}, &Measured::gathered_s);
  return runs[runs.size() / 2];
}

}  // namespace

double recurrence(double product, double hop, std::int64_t ranks, std::int64_t tiles) {
  std::vector<double> arrived(static_cast<std::size_t>(tiles), 0.0);
  const double piece = product / static_cast<double>(ranks * tiles);
  double link_free = 0;
  for (std::int64_t k = 0; k + 1 < ranks; ++k) {
    for (std::int64_t t = 0; t < tiles; ++t) {
      double& there = arrived[static_cast<std::size_t>(t)];
      const double made = piece * static_cast<double>(k * tiles + t + 1);
      link_free = std::max({made, there, link_free}) + hop / static_cast<double>(tiles);
      there = link_free;
    }
  }
  return std::max(product, link_free);
}

Result<Outcome> run(const Problem& problem) {
  if (Error mistakes = mistakes_of(problem); !mistakes.empty()) {
    return fail(std::move(mistakes));
  }
  const Operands operands(problem);
  const std::vector<float> sum = operands.sum();
  Outcome outcome;
  std::array<std::vector<Measured>, 2> runs;  // unfused, overlapped
  for (std::int64_t i = 0; i < problem.repeat; ++i) {
    for (const bool overlaps : {false, true}) {
      const auto one = run_once(problem, operands, sum, overlaps);
      if (!one) {
        return fail(one.error());
      }
      runs[overlaps ? 1 : 0].push_back(one->measured);
      outcome.equal = outcome.equal && one->equal;
      outcome.updates = one->updates;
      outcome.triggered = one->triggered;
    }
  }
  outcome.unfused = median_of(std::move(runs[0]));
  outcome.overlapped = median_of(std::move(runs[1]));
  outcome.hop_s = (outcome.unfused.reduced_s - outcome.unfused.product_s) /
                  static_cast<double>(problem.ranks - 1);
  outcome.recurrence_s =
      recurrence(outcome.unfused.product_s, outcome.hop_s, problem.ranks, problem.tiles);
  return outcome;
}

}  // namespace orrery::tiles
