// SPDX-License-Identifier: Apache-2.0
/// Counters and histograms of an engine in Prometheus' text format, under vLLM's names.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "serving/live.h"

namespace orrery::http {

/// A histogram with vLLM's bounds of its buckets.
class Histogram {
 public:
  explicit Histogram(std::span<const double> bounds)
      : bounds_(bounds), counts_(bounds.size() + 1) {}
  void add(double value);
  std::string text(const std::string& name, const std::string& help,
                   const std::string& labels) const;

 private:
  std::span<const double> bounds_;
  std::vector<std::int64_t> counts_;
  double sum_ = 0;
};

/// Counts what the engine's /metrics shows. Times are virtual. Source: vLLM 0.19,
/// docs/design/metrics.md and v1/metrics/loggers.py (names and buckets, recalled).
class EngineMetrics {
 public:
  EngineMetrics();
  /// A pass has generated so many tokens of a request; `gap`: since those before it.
  void on_tokens(std::int64_t tokens, Time gap);
  void on_first(Time ttft);
  void on_end(const serving::Served& served);
  void on_abort() { ++aborted_; }
  void on_refused() { ++refused_; }

  std::string text(const std::string& model, const serving::Live& live) const;

 private:
  Histogram ttft_;
  Histogram gap_;
  Histogram e2e_;
  Histogram queue_;
  Histogram prefill_;
  Histogram decode_;
  Histogram inference_;
  Histogram prompt_tokens_;
  Histogram generation_tokens_;
  std::int64_t prompts_ = 0;  ///< tokens
  std::int64_t generated_ = 0;
  std::int64_t answered_ = 0;
  std::int64_t aborted_ = 0;
  std::int64_t refused_ = 0;
  std::int64_t preemptions_ = 0;
  std::int64_t queried_ = 0;  ///< tokens of prompts that were looked up
  std::int64_t hit_ = 0;
};

}  // namespace orrery::http
