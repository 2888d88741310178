// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>

#include "base/beyond_time.h"
#include "base/file.h"
#include "base/reader.h"
#include "base/split.h"
#include "machine/machine.h"
#include "serving/engine.h"
#include "serving/metrics.h"
#include "serving/requests/generate.h"
#include "serving/requests/trace.h"
#include "serving/serve.h"
#include "serving/step/quantization.h"
#include "study/sweep/config_path.h"
#include "study/sweep/input_hash.h"
#include "study/sweep/kind.h"
#include "study/sweep/step.h"

namespace orrery::sweep {
namespace {

constexpr std::int64_t kMostRequests = 20'000'000;
constexpr double kMostRate = 1e9;
constexpr Time kLatest = from_seconds(57.0 * 24 * 3600);  // as of traces

/// A Service is what a point serves.
struct Service {
  zoo::Model model;
  machine::Machine machine;
  serving::Engine engine;
  requests::Generator generator;
  std::string trace;  ///< a file; empty: the requests are drawn
  std::int64_t max_concurrency = 0;
  serving::Objectives slo;
};

/// `requests: {rate, arrival, burstiness, input, output, count, ...}`, named as serve's flags.
class RequestFields {
 public:
  RequestFields(const ConfigNode& node, Service& service) : read_(node), service_(service) {}

  Result<int> finish() {
    read_arrivals();
    read_lengths();
    read_sessions();
    if (auto trace = read_.maybe<std::string>("trace")) {
      service_.trace = *trace;
      for (const ConfigField& field : read_.node().fields) {
        read_.require(field.name == "trace" || field.name == "count", field.name,
                      "nothing beside `trace`, which says it");
      }
    }
    return read_.finish(0);
  }

 private:
  std::int64_t whole(std::string_view name, std::int64_t otherwise, std::int64_t least) {
    const auto number = read_.optional<std::int64_t>(name, otherwise);
    const bool right = number >= least && number <= kMostRequests;
    read_.require(right, name, fmt::format("{} to {}", least, kMostRequests));
    return right ? number : otherwise;
  }

  double positive(std::string_view name, double otherwise) {
    const auto number = read_.optional<double>(name, otherwise);
    const bool right = number > 0 && number <= kMostRate;
    read_.require(right, name, "a number above 0, at most 1e9");
    return right ? number : otherwise;
  }

  bool has(std::string_view name) const { return read_.node().find(name) != nullptr; }

  void read_arrivals() {
    requests::Generator& generator = service_.generator;
    generator.arrival = read_.optional("arrival", generator.arrival);
    generator.rate = positive("rate", generator.rate);
    generator.burstiness = positive("burstiness", generator.burstiness);
    generator.count = whole("count", generator.count, 1);
    const bool at_once = generator.arrival == requests::Arrival::infinite;
    read_.require(!has("rate") || !at_once, "rate", "nothing where all requests come at once");
    read_.require(!has("burstiness") || generator.arrival == requests::Arrival::gamma, "burstiness",
                  "nothing without `arrival: gamma`");
    if (const auto text = read_.maybe<std::string>("stages")) {
      auto stages = requests::parse_stages(*text);
      read_.require(stages.has_value(), "stages", stages ? "" : stages.error());
      read_.require(!at_once && !has("rate"), "stages",
                    "nothing beside `rate`, nor where all come at once");
      generator.stages = stages ? std::move(*stages) : std::vector<requests::Stage>();
      generator.count = has("count") ? generator.count : kMostRequests;
    }
  }

  void read_lengths() {
    const auto take = [&](std::string_view name, requests::Length& into) {
      if (const auto text = read_.maybe<std::string>(name)) {
        const auto length = requests::parse_length(*text);
        read_.require(length.has_value(), name, length ? "" : length.error());
        into = length.value_or(into);
      }
    };
    take("input", service_.generator.input);
    take("output", service_.generator.output);
  }

  void read_sessions() {
    constexpr std::int64_t kMostTurns = 10'000;
    requests::Generator& generator = service_.generator;
    generator.shared_prefix = whole("shared_prefix", 0, 0);
    generator.prefix_groups = whole("prefix_groups", 1, 1);
    read_.require(!has("prefix_groups") || has("shared_prefix"), "prefix_groups",
                  "nothing without `shared_prefix`");
    generator.turns = whole("turns", 1, 1);
    read_.require(generator.turns <= kMostTurns, "turns", fmt::format("1 to {}", kMostTurns));
    generator.think = read_.optional("think", Time(0));
    read_.require(generator.think >= Time(0), "think", "0 or more");
    generator.adapters = whole("adapters", 0, 0);
    generator.seed = static_cast<std::uint64_t>(whole("seed", 0, 0));
  }

  Reader read_;
  Service& service_;
};

/// Returns the engine as it serves the model: what it does not state of formats the checkpoint
/// says.
serving::Engine read_engine(Reader& read) {
  const ConfigNode* model = read.child("model", true);
  const auto checkpoint = model == nullptr || model->kind != ConfigNode::Kind::map
                              ? Result<std::optional<step::Precision>>(std::nullopt)
                              : step::quantization_of(*model);
  const ConfigNode* engine = read.child("engine", false);
  ConfigNode usual;
  usual.kind = ConfigNode::Kind::map;
  return read.absorb(checkpoint.and_then([&](const std::optional<step::Precision>& formats) {
    return serving::parse_engine(engine == nullptr ? usual : *engine, formats);
  }));
}

Result<Service> read_service(const ConfigNode& description) {
  Reader read(description);
  Service service;
  if (const ConfigNode* model = read.child("model", true)) {
    service.model = read.absorb(read_model(*model));
  }
  if (const ConfigNode* machine = read.child("machine", true)) {
    service.machine = read.absorb(machine::parse_machine(*machine));
  }
  service.engine = read_engine(read);
  if (const ConfigNode* node = read.child("requests", false)) {
    read.absorb(RequestFields(*node, service).finish());
  }
  service.engine.kernels = read.optional("kernels", service.engine.kernels);
  service.max_concurrency = read.optional<std::int64_t>("max_concurrency", 0);
  read.require(service.max_concurrency >= 0, "max_concurrency", "0 for no limit, or more");
  if (const auto text = read.maybe<std::string>("slo")) {
    const auto slo = serving::parse_objectives(*text);
    read.require(slo.has_value(), "slo", slo ? "" : slo.error());
    service.slo = slo.value_or(serving::Objectives());
  }
  const requests::Generator& generator = service.generator;
  read.require(generator.adapters == 0 || service.engine.adapter_slots > 0, "requests",
               "adapters only of an engine with lora: {slots: N, rank: R}");
  read.require(generator.think == Time(0) || generator.turns > 1 || service.max_concurrency > 0,
               "requests", "think only with turns or max_concurrency, whose users think");
  return read.finish(std::move(service));
}

/// Returns a file's own text, since it may change under its name.
std::string file_inputs(const std::string& what, const std::string& file) {
  const auto text = read_file(file);
  return "\n" + what + " " + (text ? input_hash(*text) : "missing " + file);
}

/// Returns the contents of the trace and of the tables of kernels.
std::string files_inputs(const Service& service) {
  std::string text = service.trace.empty() ? "" : file_inputs("trace", service.trace);
  if (!service.engine.kernels.empty()) {
    for (const std::string_view file : split_at(service.engine.kernels, ',')) {
      text += file_inputs("kernels", std::string(file));
    }
  }
  return text;
}

std::string inputs_of(const Service& service, const ConfigNode& description) {
  std::string text = "serve\nmodel " + canonical_text(*description.find("model")) + "\nmachine " +
                     machine::to_yaml(service.machine) + "\nengine " +
                     serving::to_yaml(service.engine) + "\nmax_concurrency " +
                     std::to_string(service.max_concurrency);
  for (const char* field : {"requests", "slo"}) {
    const ConfigNode* node = description.find(field);
    text += std::string("\n") + field + " " + (node == nullptr ? "" : canonical_text(*node));
  }
  return text + files_inputs(service);
}

Result<std::vector<requests::Request>> requests_of(const Service& service) {
  if (!service.trace.empty()) {
    return requests::load_trace(service.trace).map([&](requests::Trace trace) {
      const auto most = static_cast<std::size_t>(service.generator.count);
      trace.requests.resize(std::min(trace.requests.size(), most));
      return std::move(trace.requests);
    });
  }
  std::vector<requests::Request> drawn = requests::generate(service.generator);
  if (std::any_of(drawn.begin(), drawn.end(),
                  [](const requests::Request& each) { return each.arrival > kLatest; })) {
    return fail("requests.rate: expected one at which all requests arrive within 57 days");
  }
  return drawn;
}

Outcome figures_of(const serving::Run& run, const Service& service) {
  const serving::Metrics metrics = serving::metrics(run, service.machine);
  const auto stated = [](const auto& value) { return value ? Cell(value->value()) : Cell(); };
  const auto seconds = [](Time time) { return Cell(to_seconds(time)); };
  return {{run.devices,
           metrics.requests_per_s,
           metrics.output_tokens_per_s,
           metrics.total_tokens_per_s,
           metrics.output_tokens_per_s_per_device,
           metrics.output_tokens_per_s_per_user,
           seconds(metrics.ttft.mean),
           seconds(metrics.ttft.p99),
           seconds(metrics.tpot.mean),
           seconds(metrics.tpot.p99),
           seconds(metrics.itl.p99),
           seconds(metrics.e2e.mean),
           seconds(metrics.e2e.p99),
           serving::attainment(run, service.slo),
           metrics.completed,
           run.refused,
           run.rejected,
           run.totals.preemptions,
           run.peak_kv_use,
           stated(metrics.energy),
           stated(metrics.cost_per_million_tokens)},
          ""};
}

Outcome serve(const Service& service) {
  const auto requests = requests_of(service);
  if (!requests) {
    return refused(kServeFigures.size(), requests.error());
  }
  serving::ServeOptions options;
  options.max_concurrency = service.max_concurrency;
  options.think = service.generator.think;
  const auto run =
      serving::serve(service.model, service.machine, service.engine, *requests, options);
  if (!run) {
    return refused(kServeFigures.size(), serving::located(run.error(), service.engine));
  }
  if (run->duration.is_overflow()) {
    return refused(kServeFigures.size(), Error(kBeyondTime));
  }
  Outcome outcome = figures_of(*run, service);
  if (run->requests.empty()) {
    outcome.error = "no request was answered";
  }
  return outcome;
}

}  // namespace

Prepared prepare_serve(const ConfigNode& description) {
  auto read = read_service(description);
  if (!read) {
    return {.inputs = "unread " + canonical_text(description), .mistakes = read.error(), .run = {}};
  }
  const auto service = std::make_shared<Service>(std::move(*read));
  return {.inputs = inputs_of(*service, description), .mistakes = {}, .run = [service](Shared&) {
            return serve(*service);
          }};
}

}  // namespace orrery::sweep
