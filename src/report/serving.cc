// SPDX-License-Identifier: Apache-2.0
#include "report/serving.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <string_view>
#include <type_traits>
#include <vector>

#include "base/csv.h"
#include "base/format.h"
#include "report/json_writer.h"
#include "report/node_json.h"
#include "report/timing.h"
#include "serving/breakdown.h"

namespace orrery::report {
namespace {

constexpr std::size_t kBlockWidth = 50;

std::string banner(const std::string& title, char fill) {
  const std::size_t room = kBlockWidth - std::min(kBlockWidth, title.size());
  return std::string(room / 2, fill) + title + std::string(room - room / 2, fill) + "\n";
}

template <class T>
std::string value_line(std::string_view name, const T& value) {
  if constexpr (std::is_floating_point_v<T>) {
    return fmt::format("{:<40} {:<10.2f}\n", name, value);
  } else {
    return fmt::format("{:<40} {:<10}\n", name, value);
  }
}

double milliseconds(Time time) {
  return 1e3 * to_seconds(time);
}

std::string times(const std::string& title, std::string_view name,
                  const serving::Statistics& statistics) {
  std::string text = banner(title, '-');
  const auto line = [&](std::string_view which, Time time) {
    text += value_line(fmt::format("{} {} (ms):", which, name), milliseconds(time));
  };
  line("Mean", statistics.mean);
  line("Median", statistics.median);
  line("P90", statistics.p90);
  line("P95", statistics.p95);
  line("P99", statistics.p99);
  return text;
}

/// A line per part: mean, and of the slowest hundredth.
std::string part_lines(const std::string& title, const std::array<serving::TimePart, 4>& all) {
  std::string text = banner(title, '-');
  for (const serving::TimePart& part : all) {
    if (part.mean > Time(0) || part.slowest > Time(0)) {
      text += fmt::format("{:<40} {:<10.2f} {:.2f}\n", fmt::format("{} (ms):", part.name),
                          milliseconds(part.mean), milliseconds(part.slowest));
    }
  }
  return text;
}

/// Where the time goes, and what only some engines have.
template <class Scalar>
void visit_parts(const serving::Run& run, Scalar scalar) {
  if (run.engine.network) {
    scalar("network", name_of(*run.engine.network));
  }
  const serving::Breakdown where = serving::breakdown(run);
  for (const auto& [of, all] : {std::pair{"ttft", &where.ttft}, {"tpot", &where.tpot}}) {
    for (const serving::TimePart& part : *all) {
      scalar(fmt::format("{}_{}_s", of, part.name), to_seconds(part.mean));
      scalar(fmt::format("{}_{}_slowest_s", of, part.name), to_seconds(part.slowest));
    }
  }
  if (run.engine.scales()) {
    scalar("engines_started", run.started);
    scalar("engine_seconds", to_seconds(run.held));
  }
  if (!run.kv_tiers.empty()) {
    scalar("fetched_tokens", run.totals.fetched_tokens);
    scalar("written_blocks", run.written_blocks);
  }
  if (run.engine.adapter_slots > 0) {
    scalar("adapter_bytes", run.adapter.value());
    scalar("copied_adapters", run.totals.copied_adapters);
    scalar("copying_s", to_seconds(run.copying));
  }
}

template <class Scalar>
void visit_totals(const serving::Run& run, Scalar scalar) {
  scalar("preemptions", run.totals.preemptions);
  scalar("cached_tokens", run.totals.cached_tokens);
  scalar("lost_tokens", run.totals.lost_tokens);
  scalar("scheduled_tokens", run.totals.scheduled_tokens);
  if (run.engine.drafts() > 0) {
    scalar("drafted_tokens", run.totals.drafted_tokens);
    scalar("accepted_tokens", run.totals.accepted_tokens);
  }
}

/// Calls scalar(name, value) and statistics(name, value) for everything that programs read.
template <class Scalar, class Times>
void visit_run(const serving::Run& run, const serving::Metrics& m, Scalar scalar,
               Times statistics) {
  scalar("model", run.model);
  scalar("machine", run.machine);
  scalar("devices", run.devices);
  scalar("engine", run.engine.name);
  scalar("requests", m.completed);
  scalar("refused", run.refused);
  scalar("rejected", run.rejected);
  scalar("replicas", run.engine.replicas);
  scalar("prefill", run.engine.prefill);
  scalar("kv_blocks", run.kv_blocks);
  if (run.rate > 0) {
    scalar("request_rate", run.rate);
  }
  scalar("duration_s", to_seconds(m.duration));
  scalar("input_tokens", m.input_tokens);
  scalar("output_tokens", m.output_tokens);
  scalar("requests_per_s", m.requests_per_s);
  scalar("output_tokens_per_s", m.output_tokens_per_s);
  scalar("total_tokens_per_s", m.total_tokens_per_s);
  scalar("peak_output_tokens_per_s", m.peak_tokens_per_s);
  scalar("peak_concurrent_requests", m.peak_concurrent);
  if (m.goodput) {
    scalar("goodput_requests_per_s", *m.goodput);
  }
  scalar("output_tokens_per_s_per_device", m.output_tokens_per_s_per_device);
  scalar("output_tokens_per_s_per_user", m.output_tokens_per_s_per_user);
  statistics("ttft_s", m.ttft);
  statistics("tpot_s", m.tpot);
  statistics("itl_s", m.itl);
  statistics("e2e_s", m.e2e);
  statistics("queue_s", m.queue);
  if (run.engine.prefill > 0) {
    statistics("moved_s", m.moved);
    scalar("moved_bytes", run.moved_bytes.value());
  }
  visit_parts(run, scalar);
  visit_totals(run, scalar);
  scalar("steps", run.totals.ticks);
  scalar("busy_s", to_seconds(run.busy));
  scalar("mean_kv_use", m.mean_kv_use);
  scalar("peak_kv_use", run.peak_kv_use);
  scalar("peak_running", m.peak_running);
  scalar("weights_bytes", run.weights.value());
  scalar("kv_bytes_per_token", run.cache.per_token.value());
  scalar("state_bytes", run.cache.state.value());
  if (m.energy) {
    scalar("energy_j", m.energy->value());
    scalar("power_w", serving::mean_power(m).value());
    scalar("energy_per_output_token_j",
           m.output_tokens > 0 ? m.energy->value() / static_cast<double>(m.output_tokens) : 0);
    scalar("output_tokens_per_j",
           m.energy->value() > 0 ? static_cast<double>(m.output_tokens) / m.energy->value() : 0);
  }
  if (m.cost_per_million_tokens) {
    scalar("cost_per_million_tokens", m.cost_per_million_tokens->value());
  }
}

template <class Visit>
void visit_statistics(const serving::Statistics& statistics, Visit visit) {
  visit("mean", to_seconds(statistics.mean));
  visit("median", to_seconds(statistics.median));
  visit("std", to_seconds(statistics.deviation));
  visit("p90", to_seconds(statistics.p90));
  visit("p95", to_seconds(statistics.p95));
  visit("p99", to_seconds(statistics.p99));
}

std::string speculation_lines(const scheduler::Totals& totals) {
  if (totals.drafts == 0) {
    return {};
  }
  const auto accepted = static_cast<double>(totals.accepted_tokens);
  return banner("Speculative Decoding", '-') +
         value_line("Acceptance rate (%):",
                    100 * accepted / static_cast<double>(totals.drafted_tokens)) +
         value_line("Acceptance length:", 1 + accepted / static_cast<double>(totals.drafts)) +
         value_line("Drafts:", totals.drafts) + value_line("Draft tokens:", totals.drafted_tokens) +
         value_line("Accepted tokens:", totals.accepted_tokens);
}

/// Returns the lines on what the engine did.
std::string engine_lines(const serving::Run& run, const serving::Metrics& m) {
  std::string text = banner(" Engine ", '=');
  if (run.refused > 0) {
    text += value_line("Refused requests (too long):", run.refused);
  }
  if (run.rejected > 0) {
    text += value_line("Rejected requests (router):", run.rejected);
  }
  text += value_line("Output tokens/s per device:", m.output_tokens_per_s_per_device);
  text += value_line("Output tokens/s per user:", m.output_tokens_per_s_per_user);
  text += value_line("Mean time in queue (ms):", milliseconds(m.queue.mean));
  text += value_line("P99 time in queue (ms):", milliseconds(m.queue.p99));
  if (run.engine.prefill > 0) {
    text += value_line("Mean time of moving KV (ms):", milliseconds(m.moved.mean));
    text += value_line("P99 time of moving KV (ms):", milliseconds(m.moved.p99));
    text += value_line("KV moved (GB):", static_cast<double>(run.moved_bytes.value()) / 1e9);
  }
  text += value_line("KV blocks:", run.kv_blocks);
  text += value_line("Mean KV use (%):", 100 * m.mean_kv_use);
  text += value_line("Peak KV use (%):", 100 * run.peak_kv_use);
  text += value_line("Peak running requests:", m.peak_running);
  text += value_line("Preemptions:", run.totals.preemptions);
  text += value_line("Prompt tokens found in cache:", run.totals.cached_tokens);
  if (run.engine.scales()) {
    text += value_line("Engines started:", run.started);
    text += value_line("Engine time (s):", to_seconds(run.held));
  }
  if (!run.kv_tiers.empty()) {
    text += value_line("Of them fetched from lower tiers:", run.totals.fetched_tokens);
    text += value_line("KV blocks written to lower tiers:", run.written_blocks);
  }
  if (run.engine.adapter_slots > 0) {
    text += value_line("Adapters copied:", run.totals.copied_adapters);
    text += value_line("Time of copying adapters (s):", to_seconds(run.copying));
  }
  text += value_line("Engine steps:", run.totals.ticks);
  if (m.energy && m.output_tokens > 0) {
    text += value_line("Power of all accelerators (W):", serving::mean_power(m).value());
    text += value_line("Energy per output token (J):",
                       m.energy->value() / static_cast<double>(m.output_tokens));
  }
  if (m.cost_per_million_tokens) {
    text += value_line("Dollars per million output tokens:", m.cost_per_million_tokens->value());
  }
  return text;
}

/// Returns the lines on an engine that fuses communication.
std::string fused_lines(const serving::Run& run, const serving::Metrics& m,
                        const serving::Metrics& unfused) {
  std::string text = banner(" Fused communication ", '=');
  for (const step::FusedPlace& one : run.fused) {
    text += one.pair + ": ";
    if (one.places > 0) {
      text += fmt::format("{} of {} tokens, {} -> {}, {} -> {}: ", one.places,
                          run.engine.max_num_batched_tokens, one.before, one.after,
                          to_string(one.time_before), to_string(one.time_after));
    }
    text += one.reason.empty() ? "fused\n" : "not, " + one.reason + "\n";
  }
  const auto line = [&](const char* name, double before, double after) {
    text += fmt::format("{:<40} {:.2f} -> {:.2f}\n", name, before, after);
  };
  line("Mean TTFT (ms), without -> with:", milliseconds(unfused.ttft.mean),
       milliseconds(m.ttft.mean));
  line("Mean TPOT (ms), without -> with:", milliseconds(unfused.tpot.mean),
       milliseconds(m.tpot.mean));
  line("Output tokens/s, without -> with:", unfused.output_tokens_per_s, m.output_tokens_per_s);
  return text;
}

void write_fused(const serving::Run& run, const serving::Metrics& unfused, JsonWriter& json) {
  json.key("fused").begin_array();
  for (const step::FusedPlace& one : run.fused) {
    json.begin_object();
    json.key("pair").value(one.pair).key("places").value(one.places);
    json.key("before").value(one.before).key("after").value(one.after);
    json.key("time_before_s").value(to_seconds(one.time_before));
    json.key("time_after_s").value(to_seconds(one.time_after));
    json.key("reason").value(one.reason);
    json.end_object();
  }
  json.end_array();
  json.key("unfused").begin_object();
  for (const auto& [name, value] : {std::pair{"ttft_s", to_seconds(unfused.ttft.mean)},
                                    {"tpot_s", to_seconds(unfused.tpot.mean)},
                                    {"e2e_s", to_seconds(unfused.e2e.mean)},
                                    {"output_tokens_per_s", unfused.output_tokens_per_s}}) {
    json.key(name).value(value);
  }
  json.end_object();
}

}  // namespace

std::string rate_headline(const serving::RateFound& found, const std::string& limits) {
  const std::string rate =
      found.limited ? fmt::format("{:.4g} requests/s", found.rate) : "unknown, too few requests";
  return fmt::format("Largest rate: {} ({:.2f} % within {}; {} runs)\n\n", rate,
                     100 * found.attained, limits, found.runs);
}

std::string serving_text(const serving::Run& run, const serving::Metrics& m,
                         const serving::Metrics* unfused) {
  std::string text =
      fmt::format("{} on {} {} by {}\n\n", run.model, run.devices, run.machine, run.engine.name);
  text += banner(" Serving Benchmark Result ", '=');
  text += value_line("Successful requests:", m.completed);
  text += value_line("Failed requests:", run.refused + run.rejected);
  if (run.max_concurrency > 0) {
    text += value_line("Maximum request concurrency:", run.max_concurrency);
  }
  if (run.rate > 0) {
    text += value_line("Request rate configured (RPS):", run.rate);
  }
  text += value_line("Benchmark duration (s):", to_seconds(m.duration));
  text += value_line("Total input tokens:", m.input_tokens);
  text += value_line("Total generated tokens:", m.output_tokens);
  text += value_line("Request throughput (req/s):", m.requests_per_s);
  if (m.goodput) {
    text += value_line("Request goodput (req/s):", *m.goodput);
  }
  text += value_line("Output token throughput (tok/s):", m.output_tokens_per_s);
  text += value_line("Peak output token throughput (tok/s):", m.peak_tokens_per_s);
  text += value_line("Peak concurrent requests:", static_cast<double>(m.peak_concurrent));
  text += value_line("Total token throughput (tok/s):", m.total_tokens_per_s);
  text += times("Time to First Token", "TTFT", m.ttft);
  text += times("Time per Output Token (excl. 1st token)", "TPOT", m.tpot);
  text += times("Inter-token Latency", "ITL", m.itl);
  text += times("End-to-end Latency", "E2EL", m.e2e);
  text += speculation_lines(run.totals);
  const serving::Breakdown where = serving::breakdown(run);
  text += banner(" Where it goes: mean, slowest 1 % ", '=');
  text += part_lines("Time to First Token", where.ttft);
  text += part_lines("Time per Output Token", where.tpot);
  text += engine_lines(run, m);
  text += unfused != nullptr ? fused_lines(run, m, *unfused) : std::string();
  text += std::string(kBlockWidth, '=') + "\n";
  for (const std::string& note : run.notes) {
    text += "note: " + note + "\n";
  }
  return text;
}

std::string serving_json(const serving::Run& run, const serving::Metrics& m,
                         const serving::Metrics* unfused) {
  return json_text([&](JsonWriter& json) {
    json.begin_object();
    visit_run(
        run, m, [&](std::string_view name, const auto& value) { json.key(name).value(value); },
        [&](std::string_view name, const serving::Statistics& statistics) {
          json.key(name).begin_object();
          visit_statistics(statistics, [&](std::string_view which, double value) {
            json.key(which).value(value);
          });
          json.end_object();
        });
    if (unfused != nullptr) {
      write_fused(run, *unfused, json);
    }
    json.key("notes").begin_array();
    for (const std::string& note : run.notes) {
      json.value(note);
    }
    json.end_array();
    write_timing(json, run.wall_s);
    json.end_object();
  });
}

std::string serving_csv(const serving::Run& run, const serving::Metrics& m) {
  std::vector<std::string> names;
  std::vector<std::string> values;
  visit_run(
      run, m,
      [&](std::string_view name, const auto& value) {
        names.emplace_back(name);
        values.push_back(fmt::format("{}", value));
      },
      [&](std::string_view name, const serving::Statistics& statistics) {
        visit_statistics(statistics, [&](std::string_view which, double value) {
          names.push_back(fmt::format("{}.{}", name, which));
          values.push_back(fmt::format("{}", value));
        });
      });
  names.emplace_back("timing.wall_s");
  values.push_back(fmt::format("{}", run.wall_s));
  return csv_line(names) + csv_line(values);
}

}  // namespace orrery::report
