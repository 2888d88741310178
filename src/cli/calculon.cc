// SPDX-License-Identifier: Apache-2.0
/// orrery calculon: Calculon's files and figures.
#include <chrono>
#include <optional>

#include "base/file.h"
#include "cli/commands.h"
#include "cli/plain_fields.h"
#include "cli/progress.h"
#include "cli/step_flags.h"
#include "compat/calculon/search.h"
#include "compat/calculon/to_plan.h"
#include "report/timing.h"

namespace orrery::cli {
namespace {

constexpr const char* kCalculonExamples =
    "Calculon (SC'23) prices a step of a GPT by formulas and tries every execution of its space.\n"
    "Its files are read as they are and its figures come out; --save writes the execution as a "
    "plan\n"
    "that `orrery simulate` runs. Files of the examples: examples/calculon.\n"
    "Examples:\n"
    "  orrery calculon --application examples/calculon/megatron-22B.json \\\n"
    "                  --system examples/calculon/a100_80g.json --devices 64 --batch 64 --top 3\n"
    "  orrery calculon --application examples/calculon/megatron-1T.json \\\n"
    "                  --system examples/calculon/a100_80g.json \\\n"
    "                  --execution examples/calculon/megatron-1T_3072.json --json\n"
    "  orrery calculon --application megatron-22B.json --system a100_80g.json --devices 8 \\\n"
    "                  --batch 4 --save plan.yaml\n";

constexpr std::int64_t kMostCount = std::int64_t{1} << 20;  // as the numbers of its files
constexpr std::int64_t kMostPrinted = 1000;                 // executions, kept in order

class Calculon : public Command {
 public:
  void declare(Options& options) override {
    options.value("--application", application_, "FILE", "Calculon's application (JSON)");
    options.value("--system", system_, "FILE", "Calculon's system (JSON)");
    options.value("--execution", execution_, "FILE", "this execution (JSON); no search");
    options.value("--devices", devices_, "INT", "of the search");
    options.value(
        "--batch", batch_, "INT",
        "of the search: sequences of a step, at the most where replicas do not divide it");
    options.value("--datatype", datatype_, "NAME",
                  "of the search: " + all_names<calculon::NumberType>() + "; default float16");
    options.value("--top", top_, "INT", "of the search: executions to print; default 1");
    options.output("--save", save_, "FILE", "write the best execution as a plan (YAML)");
    options.flag("--json", json_, "print one JSON object");
    options.footer(kCalculonExamples);
  }

  Result<std::string> run(Error mistakes) override {
    calculon::NumberType type = calculon::NumberType::float16;
    take("--datatype", datatype_, type, mistakes);
    const std::int64_t top = whole_number("--top", top_, 1, kMostPrinted, mistakes);
    for (const auto& [flag, text] :
         {std::pair{"--application", &application_}, {"--system", &system_}}) {
      if (!*text) {
        mistakes.add({flag, {}, {}, "missing; expected one of Calculon's files"});
      }
    }
    check_space(mistakes);
    calculon::Space space;
    space.devices = whole_number("--devices", devices_, 1, kMostCount, mistakes);
    space.batch = whole_number("--batch", batch_, 1, kMostCount, mistakes);
    const auto application = application_
                                 ? collect(calculon::load_application(*application_), mistakes)
                                 : calculon::Application();
    std::optional<calculon::Execution> execution;
    if (execution_ && mistakes.empty()) {
      execution = collect(calculon::load_execution(*execution_, application), mistakes);
      type = execution->datatype;
    }
    const auto system =
        system_ ? collect(calculon::load_system(*system_, type), mistakes) : calculon::System();
    if (!mistakes.empty()) {
      return fail(std::move(mistakes));
    }
    if (execution) {
      return calculon::run(application, system, *execution).and_then([&](const calculon::Run& ran) {
        return answer(application,
                      {.top = {{*execution, ran}}, .executions = 1, .distinct = 1, .feasible = 1});
      });
    }
    ProgressBar bar("calculon");
    const auto begin = std::chrono::steady_clock::now();
    const calculon::SearchResult found =
        calculon::search(application, system, space, static_cast<std::size_t>(top),
                         [&](double share) { bar.update(share); });
    const std::chrono::duration<double> wall = std::chrono::steady_clock::now() - begin;
    wall_s_ = wall.count();
    return answer(application, found);
  }

 private:
  void check_space(Error& mistakes) const {
    for (const auto& [flag, text] : {std::pair{"--devices", &devices_}, {"--batch", &batch_}}) {
      if (!execution_ && !*text) {
        mistakes.add({flag, {}, {}, "missing; a search needs it, or give --execution"});
      }
    }
    if (execution_) {
      refuse_given({{"--devices", devices_},
                    {"--batch", batch_},
                    {"--top", top_},
                    {"--datatype", datatype_}},
                   "contradicts --execution, which is not searched", mistakes);
    }
  }

  Result<std::string> answer(const calculon::Application& application,
                             const calculon::SearchResult& found) const {
    if (found.executions == 0) {
      return fail("no split of the devices and the batch suits the application's heads and layers");
    }
    if (found.top.empty()) {
      return fail("none of " + std::to_string(found.executions) +
                  " executions fits the memories and networks");
    }
    const calculon::Found& best = found.top.front();
    if (save_) {
      const auto plan = calculon::to_plan(application, best.execution);
      if (!plan) {
        return fail(plan.error());
      }
      keep(write_file(*save_, plan::to_yaml(*plan)));
    }
    return json_ ? as_json(found) : as_text(found);
  }

  std::string as_text(const calculon::SearchResult& found) const {
    std::string text = fmt::format("{} executions, {} but for networks, {} that fit; {:.2f} s\n",
                                   found.executions, found.distinct, found.feasible, wall_s_);
    for (const calculon::Found& one : found.top) {
      text += fmt::format("\nexecution\n{}step\n{}memory\n{}", fields_text(one.execution),
                          fields_text(one.run.step), fields_text(one.run.footprint));
    }
    return text;
  }

  std::string as_json(const calculon::SearchResult& found) const {
    return report::json_text([&](report::JsonWriter& json) {
      const auto part = [&](const char* name, const auto& fields) {
        json.key(name).begin_object();
        write_fields(json, fields);
        json.end_object();
      };
      json.begin_object();
      json.key("executions").value(found.executions);
      json.key("distinct").value(found.distinct);
      json.key("feasible").value(found.feasible);
      report::write_timing(json, wall_s_);
      json.key("top").objects(found.top, [&](const calculon::Found& one) {
        part("execution", one.execution);
        part("step", one.run.step);
        part("memory", one.run.footprint);
      });
      json.end_object();
    });
  }

  std::optional<std::string> application_;
  std::optional<std::string> system_;
  std::optional<std::string> execution_;
  std::optional<std::string> devices_;
  std::optional<std::string> batch_;
  std::optional<std::string> datatype_;
  std::optional<std::string> top_;
  std::optional<std::string> save_;
  bool json_ = false;
  double wall_s_ = 0;
};

}  // namespace

std::unique_ptr<Command> make_calculon() {
  return std::make_unique<Calculon>();
}

}  // namespace orrery::cli
