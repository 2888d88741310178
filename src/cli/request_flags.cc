// SPDX-License-Identifier: Apache-2.0
#include "cli/request_flags.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/reader.h"
#include "cli/step_flags.h"
#include "serving/requests/trace.h"

namespace orrery::cli {
namespace {

constexpr double kMostRate = 1e9;
constexpr std::int64_t kMostTurns = 10'000;

void take_length(const char* flag, const std::optional<std::string>& text, requests::Length& into,
                 Error& mistakes) {
  if (!text) {
    return;
  }
  if (auto parsed = requests::parse_length(*text)) {
    into = *parsed;
  } else {
    mistakes.add(wrong_value(flag, *text, parsed.error()));
  }
}

}  // namespace

std::int64_t number_or_none(const char* flag, const std::optional<std::string>& text,
                            Error& mistakes) {
  const std::int64_t number = text ? parse_integer(*text).value_or(-1) : 0;
  if (number >= 0 && number <= kMostRequests) {
    return number;
  }
  mistakes.add(wrong_value(flag, *text, fmt::format("0 to {}", kMostRequests)));
  return 0;
}

double positive_number(const char* flag, const std::optional<std::string>& text, double otherwise,
                       Error& mistakes) {
  double number = otherwise;
  take(flag, text, number, mistakes);
  if (text && (!(number > 0) || number > kMostRate)) {
    mistakes.add(wrong_value(flag, *text, "a number above 0, at most 1e9"));
    return otherwise;
  }
  return number;
}

void RequestFlags::declare(Options& options) {
  options.value(
      "--trace", trace_, "FILE",
      "requests of a trace instead of drawn ones; where it has no times, --rate says when");
  options.value("--rate", rate_, "NUMBER", "requests per second, or inf: all at once; default 1");
  options.value("--arrival", arrival_, "NAME", "poisson (default), gamma, fixed or infinite");
  options.value("--burstiness", burstiness_, "NUMBER", "shape of gamma arrivals; default 1");
  options.value("--input", input_, "TOKENS", "length of prompts; default 1024");
  options.value("--output", output_, "TOKENS", "length of answers; default 128");
  options.value("--requests", requests_, "INT", "how many; default 1000, of a trace all");
  options.value("--shared-prefix", shared_, "INT", "tokens in front of every prompt, shared");
  options.value("--prefix-groups", groups_, "INT", "different shared prefixes; default 1");
  options.value("--stages", stages_, "LIST",
                "rates for a time each instead of --rate, such as '2:60 s,10:30 s'");
  options.value("--turns", turns_, "INT",
                "of a session: each prompt is all before it and a new input; default 1");
  options.value("--think", think_, "TIME",
                "of a session's user, or a client's of --max-concurrency, after an answer");
  options.value("--adapters", adapters_, "INT",
                "different adapters (LoRA), drawn by session; for an engine with lora slots");
  options.value("--seed", seed_, "INT", "of drawn requests; default 0");
  options.alias("--request-rate", "--rate");  // those of vLLM's and SGLang's benchmarks
  options.alias("--num-prompts", "--requests");
  options.alias("--random-input-len", "--input");
  options.alias("--random-output-len", "--output");
  options.alias("--random-prefix-len", "--shared-prefix");
}

requests::Generator RequestFlags::generator(Error& mistakes) const {
  requests::Generator generator;
  const bool at_once = rate_ == "inf";
  if (at_once && !arrival_) {
    generator.arrival = requests::Arrival::infinite;
  } else {
    generator.rate = positive_number("--rate", rate_, generator.rate, mistakes);
  }
  generator.burstiness = positive_number("--burstiness", burstiness_, 1, mistakes);
  take("--arrival", arrival_, generator.arrival, mistakes);
  const auto needs = [&](const char* flag, bool given, bool used, const char* what) {
    if (given && !used) {
      mistakes.add({flag, {}, {}, std::string("is for ") + what});
    }
  };
  needs("--burstiness", burstiness_.has_value(), generator.arrival == requests::Arrival::gamma,
        "--arrival gamma");
  needs("--rate", rate_.has_value() && !at_once, generator.arrival != requests::Arrival::infinite,
        "requests that do not come all at once");
  needs("--rate", rate_.has_value(), !stages_.has_value(), "loads without --stages");
  needs("--stages", stages_.has_value(), generator.arrival != requests::Arrival::infinite,
        "requests that do not come all at once");
  needs("--prefix-groups", groups_.has_value(), shared_.has_value(), "--shared-prefix");
  take_length("--input", input_, generator.input, mistakes);
  take_length("--output", output_, generator.output, mistakes);
  if (stages_) {
    if (auto stages = requests::parse_stages(*stages_)) {
      generator.stages = std::move(*stages);
    } else {
      mistakes.add(wrong_value("--stages", *stages_, stages.error()));
    }
    generator.count = kMostRequests;
  }
  generator.turns = whole_number("--turns", turns_, 1, kMostTurns, mistakes);
  generator.think = think(mistakes);
  generator.adapters = number_or_none("--adapters", adapters_, mistakes);
  generator.count = whole_number("--requests", requests_, generator.count, kMostRequests, mistakes);
  generator.shared_prefix = number_or_none("--shared-prefix", shared_, mistakes);
  generator.prefix_groups = whole_number("--prefix-groups", groups_, 1, kMostRequests, mistakes);
  generator.seed = static_cast<std::uint64_t>(number_or_none("--seed", seed_, mistakes));
  return generator;
}

Time RequestFlags::think(Error& mistakes) const {
  Time think{0};
  take("--think", think_, think, mistakes);
  return think;
}

requests::Trace RequestFlags::read(const requests::Generator& generator, Error& mistakes) const {
  if (!trace_) {
    std::vector<requests::Request> drawn;
    if (mistakes.empty()) {
      drawn = requests::generate(generator);
      constexpr Time kLatest = from_seconds(57.0 * 24 * 3600);  // as of traces
      const auto late = [&](const requests::Request& each) { return each.arrival > kLatest; };
      if (std::any_of(drawn.begin(), drawn.end(), late)) {
        mistakes.add(wrong_value("--rate", rate_.value_or("1"),
                                 "one at which all --requests arrive within 57 days"));
      }
    }
    return {.kind = {}, .requests = std::move(drawn), .left_out = 0};
  }
  requests::Trace trace = collect(requests::load_trace(*trace_), mistakes);
  refuse_given({{"--input", input_},
                {"--output", output_},
                {"--shared-prefix", shared_},
                {"--prefix-groups", groups_},
                {"--stages", stages_},
                {"--turns", turns_},
                {"--adapters", adapters_}},
               "contradicts --trace, which says it", mistakes);
  if (trace.timed) {
    refuse_given({{"--rate", rate_},
                  {"--arrival", arrival_},
                  {"--burstiness", burstiness_},
                  {"--seed", seed_}},
                 "contradicts --trace, which says when requests come", mistakes);
  } else if (!rate_ && !arrival_) {
    refuse_given({{"--seed", seed_}}, "is for --rate or --arrival: this --trace has no times",
                 mistakes);
  } else if (mistakes.empty()) {
    requests::Generator drawn = generator;
    drawn.count = static_cast<std::int64_t>(trace.requests.size());
    const std::vector<requests::Request> times = requests::generate(drawn);
    for (std::size_t i = 0; i < times.size(); ++i) {
      trace.requests[i].arrival = times[i].arrival;
    }
  }
  if (requests_ && trace.requests.size() > static_cast<std::size_t>(generator.count)) {
    trace.requests.resize(static_cast<std::size_t>(generator.count));
  }
  return trace;
}

void RequestFlags::refuse_arrivals(const std::string& reason, Error& mistakes) const {
  refuse_given({{"--trace", trace_},
                {"--rate", rate_},
                {"--arrival", arrival_},
                {"--burstiness", burstiness_},
                {"--stages", stages_},
                {"--turns", turns_},
                {"--think", think_},
                {"--adapters", adapters_},
                {"--requests", requests_}},
               "contradicts " + reason, mistakes);
}

}  // namespace orrery::cli
