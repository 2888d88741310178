// SPDX-License-Identifier: Apache-2.0
#include "serving/http/prometheus.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace orrery::http {
namespace {

constexpr auto kTtft =
    std::to_array<double>({0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75,
                           1,     2.5,   5,    7.5,  10,   20,   40,   80,  160,  640, 2560});
constexpr auto kGap = std::to_array<double>({0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4,
                                             0.5, 0.75, 1, 2.5, 5, 7.5, 10, 20, 40, 80});
constexpr auto kRequest = std::to_array<double>(
    {0.3, 0.5, 0.8, 1, 1.5, 2, 2.5, 5, 10, 15, 20, 30, 40, 50, 60, 120, 240, 480, 960, 1920, 7680});
constexpr auto kTokens =
    std::to_array<double>({1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000, 20000,
                           50000, 100000, 200000, 500000, 1000000});

std::string escaped(const std::string& text) {
  std::string result;
  for (const char letter : text) {
    if (letter == '\n') {
      result += "\\n";
      continue;
    }
    result += letter == '"' || letter == '\\' ? "\\" : "";
    result += letter;
  }
  return result;
}

std::string simple(const char* type, const std::string& name, const std::string& help,
                   const std::string& labels, double value) {
  return fmt::format("# HELP {0} {1}\n# TYPE {0} {2}\n{0}{{{3}}} {4}\n", name, help, type, labels,
                     value);
}

}  // namespace

void Histogram::add(double value) {
  const auto at = std::ranges::lower_bound(bounds_, value) - bounds_.begin();
  ++counts_[static_cast<std::size_t>(at)];
  sum_ += value;
}

std::string Histogram::text(const std::string& name, const std::string& help,
                            const std::string& labels) const {
  std::string text = fmt::format("# HELP {0} {1}\n# TYPE {0} histogram\n", name, help);
  std::int64_t count = 0;
  for (std::size_t i = 0; i < counts_.size(); ++i) {
    count += counts_[i];
    text += fmt::format("{}_bucket{{{},le=\"{}\"}} {}\n", name, labels,
                        i < bounds_.size() ? fmt::format("{:.6g}", bounds_[i]) : "+Inf", count);
  }
  return text +
         fmt::format("{0}_count{{{1}}} {2}\n{0}_sum{{{1}}} {3}\n", name, labels, count, sum_);
}

EngineMetrics::EngineMetrics()
    : ttft_(kTtft),
      gap_(kGap),
      e2e_(kRequest),
      queue_(kRequest),
      prefill_(kRequest),
      decode_(kRequest),
      inference_(kRequest),
      prompt_tokens_(kTokens),
      generation_tokens_(kTokens) {}

void EngineMetrics::on_tokens(std::int64_t tokens, Time gap) {
  generated_ += tokens;
  if (gap > Time(0)) {
    gap_.add(to_seconds(gap));
  }
}

void EngineMetrics::on_first(Time ttft) {
  ttft_.add(to_seconds(ttft));
}

void EngineMetrics::on_end(const serving::Served& served) {
  ++answered_;
  prompts_ += served.input;
  queried_ += served.input;
  hit_ += served.cached;
  preemptions_ += served.preemptions;
  e2e_.add(to_seconds(served.latency()));
  queue_.add(to_seconds(served.scheduled - served.queued));
  prefill_.add(to_seconds(served.first - served.scheduled));
  decode_.add(to_seconds(served.last - served.first));
  inference_.add(to_seconds(served.last - served.scheduled));
  prompt_tokens_.add(static_cast<double>(served.input));
  generation_tokens_.add(static_cast<double>(served.output));
}

std::string EngineMetrics::text(const std::string& model, const serving::Live& live) const {
  const std::string labels = fmt::format("engine=\"0\",model_name=\"{}\"", escaped(model));
  const serving::Live::Load load = live.load();
  const serving::Engine& engine = live.run().engine;
  const auto gauge = [&](const char* name, const char* help, double value) {
    return simple("gauge", std::string("vllm:") + name, help, labels, value);
  };
  const auto counter = [&](const char* name, const char* help, std::int64_t value,
                           const std::string& more = "") {
    return simple("counter", fmt::format("vllm:{}_total", name), help, labels + more,
                  static_cast<double>(value));
  };
  const auto histogram = [&](const Histogram& its, const char* name, const char* help) {
    return its.text(std::string("vllm:") + name, help, labels);
  };
  std::string text =
      gauge("num_requests_running", "Requests in steps.", static_cast<double>(load.running));
  text += gauge("num_requests_waiting", "Requests in queues.", static_cast<double>(load.waiting));
  text += gauge("kv_cache_usage_perc", "Share of KV blocks in use, 1 is all.", load.kv_use);
  text += counter("prefix_cache_queries", "Tokens of prompts that were looked up.", queried_);
  text += counter("prefix_cache_hits", "Tokens of prompts that were found.", hit_);
  text += counter("num_preemptions", "Preemptions of answered requests.", preemptions_);
  text += counter("prompt_tokens", "Tokens of prompts of answered requests.", prompts_);
  text += counter("generation_tokens", "Tokens generated.", generated_);
  const std::string success = "vllm:request_success_total";
  text += fmt::format(
      "# HELP {0} Requests that ended, by reason.\n# TYPE {0} counter\n"
      "{0}{{{1},finished_reason=\"length\"}} {2}\n{0}{{{1},finished_reason=\"stop\"}} 0\n"
      "{0}{{{1},finished_reason=\"abort\"}} {3}\n{0}{{{1},finished_reason=\"error\"}} {4}\n",
      success, labels, answered_, aborted_, refused_);
  text += histogram(ttft_, "time_to_first_token_seconds", "From arrival to the first token.");
  text += histogram(gap_, "inter_token_latency_seconds", "Between passes that generate tokens.");
  text += histogram(e2e_, "e2e_request_latency_seconds", "From arrival to the last token.");
  text += histogram(queue_, "request_queue_time_seconds", "In the queue.");
  text += histogram(prefill_, "request_prefill_time_seconds", "From the queue to a first token.");
  text += histogram(decode_, "request_decode_time_seconds", "From the first token to the last.");
  text += histogram(inference_, "request_inference_time_seconds", "From the queue to the last.");
  text += histogram(prompt_tokens_, "request_prompt_tokens", "Tokens of a prompt.");
  text += histogram(generation_tokens_, "request_generation_tokens", "Tokens of an answer.");
  return text +
         simple("gauge", "vllm:cache_config_info", "Settings of the KV cache.",
                labels + fmt::format(",block_size=\"{}\",num_gpu_blocks=\"{}\","
                                     "gpu_memory_utilization=\"{}\","
                                     "enable_prefix_caching=\"{}\"",
                                     engine.block_size, live.run().kv_blocks,
                                     engine.memory_utilization, engine.prefix ? "True" : "False"),
                1);
}

}  // namespace orrery::http
