// SPDX-License-Identifier: Apache-2.0
#include "report/serving.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>
#include <type_traits>
#include <vector>

#include "base/csv.h"
#include "base/format.h"
#include "report/trust.h"
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

/// Returns a line per part: mean, and of the slowest hundredth.
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

void declare_times(const serving::Statistics& times, Fields& fields) {
  fields.field("mean", "seconds", times.mean);
  fields.field("median", "seconds", times.median);
  fields.field("std", "standard deviation, seconds", times.deviation);
  fields.field("p90", "seconds", times.p90);
  fields.field("p95", "seconds", times.p95);
  fields.field("p99", "seconds", times.p99);
}

void declare_parts(std::string_view of, const std::array<serving::TimePart, 4>& parts,
                   const std::array<std::string_view, 4>& sentences, Fields& fields) {
  for (std::size_t i = 0; i < parts.size(); ++i) {
    fields.field(fmt::format("{}_{}_s", of, parts[i].name), sentences[i], parts[i].mean);
    fields.field(fmt::format("{}_{}_slowest_s", of, parts[i].name),
                 "the same of the slowest hundredth", parts[i].slowest);
  }
}

void declare_rates(const serving::Run& run, const serving::Metrics& m, Fields& fields) {
  fields.when(run.rate > 0, "request_rate",
              "requests per second sent; of --search rate the one found; left out of traces, "
              "stages and all at once",
              run.rate);
  fields.field("duration_s", "first request sent to last token", m.duration);
  fields.field("input_tokens", "of prompts", m.input_tokens);
  fields.field("output_tokens", "generated", m.output_tokens);
  fields.field("requests_per_s", "over duration_s", m.requests_per_s);
  fields.field("output_tokens_per_s", "over duration_s", m.output_tokens_per_s);
  fields.field("total_tokens_per_s", "those of prompts, too", m.total_tokens_per_s);
  fields.field("peak_output_tokens_per_s", "of the seconds from the first request on",
               m.peak_tokens_per_s);
  fields.field("peak_concurrent_requests", "sent and not answered", m.peak_concurrent);
  fields.perhaps("goodput_requests_per_s", "that keep --slo, if given", m.goodput);
  fields.field("output_tokens_per_s_per_device", "over duration_s",
               m.output_tokens_per_s_per_device);
  fields.field("output_tokens_per_s_per_user", "1 / mean TPOT", m.output_tokens_per_s_per_user);
}

void declare_latencies(const serving::Run& run, const serving::Metrics& m, Fields& fields) {
  const auto times = [&](std::string_view name, std::string_view sentence,
                         const serving::Statistics& statistics) {
    fields.object(name, sentence, [&] { declare_times(statistics, fields); });
  };
  times("ttft_s", "time to first token", m.ttft);
  times("tpot_s", "time per output token after the first", m.tpot);
  times("itl_s", "time between two tokens", m.itl);
  times("e2e_s", "sent to last token", m.e2e);
  times("queue_s", "in the engine's queue to scheduled", m.queue);
  const bool prefill = run.engine.prefill > 0;
  fields.part("moved_s",
              "with prefill: from a request's first token until its keys and values are where it "
              "decodes",
              prefill ? std::optional(m.moved) : std::nullopt,
              [&](const serving::Statistics& moved) { declare_times(moved, fields); });
  fields.when(prefill, "moved_bytes", "with prefill", run.moved_bytes);
  fields.when(run.engine.network.has_value(), "network",
              "--network: how collectives and transfers share links",
              run.engine.network ? std::string(name_of(*run.engine.network)) : std::string());
  const serving::Breakdown where = serving::breakdown(run);
  declare_parts("ttft", where.ttft,
                {"from the client to the queue; mean", "waiting for lower KV tiers; mean",
                 "until a step computes some of it; mean", "until the first token; mean"},
                fields);
  declare_parts("tpot", where.tpot,
                {"per token: KV on its way to where it decodes; mean",
                 "per token: from a preemption to the next token; mean",
                 "per token: in steps that compute prompts, too; mean",
                 "per token: in steps of decodes alone; mean"},
                fields);
}

/// Declares what only some engines have.
void declare_kinds(const serving::Run& run, Fields& fields) {
  const bool scales = run.engine.scales();
  fields.when(scales, "engines_started", "beside the first ones; of a fleet that scales",
              run.started);
  fields.when(scales, "engine_seconds", "engines x time held; of a fleet that scales", run.held);
  const bool tiers = !run.kv_tiers.empty();
  fields.when(tiers, "fetched_tokens", "of the cached ones, those of lower tiers; with tiers",
              run.totals.fetched_tokens);
  fields.when(tiers, "written_blocks", "KV blocks written to lower tiers; with tiers",
              run.written_blocks);
  const bool adapters = run.engine.adapter_slots > 0;
  fields.when(adapters, "adapter_bytes", "of an adapter on a device; with lora", run.adapter);
  fields.when(adapters, "copied_adapters", "to the memory of the accelerators; with lora",
              run.totals.copied_adapters);
  fields.when(adapters, "copying_s", "steps waited for adapters; with lora", run.copying);
  fields.when(run.images > 0, "images", "encoded; with images", run.images);
  fields.when(run.images > 0, "encoding_s", "of steps; with images", run.encoding);
}

void declare_totals(const serving::Run& run, const serving::Metrics& m, Fields& fields) {
  const scheduler::Totals& totals = run.totals;
  fields.field("preemptions", "of requests whose blocks others needed", totals.preemptions);
  fields.field("cached_tokens", "found in the prefix cache", totals.cached_tokens);
  fields.field("lost_tokens", "computed, then dropped by preemptions", totals.lost_tokens);
  fields.field("scheduled_tokens", "computed by steps", totals.scheduled_tokens);
  const bool drafts = run.engine.drafts() > 0;
  fields.when(drafts, "drafted_tokens", "with speculation: guesses that were computed",
              totals.drafted_tokens);
  fields.when(drafts, "accepted_tokens", "with speculation: guesses that were right",
              totals.accepted_tokens);
  fields.field("steps", "of all engines", totals.ticks);
  fields.field("busy_s", "of the accelerators", run.busy);
  fields.field("mean_kv_use", "share of blocks, over the duration", m.mean_kv_use);
  fields.field("peak_kv_use", "share of blocks", run.peak_kv_use);
  fields.field("peak_running", "requests in a step of an engine, or of all engines once per second",
               m.peak_running);
  fields.field("weights_bytes", "of a device", run.weights);
  fields.field("kv_bytes_per_token", "of a device", run.cache.per_token);
  fields.field("state_bytes", "recurrent, of a request on a device", run.cache.state);
}

void declare_energy(const serving::Metrics& m, Fields& fields) {
  const bool known = m.energy.has_value();
  const double joules = known ? m.energy->value() : 0;
  const auto tokens = static_cast<double>(m.output_tokens);
  fields.perhaps("energy_j", "where the machine states its power", m.energy);
  fields.when(known, "power_w",
              "watts of all devices, mean over duration_s; where the machine states its power",
              known ? serving::mean_power(m) : Power(0));
  fields.when(known, "energy_per_output_token_j",
              "joules of all devices; where the machine states its power",
              tokens > 0 ? joules / tokens : 0);
  fields.when(known, "output_tokens_per_j", "tokens; where the machine states its power",
              joules > 0 ? tokens / joules : 0);
  fields.perhaps("cost_per_million_tokens", "dollars, where it states a price",
                 m.cost_per_million_tokens);
}

void declare_fused(const serving::Run& run, const serving::Metrics& unfused, Fields& fields) {
  fields.list(
      "fused",
      {"with fused communication: kinds of places of a step of max_num_batched_tokens",
       "a kind of place"},
      run.fused,
      [&](const step::FusedPlace& one) {
        fields.field("pair", "of parallelisms; cp: attention over shared prompts", one.pair);
        fields.field("places", "in a step", one.places);
        fields.field("before", "collectives without fusion", one.before);
        fields.field("after", "with it", one.after);
        fields.field("time_before_s", "of one place, alone, norms between excluded",
                     one.time_before);
        fields.field("time_after_s", "with fusion", one.time_after);
        fields.field("reason", "why not; empty: fused", one.reason);
      },
      true);
  fields.part("unfused", "the same requests on the engine without fused communication; means",
              std::optional(unfused), [&](const serving::Metrics& m) {
                fields.field("ttft_s", "time to first token", m.ttft.mean);
                fields.field("tpot_s", "time per output token", m.tpot.mean);
                fields.field("e2e_s", "sent to last token", m.e2e.mean);
                fields.field("output_tokens_per_s", "over the duration", m.output_tokens_per_s);
              });
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
  text += run.images > 0 ? value_line("Encoding images (s):", to_seconds(run.encoding)) : "";
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

void declare(const serving::Run& run, const serving::Metrics& m, const serving::Metrics* unfused,
             const machine::Machine* machine, Fields& fields) {
  fields.field("model", "its name", run.model);
  fields.field("machine", "its name", run.machine);
  fields.field("devices", "accelerators", run.devices);
  fields.field("engine", "name and version of its defaults", run.engine.name);
  fields.field("requests", "served", m.completed);
  fields.field("refused", "longer than the engine takes", run.refused);
  fields.field("rejected", "by the router's limit", run.rejected);
  fields.field("replicas", "engines alike; with prefill those that decode", run.engine.replicas);
  fields.field("prefill", "engines that compute prompts only", run.engine.prefill);
  fields.field("kv_blocks", "for requests, of a device", run.kv_blocks);
  declare_rates(run, m, fields);
  declare_latencies(run, m, fields);
  declare_kinds(run, fields);
  declare_totals(run, m, fields);
  declare_energy(m, fields);
  if (machine != nullptr) {
    declare_served_trust(fields, run, m, *machine);
  }
  fields.object("timing", "of this computer: differs from run to run",
                [&] { fields.field("wall_s", "seconds that the simulation took", run.wall_s); });
  if (unfused != nullptr) {
    declare_fused(run, *unfused, fields);
  }
  fields.values("notes", {"what was chosen where nothing was stated", "a sentence"}, run.notes);
}

std::string serving_csv(const serving::Run& run, const serving::Metrics& m) {
  FlatFields flat;
  declare(run, m, nullptr, nullptr, flat);
  std::vector<std::string> names;
  std::vector<std::string> values;
  for (const FlatFields::Value& value : flat.flat()) {
    names.push_back(value.name);
    values.push_back(value.text);
  }
  return csv_line(names) + csv_line(values);
}

}  // namespace orrery::report
