// SPDX-License-Identifier: Apache-2.0
/// Requests drawn from an arrival process and distributions of lengths.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/names.h"
#include "base/result.h"
#include "serving/requests/request.h"

namespace orrery::requests {

enum class Arrival : std::uint8_t { poisson, gamma, fixed, infinite };
constexpr auto named_values(Arrival) {
  return std::to_array<Named<Arrival>>({
      {Arrival::poisson, "poisson", "exponential gaps of mean 1 / rate"},
      {Arrival::gamma, "gamma", "gamma gaps of mean 1 / rate and shape burstiness (1: poisson)"},
      {Arrival::fixed, "fixed", "equal gaps of 1 / rate"},
      {Arrival::infinite, "infinite", "all at once"},
  });
}

/// "1000"; "uniform(500, 1500)", both ends included; "lognormal(1000, 0.6)", mean and sigma of the
/// logarithm.
struct Length {
  enum class Kind : std::uint8_t { fixed, uniform, lognormal };
  Kind kind = Kind::fixed;
  double first = 1;
  double second = 0;

  double mean() const { return kind == Kind::uniform ? (first + second) / 2 : first; }
};
tl::expected<Length, std::string> parse_length(std::string_view text);

/// A part of a staged load (as inference-perf's): arrivals at a rate for a time.
struct Stage {
  double rate = 1;  ///< per second
  Time duration{0};
};
/// Reads "2:60 s,10:30 s".
tl::expected<std::vector<Stage>, std::string> parse_stages(std::string_view text);

/// A size of images and the share of images that have it.
struct ImageShare {
  Image image;
  double share = 1;
};

struct Generator {
  Arrival arrival = Arrival::poisson;
  double rate = 1;  ///< per second
  /// One after the other instead of `rate`; what would arrive after the last one does not.
  std::vector<Stage> stages{};
  double burstiness = 1;
  Length input{.first = 1024};
  Length output{.first = 128};
  std::int64_t count = 1000;
  std::int64_t shared_prefix = 0;  ///< tokens in front of every input, the same within a group
  std::int64_t prefix_groups = 1;  ///< taken in turn
  /// Requests of a session: each turn's prompt is all of the turn before, its answer and an input
  /// drawn anew; it is sent `think` after that answer. `count` is of all turns.
  std::int64_t turns = 1;
  Time think{0};
  std::int64_t images = 0;  ///< of a request, behind its text
  std::vector<ImageShare> sizes{};
  std::int64_t adapters = 0;  ///< one of so many answers each session, drawn; 0: none
  std::uint64_t seed = 0;
};

/// Returns the requests in order of arrival; the turns of a session stand after its first. The
/// first request arrives at 0. Drawn gaps are stretched so that n sessions take (n - 1) / rate: a
/// run has the rate that was asked for, as one of `vllm bench serve` has (get_request's
/// normalize_factor); stages are as drawn. Requires rate > 0 unless infinite, count >= 0, groups,
/// turns >= 1, sizes if there are images.
std::vector<Request> generate(const Generator& generator);

}  // namespace orrery::requests
