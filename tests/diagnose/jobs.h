// SPDX-License-Identifier: Apache-2.0
// Telemetry of jobs with injected faults.
#pragma once

#include <cmath>
#include <cstdint>
#include <functional>
#include <map>
#include <numbers>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "diagnose/diagnose.h"

namespace orrery::diagnose::testing {

/// Standard normal, the same everywhere (that of <random> is the library's affair): Box-Muller.
inline double normal(std::mt19937_64& random) {
  const auto uniform = [&] { return (static_cast<double>(random() >> 11) + 0.5) * 0x1p-53; };
  return std::sqrt(-2 * std::log(uniform())) * std::cos(2 * std::numbers::pi * uniform());
}

/// 20 messages of 1 MB between all pairs at 10 GB/s, times log-normal noise of 15 %.
inline Telemetry messages_of(std::int64_t ranks, std::uint64_t seed,
                             const std::function<double(std::int64_t, std::int64_t)>& slower) {
  constexpr int kSamples = 20;
  constexpr double kNoise = 0.15;
  std::mt19937_64 random(seed);
  Telemetry telemetry;
  telemetry.paths = {""};
  for (int sample = 0; sample < kSamples; ++sample) {
    for (std::int64_t source = 0; source < ranks; ++source) {
      for (std::int64_t target = 0; target < ranks; ++target) {
        if (source != target) {
          const double noise = std::exp(kNoise * normal(random));
          telemetry.messages.push_back({source, target, Bytes(1'000'000),
                                        from_seconds(1e-4 * slower(source, target) * noise), 0});
        }
      }
    }
  }
  return telemetry;
}

/// Ranks that compute and then meet in their communicators, one after the other, step after step:
/// a collective begins when the last of its ranks has entered and takes 1 ms.
class Job {
 public:
  explicit Job(std::vector<Communicator> communicators) {
    telemetry_.communicators = std::move(communicators);
  }
  Time& clock(std::int64_t rank) { return clocks_[rank]; }
  void compute(std::int64_t rank, Time time) {
    clocks_[rank] += time;
    computed_[rank] += time;
  }
  /// The host gives the rank's core to another program.
  void lose(std::int64_t rank, Time time) { clocks_[rank] += time; }
  /// Operations from here on say what their ranks have computed.
  void say_computed() { says_computed_ = true; }
  void meet(std::size_t communicator, std::int64_t sequence) {
    Time begin{0};
    const std::vector<std::int64_t>& ranks = telemetry_.communicators[communicator].ranks;
    for (const std::int64_t rank : ranks) {
      begin = std::max(begin, clocks_[rank]);
    }
    for (const std::int64_t rank : ranks) {
      enter(communicator, sequence, rank).ended = begin + 1_ms;
      clocks_[rank] = begin + 1_ms;
    }
  }
  /// Adds an operation without an end.
  Operation& enter(std::size_t communicator, std::int64_t sequence, std::int64_t rank) {
    telemetry_.operations.push_back({communicator, rank, sequence, "all_reduce", Bytes(1024),
                                     clocks_[rank], std::nullopt, std::nullopt});
    Operation& made = telemetry_.operations.back();
    const Time computed = std::exchange(computed_[rank], Time(0));
    if (says_computed_) {
      made.computed = computed;
    }
    return made;
  }
  void record_until(Time time) {
    for (const std::int64_t rank : telemetry_.ranks()) {
      telemetry_.recorded_until[rank] = time;
    }
  }
  /// Every rank's clock tells another time.
  void skew_clocks() {
    for (Operation& call : telemetry_.operations) {
      const Time skew = 7_s * call.rank;
      call.entered += skew;
      if (call.ended) {
        *call.ended += skew;
      }
    }
    for (auto& [rank, until] : telemetry_.recorded_until) {
      until += 7_s * rank;
    }
  }
  const Telemetry& telemetry() const { return telemetry_; }

 private:
  Telemetry telemetry_;
  std::map<std::int64_t, Time> clocks_;
  std::map<std::int64_t, Time> computed_;  ///< since the operation before
  bool says_computed_ = false;
};

}  // namespace orrery::diagnose::testing
