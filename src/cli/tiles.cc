// SPDX-License-Identifier: Apache-2.0
/// orrery tiles: a product whose tiles a ring reduction follows, run on this machine's threads.
#include "cli/commands.h"
#include "cli/plain_fields.h"
#include "collective/tiles/pipeline.h"
#include "report/report.h"

namespace orrery::cli {
namespace {

constexpr const char* kTilesExamples =
    "Every rank is three threads of this machine: one multiplies, one sends tiles whose counters "
    "are\n"
    "full, one adds what arrives. Times are medians and depend on the machine's load.\n"
    "Examples:\n"
    "  orrery tiles\n"
    "  orrery tiles --ranks 2 --rows 1024 --columns 512 --inner 512 --bandwidth '200 MB/s' --json\n"
    "  orrery tiles --ranks 8 --tiles 1 --bandwidth '0 B/s' --repeat 11\n";

class Tiles : public Command {
 public:
  void declare(Options& options) override {
    fields_.declare(options);
    options.flag("--json", json_, "print one JSON object");
    options.footer(kTilesExamples);
  }

  Result<std::string> run(Error mistakes) override {
    tiles::Problem problem = fields_.read(mistakes);
    if (!mistakes.empty()) {
      return fail(std::move(mistakes));
    }
    if (const std::int64_t all = problem.all_tiles(); !fields_.given("rows") && all > 0) {
      problem.rows = (problem.rows + all - 1) / all * all;
    }
    const auto outcome = tiles::run(problem);
    if (!outcome) {
      return fail(fields_.placed(outcome.error()));
    }
    return json_ ? as_json(problem, *outcome) : as_text(problem, *outcome);
  }

 private:
  static std::string as_text(const tiles::Problem& problem, const tiles::Outcome& outcome) {
    std::string text = fmt::format(
        "{} ranks, C[{}, {}] of inner length {}, {} chunks of {} tiles of {}\n"
        "every element of every rank {} the sum of one thread, bit for bit\n"
        "counters: {} updates, {} tiles sent on by a full counter\n\n"
        "{:<30}{:>12}{:>12}{:>12}\n",
        problem.ranks, problem.rows, problem.columns, problem.inner, problem.ranks, problem.tiles,
        to_string(problem.tile_bytes()), outcome.equal ? "equals" : "DIFFERS from", outcome.updates,
        outcome.triggered, "ms", "product", "reduced", "gathered");
    const auto line = [&](const char* name, const tiles::Measured& one) {
      text += fmt::format("{:<30}{:>12.3f}{:>12.3f}{:>12.3f}\n", name, 1e3 * one.product_s,
                          1e3 * one.reduced_s, 1e3 * one.gathered_s);
    };
    line("one after the other", outcome.unfused);
    line("tiles", outcome.overlapped);
    return text + fmt::format("{:<30}{:>12.3f}{:>12.3f}   of a hop of {:.3f} ms\n",
                              "tiles, by the recurrence", 1e3 * outcome.unfused.product_s,
                              1e3 * outcome.recurrence_s, 1e3 * outcome.hop_s);
  }

  static void write(report::JsonWriter& json, const char* key, const tiles::Measured& one) {
    json.key(key).begin_object();
    json.key("product_s").value(one.product_s);
    json.key("reduced_s").value(one.reduced_s);
    json.key("gathered_s").value(one.gathered_s);
    json.end_object();
  }

  static std::string as_json(const tiles::Problem& problem, const tiles::Outcome& outcome) {
    return report::json_text([&](report::JsonWriter& json) {
      json.begin_object();
      write_fields(json, problem);
      json.key("equal").value(outcome.equal);
      json.key("updates").value(outcome.updates);
      json.key("triggered").value(outcome.triggered);
      write(json, "unfused", outcome.unfused);
      write(json, "overlapped", outcome.overlapped);
      json.key("hop_s").value(outcome.hop_s);
      json.key("recurrence_s").value(outcome.recurrence_s);
      json.end_object();
    });
  }

  FieldFlags<tiles::Problem> fields_;
  bool json_ = false;
};

}  // namespace

std::unique_ptr<Command> make_tiles() {
  return std::make_unique<Tiles>();
}

}  // namespace orrery::cli
