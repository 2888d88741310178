// SPDX-License-Identifier: Apache-2.0
#include "serving/serve.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/beyond_time.h"
#include "base/file.h"
#include "base/reader.h"
#include "base/split.h"
#include "cli/commands.h"
#include "cli/progress.h"
#include "cli/request_flags.h"
#include "cli/serve_examples.h"
#include "cli/served_model.h"
#include "cli/step_flags.h"
#include "machine/device_groups.h"
#include "report/serving.h"
#include "report/serving_plans.h"
#include "serving/plan_search.h"
#include "serving/search.h"

namespace orrery::cli {
namespace {

constexpr std::size_t kMostTracedSteps = 1'000'000;

class Serve : public Command {
 public:
  void declare(Options& options) override {
    options.group("What");
    options.value("--model", model_, "NAME|FILE", "a name of `orrery list models`, or a file");
    options.value("--machine", machine_, "NAME|FILE",
                  "a name of `orrery list machines`, or a file; --search plan: several, by commas");
    options.value(
        "--devices", devices_, "INT",
        "of the engine; default: its tp x cp x dp x pp. --search plan: at most, default 8");
    options.value("--engine", engine_, "NAME|FILE", "default: vllm@0.19");
    options.value("--kernels", kernels_, "FILES",
                  "CSV tables, by commas, of kernels measured on the card: they replace formulas");
    options.value("--replicas", replicas_, "INT", "engines alike; with --prefill those to decode");
    options.value("--prefill", prefill_, "INT", "engines that compute prompts only");
    options.value("--router", router_, "NAME",
                  "round_robin (default), least_requests, least_tokens or prefix_aware");
    options.flag("--fuse", fuse_, "with tp: sums become slices where faster; says the gain");
    options.value("--overlap-tensor", overlap_tensor_, "NAME", "a plan's, where that is faster");
    network_.declare(options, "closed forms of the dimensions, on a topology flow");
    topology_.declare(options);
    cap_.declare(options);
    options.value("--price", price_, "USD", "of a device's hour, instead of the machine's");
    options.group("Requests");
    requests_.declare(options);
    options.value("--max-concurrency", concurrency_, "INT", "requests of the client at once");
    options.group("Search");
    options.value("--search", search_, "rate|plan",
                  "the largest rate that keeps --slo; or tokens/s of a GPU against a user's");
    options.value("--formats", formats_, "LIST",
                  "for --search plan: bf16, w8a8, w8a8kv8, w4a16, w4a4kv8; default: engine's");
    options.output("--plot", plot_, "FILE", "for --search plan: also write the front as SVG");
    options.value("--slo", slo_, "LIMITS",
                  "such as 'ttft=500 ms,tpot=30 ms', e2e; without --search: count who keeps them");
    options.value("--attainment", attainment_, "SHARE", "of requests within --slo; default 0.99");
    options.group("Results");
    options.flag("--json", json_, "print one JSON object");
    options.flag("--csv", csv_, "print one line of values under their names");
    options.output("--requests-out", requests_out_, "FILE", "also write a CSV row per request");
    options.output("--trace-out", trace_out_, "FILE", "also write steps for Perfetto");
    options.flag("--no-skip", no_skip_, "schedule every step; the same result, slower");
    options.footer(kServeExamples);
  }

  Result<std::string> run(Error mistakes) override {
    if (!machine_) {
      mistakes.add({"--machine", {}, {}, "missing; expected a name or a file"});
    }
    if (json_ && csv_) {
      mistakes.add({"--csv", {}, {}, "contradicts --json"});
    }
    if (search_ && *search_ != "rate" && *search_ != "plan") {
      mistakes.add(wrong_value("--search", *search_, "rate or plan"));
    }
    Error of_files;
    auto [model, engine] = load_served(model_, engine_, of_files);
    engine.fuse = engine.fuse || fuse_;
    take("--overlap-tensor", overlap_tensor_, engine.overlap_tensor, mistakes);
    engine.kernels = kernels_.value_or(engine.kernels);
    network_.take(engine.network, mistakes);
    if (search_ == "plan") {
      mistakes.add(std::move(of_files));
      return search_plan(model, engine, std::move(mistakes));
    }
    return serve(model, engine, std::move(mistakes), std::move(of_files));
  }

 private:
  /// `of_files`: those of reading model and engine, which hide what they are together.
  Result<std::string> serve(const zoo::Model& model, serving::Engine engine, Error mistakes,
                            Error of_files) {
    machine::Machine machine;
    if (machine_) {
      machine = load_named("--machine", *machine_, machine::load_alike, of_files);
      topology_.lay(machine, of_files);
      cap_.hold(machine, mistakes);
      take_price(machine, mistakes);
    }
    place(engine, mistakes);
    serving::ServeOptions options = read_options(engine, mistakes);
    const requests::Generator generator = requests_.generator(mistakes);
    const requests::Trace requests = requests_.read(generator, mistakes);
    const serving::RateSearch search = read_search(mistakes);
    check_together(generator, engine, mistakes);
    Result<serving::Server> server = fail(Error());
    if (machine_ && of_files.empty()) {
      server = serving::Server::make(model, machine, engine);
      if (!server) {
        of_files = serving::located(std::move(server.error()), engine);
      }
    }
    mistakes.add(std::move(of_files));
    if (!mistakes.empty()) {
      return fail(std::move(mistakes));
    }
    const bool paced = !requests_.has_trace() && !requests_.has_stages() &&
                       generator.arrival != requests::Arrival::infinite;
    options.rate = paced && !search_ ? generator.rate : 0;
    ProgressBar bar(search_ ? "searching" : "serving");
    options.progress = [&](double share) { bar.update(share); };
    if (!search_) {
      serving::Run run = server->run(requests.requests, options);
      if (requests.left_out > 0) {
        run.notes.push_back(fmt::format("{} {} of the trace without an answer left out",
                                        requests.left_out,
                                        requests.left_out == 1 ? "row" : "rows"));
      }
      std::optional<serving::Metrics> unfused;
      if (engine.fuse) {
        engine.fuse = false;
        unfused = serving::serve(model, machine, engine, requests.requests, options)
                      .map([&](const serving::Run& without) {
                        return serving::metrics(without, machine);
                      })
                      .value();
      }
      return results(run, machine, unfused ? &*unfused : nullptr);
    }
    return search_results(serving::search_rate(*server, generator, search, options), machine);
  }

  Result<std::string> search_results(const serving::RateFound& found,
                                     const machine::Machine& machine) const {
    if (found.rate == 0) {
      return fail(Error(wrong_value("--slo", slo_.value_or(""),
                                    "limits that the engine keeps at some rate: it does at none")));
    }
    return results(found.run, machine).map([&](const std::string& text) {
      return json_ || csv_ ? text : report::rate_headline(found, *slo_) + text;
    });
  }

  void check_together(const requests::Generator& generator, const serving::Engine& engine,
                      Error& mistakes) const {
    if (search_ && (requests_.has_trace() || requests_.has_stages())) {
      mistakes.add(
          {"--search", {}, {}, "contradicts --trace and --stages, which have their rates"});
    }
    if (generator.adapters > 0 && engine.adapter_slots == 0) {
      mistakes.add({"--adapters", {}, {}, "is for an engine with lora: {slots: N, rank: R}"});
    }
    if (search_ && !slo_) {
      mistakes.add({"--slo", {}, {}, "missing: the limits that --search keeps"});
    }
    if (attainment_ && slo_ && !search_) {
      mistakes.add({"--attainment", {}, {}, "is for --search, which looks for such a rate"});
    }
  }

  serving::ServeOptions read_options(const serving::Engine& engine, Error& mistakes) const {
    refuse_given({{"--formats", formats_}, {"--plot", plot_}}, "is for --search plan", mistakes);
    if (fuse_ && engine.tp < 2) {
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
    const serving::RateSearch limits = read_search(mistakes);
    serving::PlanSearch search;
    search.objectives = limits.objectives;
    search.attainment = limits.attainment;
    for (const std::string& name : listed(machine_)) {
      search.machines.push_back(load_named("--machine", name, machine::load_alike, mistakes));
      cap_.hold(search.machines.back(), mistakes);
      topology_.lay(search.machines.back(), mistakes);
    }
    if (price_ && search.machines.size() > 1) {
      mistakes.add({"--price", {}, *price_, "one machine: others have their own prices"});
    } else if (!search.machines.empty()) {
      take_price(search.machines.front(), mistakes);
    }
    search.formats = read_formats(mistakes);
    constexpr std::int64_t kMostDevices = 1024;
    search.devices = whole_number("--devices", devices_, 8, kMostDevices, mistakes);
    search.load = requests_.generator(mistakes);
    requests_.refuse_arrivals("--search plan, which sends a request when one ends", mistakes);
    refuse_given({{"--max-concurrency", concurrency_},
                  {"--replicas", replicas_},
                  {"--prefill", prefill_},
                  {"--router", router_},
                  {"--requests-out", requests_out_},
                  {"--trace-out", trace_out_}},
                 "contradicts --search plan, which makes many runs", mistakes);
    if (!engine.kernels.empty()) {
      mistakes.add({"--kernels",
                    {},
                    engine.kernels,
                    "none with --search plan: they were measured at one tensor parallel degree"});
    }
    if (!mistakes.empty()) {
      return fail(std::move(mistakes));
    }
    ProgressBar bar("searching");
    search.progress = [&](double share) { bar.update(share); };
    const serving::PlansFound found = serving::search_plans(model, engine, search);
    if (found.screened == 0) {
      Error none("no plan runs");
      for (const serving::Loser& loser : found.losers) {
        none.add({found.layouts[loser.layout].name(), {}, {}, loser.reason});
      }
      return fail(std::move(none));
    }
    if (plot_) {
      keep(write_file(*plot_, report::serving_plans_svg(found, model.name)));
    }
    return json_  ? report::serving_plans_json(found, model.name)
           : csv_ ? report::serving_plans_csv(found)
                  : report::serving_plans_text(found, model.name);
  }

  void take_price(machine::Machine& machine, Error& mistakes) const {
    if (price_) {
      machine.device.price_per_hour = Money(positive_number("--price", price_, 1, mistakes));
    }
  }

  std::vector<serving::Format> read_formats(Error& mistakes) const {
    std::vector<serving::Format> formats;
    for (const std::string& name : listed(formats_)) {
      const auto* const format = std::ranges::find(serving::kFormats, name, &serving::Format::name);
      if (format == serving::kFormats.end()) {
        mistakes.add(wrong_value("--formats", name, "of bf16, w8a8, w8a8kv8, w4a16, w4a4kv8"));
      } else {
        formats.push_back(*format);
      }
    }
    return formats;
  }

  /// The parts of a list by commas.
  static std::vector<std::string> listed(const std::optional<std::string>& text) {
    std::vector<std::string> parts;
    if (text) {
      const auto names = split_at(*text, ',');
      parts.assign(names.begin(), names.end());
    }
    return parts;
  }

  /// --devices: all tensor parallel unless the engine says otherwise.
  void place(serving::Engine& engine, Error& mistakes) const {
    engine.replicas = whole_number("--replicas", replicas_, engine.replicas, 4096, mistakes);
    engine.prefill = whole_number("--prefill", prefill_, engine.prefill, 4096, mistakes);
    take("--router", router_, engine.router, mistakes);
    const bool alone = std::max(engine.replicas, engine.most_replicas) == 1 && engine.prefill < 2;
    if (router_ && alone && !replicas_) {  // a script may go through numbers from 1
      mistakes.add({"--router", {}, {}, "is for several engines: --replicas above 1"});
    }
    if (!devices_) {
      return;
    }
    const std::int64_t devices = whole_number("--devices", devices_, 1, kMostRequests, mistakes);
    const std::int64_t engines = engine.replicas + engine.prefill;
    if (engine.devices() == engines && devices % engines == 0) {
      engine.tp = devices / engines;
    } else if (engine.devices() != devices) {
      mistakes.add(wrong_value(
          "--devices", *devices_,
          fmt::format("{} of the engine: {} x tp x cp x dp x pp of {} x {} x {} x {}{}",
                      engine.devices(), engine.replicas, engine.tp, engine.cp, engine.dp, engine.pp,
                      engine.prefill > 0 ? fmt::format(" and {} for prompts", engine.prefill)
                                         : std::string())));
    }
  }

  serving::RateSearch read_search(Error& mistakes) const {
    serving::RateSearch search;
    if (slo_) {
      if (auto limits = serving::parse_objectives(*slo_)) {
        search.objectives = *limits;
      } else {
        mistakes.add(wrong_value("--slo", *slo_, limits.error()));
      }
    }
    if (attainment_ && !slo_) {
      mistakes.add({"--attainment", {}, {}, "goes with --slo, which so many requests keep"});
    }
    search.attainment = positive_number("--attainment", attainment_, search.attainment, mistakes);
    if (search.attainment > 1) {
      mistakes.add(wrong_value("--attainment", *attainment_, "a share above 0, at most 1"));
    }
    return search;
  }

  Result<std::string> results(const serving::Run& run, const machine::Machine& machine,
                              const serving::Metrics* unfused = nullptr) const {
    if (run.requests.empty() && run.refused > 0) {
      return fail(fmt::format(
          "none of {} requests can be served: their prompts and answers are longer than the "
          "model's {} tokens or than the {} KV blocks of {} tokens{}{}",
          run.refused, run.engine.max_model_len, run.kv_blocks, run.engine.block_size,
          run.cache.state > Bytes(0)
              ? fmt::format(", of which a state takes {} tokens", run.cache.fixed_tokens(0))
              : std::string(),
          run.engine.chunked_prefill
              ? std::string()
              : fmt::format(", or prompts, which are not cut, than the {} tokens of a step",
                            run.engine.max_num_batched_tokens)));
    }
    if (run.duration.is_overflow()) {
      return fail(fmt::format("serving {}", kBeyondTime));
    }
    Error known;
    const serving::Objectives objectives = read_search(known).objectives;
    const serving::Metrics metrics = serving::metrics(run, machine, slo_ ? &objectives : nullptr);
    if (requests_out_) {
      keep(write_file(*requests_out_, report::serving_requests_csv(run)));
    }
    if (trace_out_) {
      keep(write_file(*trace_out_, report::serving_trace(run)));
    }
    return json_  ? report::serving_json(run, metrics, unfused)
           : csv_ ? report::serving_csv(run, metrics)
                  : report::serving_text(run, metrics, unfused);
  }

  std::optional<std::string> model_;
  std::optional<std::string> machine_;
  std::optional<std::string> devices_;
  std::optional<std::string> engine_;
  std::optional<std::string> kernels_;
  std::optional<std::string> replicas_;
  std::optional<std::string> prefill_;
  std::optional<std::string> price_;
  std::optional<std::string> router_;
  RequestFlags requests_;
  std::optional<std::string> concurrency_;
  std::optional<std::string> search_;
  std::optional<std::string> formats_;
  std::optional<std::string> plot_;
  std::optional<std::string> slo_;
  std::optional<std::string> attainment_;
  std::optional<std::string> requests_out_;
  std::optional<std::string> trace_out_;
  std::optional<std::string> overlap_tensor_;
  NetworkFlag network_;
  PowerCapFlag cap_;
  TopologyFlag topology_;
  bool json_ = false;
  bool csv_ = false;
  bool fuse_ = false;
  bool no_skip_ = false;
};

}  // namespace

std::unique_ptr<Command> make_serve() {
  return std::make_unique<Serve>();
}

}  // namespace orrery::cli
