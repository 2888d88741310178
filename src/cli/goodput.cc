// SPDX-License-Identifier: Apache-2.0
#include "report/goodput.h"

#include <limits>

#include "cli/commands.h"
#include "cli/html_flag.h"
#include "cli/plain_fields.h"
#include "cli/step_flags.h"

namespace orrery::cli {
namespace {

constexpr const char* kGoodputExamples =
    "What share of its time a long job keeps: failures, checkpoints, detection, restarts, spares.\n"
    "Examples:\n"
    "  orrery goodput --devices 16384 --mtbf '50677 h' --checkpoint-cost 60s --restart 300s\n"
    "  orrery goodput --devices 1024 --failures components.yaml --spares 4 --repair '3 d' \\\n"
    "                 --without-spare shrink --days 60 --json\n"
    "  orrery goodput --devices 2400 --log stops.csv --log-length '31 d'\n"
    "  orrery goodput --devices 512 --checkpoint-cost 30s     # no rate: what would be needed\n";

class Goodput : public Command {
 public:
  void declare(Options& options) override {
    options.value("--devices", devices_, "INT", "of the job");
    fields_.declare(options);
    options.value("--days", days_, "NUMBER", "length of a life; default 90");
    html_.declare(options);
    options.flag("--json", json_, "print one JSON object");
    options.footer(kGoodputExamples);
  }

  Result<std::string> run(Error mistakes) override {
    constexpr std::int64_t kMostDevices = 100'000'000;
    if (!devices_) {
      mistakes.add({"--devices", {}, {}, "missing; expected a whole number"});
    }
    const std::int64_t devices = whole_number("--devices", devices_, 1, kMostDevices, mistakes);
    double days = 90;
    take("--days", days_, days, mistakes);
    if (days_ && !(days > 0 && days <= 36525)) {
      mistakes.add(wrong_value("--days", *days_, "more than 0 and at most 36525"));
    }
    const goodput::Question question = fields_.read(mistakes);
    const auto asked = goodput::ask(question, devices, fields_.well_given(mistakes));
    if (!asked) {
      mistakes.add(fields_.placed(asked.error()));
    }
    if (!mistakes.empty()) {
      return fail(std::move(mistakes));
    }
    report::GoodputReport report{*asked, Duration(days * 86400), question.seeds, {}};
    if (!asked->scenario.components.empty()) {
      if (const auto ok = check_stops(asked->scenario, report.length, question.seeds); !ok) {
        return fail(fields_.placed(ok.error()));
      }
      report.lives =
          goodput::run_lives(asked->scenario, report.length,
                             Duration(std::numeric_limits<double>::infinity()), question.seeds);
    }
    const auto json = [&] { return report::json_of(report); };
    return html_.beside(json_ ? json() : report::goodput_table(report), json);
  }

 private:
  std::optional<std::string> devices_;
  std::optional<std::string> days_;
  FieldFlags<goodput::Question> fields_;
  HtmlFlag html_{"goodput"};
  bool json_ = false;
};

}  // namespace

std::unique_ptr<Command> make_goodput() {
  return std::make_unique<Goodput>();
}

}  // namespace orrery::cli
