// SPDX-License-Identifier: Apache-2.0
/// The flags of `orrery serve` that say which requests there are.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/command.h"
#include "serving/requests/generate.h"
#include "serving/requests/trace.h"

namespace orrery::cli {

inline constexpr std::int64_t kMostRequests = 20'000'000;

/// Returns 0, also when not given, or a whole number up to kMostRequests.
std::int64_t number_or_none(const char* flag, const std::optional<std::string>& text,
                            Error& mistakes);
/// Returns a number above 0, at most 1e9.
double positive_number(const char* flag, const std::optional<std::string>& text, double otherwise,
                       Error& mistakes);

class RequestFlags {
 public:
  void declare(Options& options);
  /// Returns the generator of the requests that are drawn without a trace.
  requests::Generator generator(Error& mistakes) const;
  /// Returns the requests of --trace, or drawn ones as a trace of no kind.
  requests::Trace read(const requests::Generator& generator, Error& mistakes) const;
  bool has_trace() const { return trace_.has_value(); }
  bool has_rate() const { return rate_.has_value(); }
  bool has_stages() const { return stages_.has_value(); }
  bool has_turns() const { return turns_.has_value(); }
  const std::optional<std::string>& output() const { return output_; }
  /// Returns the time of --think.
  Time think(Error& mistakes) const;
  /// Refuses flags that say when requests come, or how many: they contradict `reason`.
  void refuse_arrivals(const std::string& reason, Error& mistakes) const;

 private:
  std::optional<std::string> trace_;
  std::optional<std::string> rate_;
  std::optional<std::string> arrival_;
  std::optional<std::string> burstiness_;
  std::optional<std::string> input_;
  std::optional<std::string> output_;
  std::optional<std::string> requests_;
  std::optional<std::string> shared_;
  std::optional<std::string> groups_;
  std::optional<std::string> seed_;
  std::optional<std::string> stages_;
  std::optional<std::string> turns_;
  std::optional<std::string> think_;
  std::optional<std::string> adapters_;
};

}  // namespace orrery::cli
