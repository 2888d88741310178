// SPDX-License-Identifier: Apache-2.0
#include "cli/request_flags.h"

#include <fmt/format.h>

#include "cli/step_flags.h"
#include "serving/requests/trace.h"

namespace orrery::cli {
namespace {

constexpr double kMostRate = 1e9;

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
  return text == "0" ? 0 : whole_number(flag, text, 0, kMostRequests, mistakes);
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
  options.value("--trace", trace_, "FILE", "requests of a trace instead of drawn ones");
  options.value("--rate", rate_, "NUMBER", "requests per second; default 1");
  options.value("--arrival", arrival_, "NAME", "poisson (default), gamma, fixed or infinite");
  options.value("--burstiness", burstiness_, "NUMBER", "shape of gamma arrivals; default 1");
  options.value("--input", input_, "TOKENS", "length of prompts; default 1024");
  options.value("--output", output_, "TOKENS", "length of answers; default 128");
  options.value("--requests", requests_, "INT", "how many; default 1000, of a trace all");
  options.value("--shared-prefix", shared_, "INT", "tokens in front of every prompt, shared");
  options.value("--prefix-groups", groups_, "INT", "different shared prefixes; default 1");
  options.value("--seed", seed_, "INT", "of drawn requests; default 0");
}

requests::Generator RequestFlags::generator(Error& mistakes) const {
  requests::Generator generator;
  generator.rate = positive_number("--rate", rate_, generator.rate, mistakes);
  generator.burstiness = positive_number("--burstiness", burstiness_, 1, mistakes);
  take("--arrival", arrival_, generator.arrival, mistakes);
  take_length("--input", input_, generator.input, mistakes);
  take_length("--output", output_, generator.output, mistakes);
  generator.count = whole_number("--requests", requests_, generator.count, kMostRequests, mistakes);
  generator.shared_prefix = number_or_none("--shared-prefix", shared_, mistakes);
  generator.prefix_groups = whole_number("--prefix-groups", groups_, 1, kMostRequests, mistakes);
  generator.seed = static_cast<std::uint64_t>(number_or_none("--seed", seed_, mistakes));
  return generator;
}

std::vector<requests::Request> RequestFlags::read(const requests::Generator& generator,
                                                  Error& mistakes) const {
  if (!trace_) {
    return mistakes.empty() ? requests::generate(generator) : std::vector<requests::Request>{};
  }
  for (const auto& [flag, given] : {std::pair{"--rate", &rate_},
                                    {"--arrival", &arrival_},
                                    {"--burstiness", &burstiness_},
                                    {"--input", &input_},
                                    {"--output", &output_},
                                    {"--shared-prefix", &shared_},
                                    {"--prefix-groups", &groups_},
                                    {"--seed", &seed_}}) {
    if (*given) {
      mistakes.add({flag, {}, {}, "contradicts --trace, which says it"});
    }
  }
  std::vector<requests::Request> read = collect(requests::load_trace(*trace_), mistakes).requests;
  if (requests_ && read.size() > static_cast<std::size_t>(generator.count)) {
    read.resize(static_cast<std::size_t>(generator.count));
  }
  return read;
}

void RequestFlags::refuse_arrivals(const std::string& reason, Error& mistakes) const {
  for (const auto& [flag, given] : {std::pair{"--trace", &trace_},
                                    {"--rate", &rate_},
                                    {"--arrival", &arrival_},
                                    {"--burstiness", &burstiness_},
                                    {"--requests", &requests_}}) {
    if (*given) {
      mistakes.add({flag, {}, {}, "contradicts " + reason});
    }
  }
}

}  // namespace orrery::cli
