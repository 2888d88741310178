// SPDX-License-Identifier: Apache-2.0
#include "serving/serve.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "base/file.h"
#include "base/reader.h"
#include "cli/commands.h"
#include "cli/progress.h"
#include "report/serving.h"
#include "serving/requests/generate.h"
#include "serving/requests/trace.h"
#include "serving/search.h"

namespace orrery::cli {
namespace {

constexpr const char* kServeExamples =
    "An inference engine serves requests: those of a trace, or drawn ones. Lengths: 1000,\n"
    "'uniform(500, 1500)', 'lognormal(1000, 0.6)' (mean, sigma). Engines: `orrery list engines`,\n"
    "`orrery show engine vllm@0.19`; a file states what differs from one of them.\n"
    "Examples:\n"
    "  orrery serve --model llama-3-70b --machine dgx-h100 --devices 8 --rate 5 \\\n"
    "               --input 1000 --output 250 --requests 3000\n"
    "  orrery serve --model llama-3.1-8b --machine dgx-h100 --trace mooncake.jsonl --json\n"
    "  orrery serve --model llama-3.1-8b --machine dgx-h100 --arrival infinite \\\n"
    "               --max-concurrency 64 --requests 1000 --requests-out requests.csv\n"
    "  orrery serve --model llama-3.1-8b --machine dgx-h100 --search rate \\\n"
    "               --slo 'ttft=500 ms,tpot=20 ms' --input 1000 --output 250\n";

constexpr std::int64_t kMostRequests = 20'000'000;
constexpr double kMostRate = 1e9;
constexpr std::size_t kMostTracedSteps = 1'000'000;

class Serve : public Command {
 public:
  void declare(Options& options) override {
    options.group("What");
    options.value("--model", model_, "NAME|FILE", "a name of `orrery list models`, or a file");
    options.value("--machine", machine_, "NAME|FILE",
                  "a name of `orrery list machines`, or a file");
    options.value("--devices", devices_, "INT", "of the engine; default: its tp x dp x pp");
    options.value("--engine", engine_, "NAME|FILE", "default: vllm@0.19");
    options.group("Requests");
    options.value("--trace", trace_, "FILE", "requests of a trace instead of drawn ones");
    options.value("--rate", rate_, "NUMBER", "requests per second; default 1");
    options.value("--arrival", arrival_, "NAME", "poisson (default), gamma, fixed or infinite");
    options.value("--burstiness", burstiness_, "NUMBER", "shape of gamma arrivals; default 1");
    options.value("--input", input_, "TOKENS", "length of prompts; default 1024");
    options.value("--output", output_, "TOKENS", "length of answers; default 128");
    options.value("--requests", requests_, "INT", "how many; default 1000, of a trace all");
    options.value("--shared-prefix", shared_, "INT", "tokens in front of every prompt, shared");
    options.value("--prefix-groups", groups_, "INT", "different shared prefixes; default 1");
    options.value("--max-concurrency", concurrency_, "INT", "requests of the client at once");
    options.value("--think", think_, "TIME", "between an answer and its client's next request");
    options.value("--seed", seed_, "INT", "of drawn requests; default 0");
    options.group("Search");
    options.value("--search", search_, "rate", "the largest rate that keeps --slo");
    options.value("--slo", slo_, "LIMITS", "such as 'ttft=500 ms,tpot=30 ms'; also e2e");
    options.value("--attainment", attainment_, "SHARE", "of requests within --slo; default 0.99");
    options.group("Results");
    options.flag("--json", json_, "print one JSON object");
    options.flag("--csv", csv_, "print one line of values under their names");
    options.value("--requests-out", requests_out_, "FILE", "also write a CSV row per request");
    options.value("--trace-out", trace_out_, "FILE", "also write steps for Perfetto");
    options.flag("--no-skip", no_skip_, "schedule every step; the same result, slower");
    options.footer(kServeExamples);
  }

  Result<std::string> run(Error mistakes) override {
    need("--model", model_, mistakes);
    need("--machine", machine_, mistakes);
    if (json_ && csv_) {
      mistakes.add({"--csv", {}, {}, "contradicts --json"});
    }
    zoo::Model model;
    machine::Machine machine;
    if (model_) {
      model = load_named("--model", *model_, zoo::load_model, mistakes);
    }
    if (machine_) {
      machine = load_named("--machine", *machine_, machine::load_machine, mistakes);
    }
    serving::Engine engine =
        load_named("--engine", engine_.value_or("vllm@0.19"), serving::load_engine, mistakes);
    place(engine, mistakes);
    serving::ServeOptions options;
    options.max_concurrency = whole("--max-concurrency", concurrency_, 0, 0, mistakes);
    options.think = value<Time>("--think", think_, Time(0), mistakes);
    options.skip = !no_skip_;
    options.most_steps = trace_out_ ? kMostTracedSteps : 0;
    requests::Generator generator;
    const std::vector<requests::Request> requests = read_requests(generator, mistakes);
    const serving::RateSearch search = read_search(mistakes);
    if (search_ && trace_) {
      mistakes.add({"--search", {}, {}, "contradicts --trace, which has its own rate"});
    }
    if (options.max_concurrency > 0 && engine.dp > 1) {
      mistakes.add({"--max-concurrency", {}, {}, "not with dp > 1"});
    }
    if (!mistakes.empty()) {
      return fail(std::move(mistakes));
    }
    auto server = serving::Server::make(model, machine, engine);
    if (!server) {
      return fail(std::move(server.error()));
    }
    ProgressBar bar(search_ ? "searching" : "serving");
    options.progress = [&](double share) { bar.update(share); };
    if (!search_) {
      return results(server->run(requests, options), machine);
    }
    const serving::RateFound found = serving::search_rate(*server, generator, search, options);
    if (found.rate == 0) {
      return fail(Error(Mistake{"--slo",
                                {},
                                slo_.value_or(""),
                                "limits that the engine keeps at some rate: it does at none"}));
    }
    return results(found.run, machine).map([&](std::string text) {
      return json_ || csv_ ? text
                           : fmt::format(
                                 "Largest rate: {:.4g} requests/s ({:.2f} % within {}; "
                                 "{} runs)\n\n{}",
                                 found.rate, 100 * found.attained, *slo_, found.runs, text);
    });
  }

 private:
  static void need(const char* flag, const std::optional<std::string>& given, Error& mistakes) {
    if (!given) {
      mistakes.add({flag, {}, {}, "missing; expected a name or a file"});
    }
  }

  template <class T>
  static T value(const char* flag, const std::optional<std::string>& text, T otherwise,
                 Error& mistakes) {
    if (!text) {
      return otherwise;
    }
    auto parsed = parse_value<T>(*text);
    if (!parsed) {
      mistakes.add(wrong_value(flag, *text, parsed.error()));
      return otherwise;
    }
    return *parsed;
  }
  static std::int64_t whole(const char* flag, const std::optional<std::string>& text,
                            std::int64_t otherwise, std::int64_t least, Error& mistakes) {
    const auto number = value<std::int64_t>(flag, text, otherwise, mistakes);
    if (number < least || number > kMostRequests) {
      mistakes.add(
          wrong_value(flag, *text, fmt::format("a number from {} to {}", least, kMostRequests)));
      return otherwise;
    }
    return number;
  }
  static double positive(const char* flag, const std::optional<std::string>& text, double otherwise,
                         Error& mistakes) {
    const double number = value<double>(flag, text, otherwise, mistakes);
    if (!(number > 0) || number > kMostRate) {
      mistakes.add(wrong_value(flag, *text, "a number above 0, at most 1e9"));
      return otherwise;
    }
    return number;
  }
  static requests::Length length(const char* flag, const std::optional<std::string>& text,
                                 requests::Length otherwise, Error& mistakes) {
    if (!text) {
      return otherwise;
    }
    auto parsed = requests::parse_length(*text);
    if (!parsed) {
      mistakes.add(wrong_value(flag, *text, parsed.error()));
      return otherwise;
    }
    return *parsed;
  }

  /// --devices: all tensor parallel unless the engine says otherwise.
  void place(serving::Engine& engine, Error& mistakes) const {
    if (!devices_) {
      return;
    }
    const std::int64_t devices = whole("--devices", devices_, 1, 1, mistakes);
    const std::int64_t all = engine.tp * engine.dp * engine.pp;
    if (all == 1) {
      engine.tp = devices;
    } else if (all != devices) {
      mistakes.add(wrong_value("--devices", *devices_,
                               fmt::format("tp x dp x pp = {} x {} x {} of the engine", engine.tp,
                                           engine.dp, engine.pp)));
    }
  }

  serving::RateSearch read_search(Error& mistakes) const {
    serving::RateSearch search;
    if (search_ && *search_ != "rate") {
      mistakes.add(wrong_value("--search", *search_, "rate"));
    }
    if (search_.has_value() != slo_.has_value()) {
      mistakes.add({search_ ? "--slo" : "--search", {}, {}, "missing: the two go together"});
    }
    if (slo_) {
      if (auto limits = serving::parse_objectives(*slo_)) {
        search.objectives = *limits;
      } else {
        mistakes.add(wrong_value("--slo", *slo_, limits.error()));
      }
    }
    search.attainment = positive("--attainment", attainment_, search.attainment, mistakes);
    if (search.attainment > 1) {
      mistakes.add(wrong_value("--attainment", *attainment_, "a share above 0, at most 1"));
    }
    return search;
  }

  std::vector<requests::Request> read_requests(requests::Generator& generator,
                                               Error& mistakes) const {
    generator.rate = positive("--rate", rate_, generator.rate, mistakes);
    generator.burstiness = positive("--burstiness", burstiness_, 1, mistakes);
    if (arrival_) {
      generator.arrival =
          value<requests::Arrival>("--arrival", arrival_, generator.arrival, mistakes);
    }
    generator.input = length("--input", input_, generator.input, mistakes);
    generator.output = length("--output", output_, generator.output, mistakes);
    generator.count = whole("--requests", requests_, generator.count, 1, mistakes);
    generator.shared_prefix = whole("--shared-prefix", shared_, 0, 0, mistakes);
    generator.prefix_groups = whole("--prefix-groups", groups_, 1, 1, mistakes);
    generator.seed = static_cast<std::uint64_t>(whole("--seed", seed_, 0, 0, mistakes));
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

  Result<std::string> results(const serving::Run& run, const machine::Machine& machine) const {
    const serving::Metrics metrics = serving::metrics(run, machine);
    if (requests_out_) {
      if (auto done = write_file(*requests_out_, report::serving_requests_csv(run)); !done) {
        return fail(std::move(done.error()));
      }
    }
    if (trace_out_) {
      if (auto done = write_file(*trace_out_, report::serving_trace(run)); !done) {
        return fail(std::move(done.error()));
      }
    }
    return json_  ? report::serving_json(run, metrics)
           : csv_ ? report::serving_csv(run, metrics)
                  : report::serving_text(run, metrics);
  }

  std::optional<std::string> model_;
  std::optional<std::string> machine_;
  std::optional<std::string> devices_;
  std::optional<std::string> engine_;
  std::optional<std::string> trace_;
  std::optional<std::string> rate_;
  std::optional<std::string> arrival_;
  std::optional<std::string> burstiness_;
  std::optional<std::string> input_;
  std::optional<std::string> output_;
  std::optional<std::string> requests_;
  std::optional<std::string> shared_;
  std::optional<std::string> groups_;
  std::optional<std::string> concurrency_;
  std::optional<std::string> think_;
  std::optional<std::string> seed_;
  std::optional<std::string> search_;
  std::optional<std::string> slo_;
  std::optional<std::string> attainment_;
  std::optional<std::string> requests_out_;
  std::optional<std::string> trace_out_;
  bool json_ = false;
  bool csv_ = false;
  bool no_skip_ = false;
};

}  // namespace

std::unique_ptr<Command> make_serve() {
  return std::make_unique<Serve>();
}

}  // namespace orrery::cli
