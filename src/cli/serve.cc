// SPDX-License-Identifier: Apache-2.0
#include "serving/serve.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/beyond_time.h"
#include "base/file.h"
#include "base/reader.h"
#include "cli/commands.h"
#include "cli/engine_flags.h"
#include "cli/html_flag.h"
#include "cli/image_flags.h"
#include "cli/interrupt.h"
#include "cli/live_flags.h"
#include "cli/progress.h"
#include "cli/request_flags.h"
#include "cli/search_flags.h"
#include "cli/serve_examples.h"
#include "cli/step_flags.h"
#include "machine/device_groups.h"
#include "report/serving.h"
#include "report/trust.h"
#include "serving/gpu_search.h"
#include "serving/refusal.h"
#include "serving/search.h"
#include "study/served/nearest.h"
#include "web/extra.h"

namespace orrery::cli {
namespace {

constexpr std::size_t kMostTracedSteps = 1'000'000;
constexpr std::size_t kNearestRuns = 3;  // published, on a page

class Serve : public Command {
 public:
  void declare(Options& options) override {
    options.group("What");
    options.value("--model", model_, "NAME|FILE", "a name of `orrery list models`, or a file");
    options.value("--machine", machine_, "NAME|FILE",
                  "a name of `orrery list machines`, or a file; --search plan: several, by commas");
    network_.declare(options, "closed forms of the dimensions, on a topology flow");
    topology_.declare(options);
    cap_.declare(options);
    options.group("Requests");
    requests_.declare(options);
    images_.declare(options);
    options.value("--max-concurrency", concurrency_, "INT", "requests of the client at once");
    options.alias("--concurrency", "--max-concurrency");
    search_.declare(options);
    live_.declare(options);
    options.group("Engine");
    engine_.declare(options);
    options.group("Results");
    html_.declare(options);
    options.flag("--json", json_, "print one JSON object");
    options.flag("--csv", csv_, "print one line of values under their names");
    options.output("--requests-out", requests_out_, "FILE", "also write a CSV row per request");
    options.output("--trace-out", trace_out_, "FILE", "also write steps for Perfetto");
    options.flag("--no-skip", no_skip_, "schedule every step; the same result, slower");
    options.footer(kServeExamples);
  }

  bool ends_early() const override { return true; }
  Result<std::string> run(Error mistakes) override {
    if (!machine_) {
      mistakes.add({"--machine", {}, {}, "missing; expected a name or a file"});
    }
    if (json_ && csv_) {
      mistakes.add({"--csv", {}, {}, "contradicts --json"});
    }
    Error of_files;
    auto [model, engine] = engine_.read(model_, mistakes, of_files);
    network_.take(engine.network, mistakes);
    if (search_.is("plan") || search_.is("gpus")) {
      mistakes.add(std::move(of_files));
      return search_plan(model, engine, std::move(mistakes));
    }
    return serve(model, engine, std::move(mistakes), std::move(of_files));
  }

 private:
  /// Returns the points of latency over load, for a page.
  using Curve = std::function<std::vector<serving::LoadPoint>()>;

  /// `of_files`: those of reading model and engine, which hide what they are together.
  Result<std::string> serve(const zoo::Model& model, serving::Engine engine, Error mistakes,
                            Error of_files) {
    machine::Machine machine;
    if (machine_) {
      machine = load_named("--machine", *machine_, machine::load_alike, of_files);
      topology_.lay(machine, of_files);
      cap_.hold(machine, mistakes);
      search_.take_price(machine, *machine_, mistakes);
    }
    engine_.place(engine, mistakes);
    serving::ServeOptions options = read_options(engine, mistakes);
    requests::Generator generator = requests_.generator(mistakes);
    if (of_files.empty()) {
      images_.add(model, generator, mistakes);
    }
    const requests::Trace requests = of_files.empty() && step::embeds(model)
                                         ? texts(model, engine, generator, mistakes)
                                         : requests_.read(generator, mistakes);
    const serving::RateSearch search = search_.limits(mistakes);
    check_together(generator, engine, mistakes);
    std::optional<serving::Server> server;
    if (machine_ && of_files.empty()) {
      server = made(model, machine, engine, of_files);
    }
    mistakes.add(std::move(of_files));
    if (!mistakes.empty()) {
      return fail(std::move(mistakes));
    }
    if (live_.listens()) {
      return live_.listen(*server, {model.name, *model_}).and_then([&](const serving::Run& run) {
        return results(run, {}, machine);
      });
    }
    if (live_.observes()) {
      return live_.observe(requests.requests, *model_);
    }
    const bool paced = !requests_.has_trace() && !requests_.has_stages() &&
                       generator.arrival != requests::Arrival::infinite;
    options.rate = paced && !search_.any() ? generator.rate : 0;
    ProgressBar bar(search_.any() ? "searching" : "serving");
    options.progress = [&](double share) { bar.update(share); };
    options.go_on = Interrupt::going_on;
    const auto curve = [&](double rate) {
      return serving::load_curve(*server, generator, rate, options, machine);
    };
    if (search_.any()) {
      const auto found = serving::search_rate(*server, generator, search, options);
      return search_results(found, requests, machine, [&] { return curve(found.run.rate); });
    }
    serving::Run run = run_of(*server, requests, options);
    std::ranges::move(images_.notes(model), std::back_inserter(run.notes));
    const std::optional<serving::Metrics> unfused =
        without_fusion(model, machine, engine, requests, options, run);
    return results(run, requests.requests, machine, unfused ? &*unfused : nullptr,
                   [&] { return curve(options.rate); });
  }

  /// Measures the engine without fused kernels; nothing if it has none, or the run is ended early.
  static std::optional<serving::Metrics> without_fusion(
      const zoo::Model& model, const machine::Machine& machine, serving::Engine engine,
      const requests::Trace& requests, const serving::ServeOptions& options, serving::Run& run) {
    if (!std::exchange(engine.fuse, false)) {
      return std::nullopt;
    }
    const auto unfused = serving::serve(model, machine, engine, requests.requests, options);
    if (!Interrupt::going_on()) {
      run.notes.emplace_back("ended early: not compared with kernels that are not fused");
      return std::nullopt;
    }
    return serving::metrics(*unfused, machine);
  }

  static std::optional<serving::Server> made(const zoo::Model& model,
                                             const machine::Machine& machine,
                                             const serving::Engine& engine, Error& mistakes) {
    auto server = serving::Server::make(model, machine, engine);
    if (server) {
      return std::move(*server);
    }
    mistakes =
        with_what_fits(serving::located(std::move(server.error()), engine), model, machine, engine);
    return std::nullopt;
  }

  /// Reads the requests of an encoder, which answers each with one vector.
  requests::Trace texts(const zoo::Model& model, const serving::Engine& engine,
                        requests::Generator& generator, Error& mistakes) {
    generator.output = {.first = 1};
    requests::Trace requests = requests_.read(generator, mistakes);
    for (requests::Request& request : requests.requests) {
      request.output = 1;
    }
    mistakes.add(without_use(model, engine));
    return requests;
  }

  static serving::Run run_of(serving::Server& server, const requests::Trace& requests,
                             const serving::ServeOptions& options) {
    serving::Run run = server.run(requests.requests, options);
    if (requests.left_out > 0) {
      run.notes.push_back(fmt::format("{} {} of the trace without an answer left out",
                                      requests.left_out, requests.left_out == 1 ? "row" : "rows"));
    }
    return run;
  }

  static Error with_what_fits(Error error, const zoo::Model& model, const machine::Machine& machine,
                              const serving::Engine& engine) {
    for (Mistake& mistake : error.mistakes) {
      if (mistake.field == "memory") {
        const std::string fits = serving::what_fits(model, machine, engine);
        mistake.expected += fits.empty() ? "" : "; " + fits;
      }
    }
    return error;
  }

  Result<std::string> search_results(const serving::RateFound& found,
                                     const requests::Trace& requests,
                                     const machine::Machine& machine, const Curve& curve) const {
    if (found.rate == 0 && !Interrupt::going_on()) {
      return fail("ended before a rate was found that keeps the limits");
    }
    if (found.rate == 0) {
      return fail(Error(wrong_value("--slo", search_.slo(),
                                    "limits that the engine keeps at some rate: it does at none")));
    }
    return results(found.run, requests.requests, machine, nullptr, curve)
        .map([&](const std::string& text) {
          return json_ || csv_ ? text : report::rate_headline(found, search_.slo()) + text;
        });
  }

  void check_together(const requests::Generator& generator, const serving::Engine& engine,
                      Error& mistakes) const {
    if (search_.any() && (requests_.has_trace() || requests_.has_stages())) {
      mistakes.add(
          {"--search", {}, {}, "contradicts --trace and --stages, which have their rates"});
    }
    if (generator.adapters > 0 && engine.adapter_slots == 0) {
      mistakes.add({"--adapters", {}, {}, "is for an engine with lora: {slots: N, rank: R}"});
    }
    search_.check_alone(mistakes);
    if (requests_.has_trace()) {
      images_.refuse("--trace, which says what prompts are", mistakes);
    }
    if (live_.listens()) {
      images_.refuse("--listen, whose clients send requests", mistakes);
      requests_.refuse_arrivals("--listen, whose clients send requests", mistakes);
    }
    live_.check(search_.any(), engine, mistakes);
  }

  /// Returns what of the flags and the engine an encoder of texts has no use for.
  Error without_use(const zoo::Model& model, const serving::Engine& engine) const {
    Error mistakes;
    if (engine.prefill > 0) {
      mistakes.add({{},
                    "fleet.prefill",
                    std::to_string(engine.prefill),
                    "0: a model that embeds computes nothing but prompts"});
    }
    if (engine.drafts() > 0) {
      mistakes.add({{},
                    "speculation.tokens",
                    std::to_string(engine.drafts()),
                    "none: a model that embeds generates no tokens"});
    }
    mistakes = serving::located(std::move(mistakes), engine);
    if (requests_.output().value_or("1") != "1") {
      mistakes.add({"--output", {}, *requests_.output(), "1: the model answers with a vector"});
    }
    if (live_.listens()) {
      mistakes.add({"--listen", {}, model.name, "a model that generates tokens"});
    }
    return mistakes;
  }

  serving::ServeOptions read_options(const serving::Engine& engine, Error& mistakes) const {
    if (engine_.fuses() && engine.tp < 2) {
      mistakes.add({"--fuse",
                    {},
                    fmt::format("tp {}", engine.tp),
                    "above 1 in the engine's file: else no rank has a summand"});
    }
    serving::ServeOptions options;
    options.max_concurrency =
        whole_number("--max-concurrency", concurrency_, 0, kMostRequests, mistakes);
    Error again;  // reported with the requests'
    options.think = requests_.think(again);
    if (options.think > Time(0) && options.max_concurrency == 0 && !requests_.has_turns()) {
      mistakes.add({"--think", {}, {}, "is for --max-concurrency or --turns, whose users think"});
    }
    options.skip = !no_skip_;
    options.most_steps = trace_out_ ? kMostTracedSteps : 0;
    return options;
  }

  Result<std::string> search_plan(const zoo::Model& model, const serving::Engine& engine,
                                  Error mistakes) {
    serving::PlanSearch search;
    search_.read(search, engine_.devices(), mistakes);
    for (const std::string& name : listed(machine_)) {
      search.machines.push_back(load_named("--machine", name, machine::load_alike, mistakes));
      cap_.hold(search.machines.back(), mistakes);
      topology_.lay(search.machines.back(), mistakes);
      search_.take_price(search.machines.back(), name, mistakes);
    }
    search.load = requests_.generator(mistakes);
    search_.read_load(search, requests_, mistakes);
    if (mistakes.empty() && step::embeds(model)) {
      mistakes.add({"--search", {}, model.name, "rate: an encoder has no decodes to screen by"});
    }
    images_.refuse("--search plan and gpus, which screen engines by prompts of text", mistakes);
    engine_.refuse_fleet("contradicts --search, which makes many runs", mistakes);
    refuse_given({{"--max-concurrency", concurrency_},
                  {"--requests-out", requests_out_},
                  {"--trace-out", trace_out_}},
                 "contradicts --search plan, which makes many runs", mistakes);
    live_.check(true, engine, mistakes);
    if (engine.ffn > 0) {
      mistakes.add(wrong_value("--ffn", std::to_string(engine.ffn),
                               "0: the search lays attention and MLPs on the same devices"));
    }
    if (!engine.kernels.empty()) {
      mistakes.add(
          wrong_value("--kernels", engine.kernels,
                      "none with --search plan: they were measured at one tensor parallel degree"));
    }
    if (!mistakes.empty()) {
      return fail(std::move(mistakes));
    }
    ProgressBar bar("searching");
    search.progress = [&](double share) { bar.update(share); };
    search.go_on = Interrupt::going_on;
    return search_.run(model, engine, search, {.json = json_, .csv = csv_, .html = html_});
  }

  /// `sent`: the requests; none where clients sent them.
  Result<std::string> results(const serving::Run& run, const std::vector<requests::Request>& sent,
                              const machine::Machine& machine,
                              const serving::Metrics* unfused = nullptr,
                              const Curve& curve = {}) const {
    if (run.requests.empty() && !Interrupt::going_on()) {
      return fail("ended before a request was answered");
    }
    if (run.requests.empty() && run.refused > 0) {
      return fail(fmt::format("none of {} requests can be served: {}", run.refused,
                              serving::why_none(run, sent)));
    }
    if (run.duration.is_overflow()) {
      return fail(fmt::format("serving {}", kBeyondTime));
    }
    Error known;
    const serving::Objectives objectives = search_.limits(known).objectives;
    const serving::Metrics metrics =
        serving::metrics(run, machine, search_.slo().empty() ? nullptr : &objectives);
    if (requests_out_) {
      keep(write_file(*requests_out_, report::serving_requests_csv(run)));
    }
    if (trace_out_) {
      keep(write_file(*trace_out_, report::serving_trace(run)));
    }
    const auto json = [&] { return report::json_of(run, metrics, unfused, &machine); };
    return html_.beside(json_  ? json()
                        : csv_ ? report::serving_csv(run, metrics)
                               : report::serving_text(run, metrics, unfused) +
                                     report::served_trust_text(run, metrics, machine),
                        json, [&] {
                          const auto model = zoo::load_model(*model_);
                          return web::serving_extra(
                              run, curve ? curve() : std::vector<serving::LoadPoint>(),
                              model ? served::nearest_rows(*model, run, machine, kNearestRuns)
                                    : std::vector<study::NearestRow>());
                        });
  }

  std::optional<std::string> model_;
  std::optional<std::string> machine_;
  EngineFlags engine_;
  RequestFlags requests_;
  ImageFlags images_;
  SearchFlags search_;
  LiveFlags live_;
  std::optional<std::string> concurrency_;
  std::optional<std::string> requests_out_;
  std::optional<std::string> trace_out_;
  NetworkFlag network_;
  PowerCapFlag cap_;
  TopologyFlag topology_;
  HtmlFlag html_{"serve"};
  bool json_ = false;
  bool csv_ = false;
  bool no_skip_ = false;
};

}  // namespace

std::unique_ptr<Command> make_serve() {
  return std::make_unique<Serve>();
}

}  // namespace orrery::cli
