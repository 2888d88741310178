// SPDX-License-Identifier: Apache-2.0
/// orrery fuse: what fusing communication makes of a plan, of a published pair, or of any change of
/// layout.
#include <fmt/format.h>

#include "base/format.h"
#include "base/reader.h"
#include "cli/commands.h"
#include "cli/plan_flags.h"
#include "cli/step_flags.h"
#include "collective/layout/convert.h"
#include "collective/layout/fuse_workload.h"
#include "collective/layout/pairs.h"
#include "machine/dimensions_only.h"
#include "report/json_writer.h"
#include "study/run.h"
#include "workload/parallel/lower.h"

namespace orrery::cli {
namespace {

constexpr const char* kFuseExamples =
    "With a model and a plan: where sums that leave a stage become slices, and the step with and\n"
    "without (`orrery simulate --fuse`). With --pair: the published sequence of collectives "
    "beside\n"
    "the cheapest that the machine's network allows. With --mesh: that of any change of layout;\n"
    "axes innermost first, layouts by axis: copies, sums, a dimension (0, 1, 2) or @STAGE.\n"
    "Examples:\n"
    "  orrery fuse --model gpt-7.5b --machine dgx-a100-80g --tp 8 --pp 4 --dp 1 --global-batch 8 "
    "\\\n"
    "              --sequence-parallel false\n"
    "  orrery fuse --machine dgx-h100 --pair all --ranks 4 --dp-groups 2 --tokens 4096 --width "
    "4096\n"
    "  orrery fuse --machine dgx-h100 --mesh tp=4,pp=2 --shape 4096x8192 --from sums,@0 \\\n"
    "              --to copies,@1 --json\n";
constexpr std::int64_t kMostRanks = 64;  // of a mesh: every pair of ranks is looked at
constexpr std::int64_t kMostExtent = std::int64_t{1} << 40;

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts(1);
  for (const char c : text) {
    if (c == separator) {
      parts.emplace_back();
    } else {
      parts.back() += c;
    }
  }
  return parts;
}

/// A change of layout with what is published for it, if anything.
struct Case {
  std::string name;
  layout::Problem problem;
  std::vector<layout::Step> base;
  std::vector<layout::Step> fused;
};

class Fuse : public Command {
 public:
  void declare(Options& options) override {
    step_.declare(options);
    options.flag("--json", json_, "print one JSON object");
    options.group("Pairs and layouts");
    options.value("--pair", pair_, "NAME|all", "one of " + all_names<layout::Pair>());
    options.value("--ranks", ranks_, "INT", "of a stage; default 4");
    options.value("--dp-groups", groups_, "INT", "of these, for pairs with ep; default 1");
    options.value("--tokens", tokens_, "INT", "of a dp group; default 1024");
    options.value("--width", width_, "INT", "elements of a token; default 1024");
    options.value("--top-k", copies_, "INT", "experts of a token; default 2");
    options.value("--mesh", mesh_, "AXES", "any change of layout: tp=4,pp=2");
    options.value("--shape", shape_, "EXTENTS", "of its tensor, up to three: 4096x8192");
    options.value("--element", element_, "SIZE", "bytes of an element; default '2 B'");
    options.value("--from", from_, "LAYOUT", "by axis: copies, sums, a dimension or @STAGE");
    options.value("--to", to_, "LAYOUT", "the same");
    plan_.declare(options, true);
    options.footer(kFuseExamples);
  }

  Result<std::string> run(Error mistakes) override {
    return pair_ || mesh_ ? run_layouts(std::move(mistakes)) : run_plan(std::move(mistakes));
  }

 private:
  Result<std::string> run_plan(Error mistakes) {
    const PlannedStep step = read_planned_step(step_, plan_, mistakes);
    if (!mistakes.empty()) {
      return fail(std::move(mistakes));
    }
    study::RunOptions how;
    const auto base = study::run_step(step.model, step.machine, step.plan.plan, step.devices, how);
    if (!base) {
      return fail(step.plan.placed(base.error()));
    }
    how.fuse = true;
    const auto fused = study::run_step(step.model, step.machine, step.plan.plan, step.devices, how);
    auto lowered = parallel::lower(base->model, base->plan,
                                   {.skip = {"fuse"}, .observe = {}, .machine = &base->machine});
    if (!fused || !lowered) {
      return fail(fused ? lowered.error() : fused.error());
    }
    const std::vector<layout::Fusion> places =
        layout::fuse_communication(std::move(*lowered), &base->machine).fusions;
    const Time before = base->timeline.step_time;
    const Time after = fused->timeline.step_time;
    return json_ ? plan_json(*base, places, before, after)
                 : plan_table(*base, places, before, after);
  }

  static std::string plan_json(const study::Run& run, const std::vector<layout::Fusion>& places,
                               Time before, Time after) {
    return report::json_text([&](report::JsonWriter& json) {
      json.begin_object();
      json.key("model").value(run.model.name);
      json.key("machine").value(run.machine.name);
      json.key("step_time_before_s").value(to_seconds(before));
      json.key("step_time_after_s").value(to_seconds(after));
      json.key("places").begin_array();
      for (const layout::Fusion& one : places) {
        json.begin_object();
        json.key("role").value(one.role);
        json.key("place").value(one.place);
        json.key("fused").value(one.reason.empty());
        json.key("reason").value(one.reason);
        json.key("ranks").value(one.ranks);
        json.key("bytes_before").value(one.before.value());
        json.key("bytes_after").value(one.after.value());
        json.key("time_before_s").value(to_seconds(one.time_before));
        json.key("time_after_s").value(to_seconds(one.time_after));
        json.end_object();
      }
      json.end_array();
      json.end_object();
    });
  }

  static std::string plan_table(const study::Run& run, const std::vector<layout::Fusion>& places,
                                Time before, Time after) {
    std::string text = fmt::format("{} on {}\n", run.model.name, run.machine.name);
    for (const layout::Fusion& one : places) {
      text += fmt::format("  {}, {}, {} ranks: {} -> {} a rank, {} -> {}: {}\n", one.role,
                          one.place, one.ranks, to_string(one.before), to_string(one.after),
                          to_string(one.time_before), to_string(one.time_after),
                          one.reason.empty() ? "fused" : "not, " + one.reason);
    }
    if (places.empty()) {
      text += "  no message carries a sum of this plan\n";
    }
    return text + fmt::format("step {} -> {}, {:.4f}x\n", to_string(before), to_string(after),
                              before / after);
  }

  Result<std::string> run_layouts(Error mistakes) {
    plan_.refuse(pair_ ? "--pair" : "--mesh", mistakes);
    const StepInput step = step_.read_machine(mistakes);
    if (auto known = machine::check_dimensions_only(step.machine, "fuse"); !known) {
      mistakes.add(std::move(known.error()));
    }
    std::vector<Case> cases = mesh_ ? any_case(mistakes) : pairs(mistakes);
    if (!mistakes.empty()) {
      return fail(std::move(mistakes));
    }
    for (Case& one : cases) {
      auto machine = machine::with_devices(step.machine, one.problem.mesh.ranks());
      if (!machine) {
        return fail(std::move(machine.error()));
      }
      const layout::Cost cost = layout::machine_cost(one.problem.mesh, *machine);
      auto steps = layout::cheapest(one.problem, cost);
      if (!steps) {
        return fail(
            Error({"--to", {}, *to_, "a layout that can be reached: copies do not become sums"}));
      }
      one.fused = std::move(*steps);
      // What is published counts too: a search over single steps may price it alike.
      if (!one.base.empty() && layout::total_cost(one.problem, one.base, cost) <
                                   layout::total_cost(one.problem, one.fused, cost)) {
        one.fused = one.base;
      }
    }
    return layouts(step.machine, cases);
  }

  std::int64_t whole(const char* flag, const std::optional<std::string>& text,
                     std::int64_t fallback, Error& mistakes) const {
    return whole_number(flag, text, fallback, kMostExtent, mistakes);
  }

  std::vector<Case> pairs(Error& mistakes) const {
    if (mesh_ || from_ || to_ || shape_ || element_) {
      mistakes.add({"--pair", {}, {}, "contradicts --mesh, --shape, --element, --from and --to"});
    }
    layout::PairSizes sizes;
    sizes.ranks = whole_number("--ranks", ranks_, 4, kMostRanks / 2, mistakes);
    sizes.dp = whole("--dp-groups", groups_, 1, mistakes);
    sizes.tokens = whole("--tokens", tokens_, 1024, mistakes);
    sizes.width = whole("--width", width_, 1024, mistakes);
    sizes.copies = whole("--top-k", copies_, 2, mistakes);
    const auto pair = value_of<layout::Pair>(*pair_);
    if (!pair && *pair_ != "all") {
      mistakes.add(wrong_value("--pair", *pair_,
                               "all or one of " + all_names<layout::Pair>() +
                                   did_you_mean(*pair_, names_of<layout::Pair>())));
    }
    if (mistakes.empty() && sizes.ranks % sizes.dp != 0) {
      mistakes.add(wrong_value("--dp-groups", *groups_, "a number that divides --ranks"));
    }
    std::vector<Case> cases;
    for (const Named<layout::Pair>& named : kNames<layout::Pair>) {
      if (mistakes.empty() && (!pair || *pair == named.value)) {
        layout::PairCase one = layout::pair_case(named.value, sizes);
        cases.push_back({std::string(named.name), std::move(one.problem), std::move(one.base), {}});
      }
    }
    return cases;
  }

  std::vector<Case> any_case(Error& mistakes) const {
    Case one;
    one.name = "layout";
    layout::Problem& problem = one.problem;
    std::int64_t ranks = 1;
    for (const std::string& axis : split(*mesh_, ',')) {
      const auto equals = axis.find('=');
      const auto size =
          parse_integer(equals == std::string::npos ? std::string() : axis.substr(equals + 1));
      if (!size || *size < 1 || equals == 0 || *size > kMostRanks / ranks) {
        mistakes.add(wrong_value(
            "--mesh", *mesh_, fmt::format("axes such as tp=4,pp=2, at most {} ranks", kMostRanks)));
        return {};
      }
      ranks *= *size;
      problem.mesh.axes.push_back({axis.substr(0, equals), *size});
    }
    constexpr std::size_t kMostAxes = 4;
    if (problem.mesh.axes.size() > kMostAxes) {
      mistakes.add(wrong_value("--mesh", *mesh_, fmt::format("at most {} axes", kMostAxes)));
    }
    problem.shape.element = Bytes(2);
    if (element_) {
      const auto size = parse_bytes(*element_);
      if (size && *size > Bytes(0) && *size <= Bytes(1024)) {
        problem.shape.element = *size;
      } else {
        mistakes.add(wrong_value("--element", *element_, size ? "1 to 1024 B" : size.error()));
      }
    }
    double product = 1;
    for (const std::string& extent : split(shape_.value_or("1024x1024"), 'x')) {
      const auto value = parse_integer(extent);
      problem.shape.extents.push_back(value && *value > 0 ? *value : 0);
      product *= static_cast<double>(problem.shape.extents.back());
    }
    if (!(product > 0 && product < 1e15) || problem.shape.extents.size() > layout::Shape::kMost) {
      mistakes.add(wrong_value("--shape", shape_.value_or(""),
                               "one to three extents such as 4096x8192, at most 1e15 elements"));
    }
    problem.from = read_layout("--from", from_, problem, mistakes);
    problem.to = read_layout("--to", to_, problem, mistakes);
    for (std::size_t i = 0; mistakes.empty() && i < problem.from.size(); ++i) {
      using Kind = layout::Placement::Kind;
      if ((problem.from[i].kind == Kind::only) != (problem.to[i].kind == Kind::only)) {
        mistakes.add({"--to",
                      {},
                      *to_,
                      "@STAGE for an axis that is at a stage in --from, and for no other"});
      }
    }
    return {one};
  }

  static layout::Layout read_layout(const char* flag, const std::optional<std::string>& text,
                                    const layout::Problem& problem, Error& mistakes) {
    const std::vector<std::string> parts = split(text.value_or(""), ',');
    const auto& axes = problem.mesh.axes;
    layout::Layout layout;
    for (std::size_t i = 0; i < std::min(parts.size(), axes.size()); ++i) {
      const std::string& part = parts[i];
      const bool stage = !part.empty() && part.front() == '@';
      const auto number = parse_integer(stage ? part.substr(1) : part);
      const auto most =
          stage ? axes[i].size : static_cast<std::int64_t>(problem.shape.extents.size());
      if (part == "copies") {
        layout.push_back(layout::Placement::replicate());
      } else if (part == "sums") {
        layout.push_back(layout::Placement::partial());
      } else if (number && *number >= 0 && *number < most) {
        layout.push_back(stage ? layout::Placement::only(static_cast<int>(*number))
                               : layout::Placement::shard(static_cast<int>(*number)));
      }
    }
    if (!text || layout.size() != axes.size() || parts.size() != axes.size()) {
      mistakes.add(wrong_value(flag, text.value_or(""),
                               "for every axis of --mesh copies, sums, a dimension of --shape "
                               "(0, 1, ...) or @STAGE, separated by commas"));
    }
    return layout;
  }

  struct Sums {
    double bytes = 0;
    double seconds = 0;
  };

  static Sums total(const Case& one, const std::vector<layout::Step>& steps,
                    const layout::Cost& seconds) {
    return {layout::total_cost(one.problem, steps, layout::byte_cost(one.problem.mesh)),
            layout::total_cost(one.problem, steps, seconds)};
  }

  Result<std::string> layouts(const machine::Machine& machine,
                              const std::vector<Case>& cases) const {
    std::string table =
        fmt::format("{}, bytes that the busiest rank sends, time alone\n", machine.name);
    const std::string json = report::json_text([&](report::JsonWriter& out) {
      out.begin_object();
      out.key("machine").value(machine.name);
      out.key("cases").begin_array();
      for (const Case& one : cases) {
        add_case(machine, one, out, table);
      }
      out.end_array();
      out.end_object();
    });
    return json_ ? json : table;
  }

  static void add_case(const machine::Machine& whole, const Case& one, report::JsonWriter& out,
                       std::string& table) {
    const auto machine = machine::with_devices(whole, one.problem.mesh.ranks());
    const layout::Cost seconds = layout::machine_cost(one.problem.mesh, *machine);
    out.begin_object();
    out.key("name").value(one.name);
    out.key("ranks").value(one.problem.mesh.ranks());
    out.key("from").value(to_string(one.problem.from, one.problem.mesh));
    out.key("to").value(to_string(one.problem.to, one.problem.mesh));
    table += fmt::format("{}: {} -> {}\n", one.name, to_string(one.problem.from, one.problem.mesh),
                         to_string(one.problem.to, one.problem.mesh));
    const auto add = [&](std::string_view key, const std::vector<layout::Step>& steps) {
      out.key(key).begin_array();
      for (const layout::Step& step : steps) {
        const layout::Shape& shape = layout::shape_of(one.problem, step);
        const double bytes = layout::byte_cost(one.problem.mesh)(step, shape);
        const double time = seconds(step, shape);
        out.begin_object();
        out.key("step").value(to_string(step, one.problem.mesh));
        out.key("bytes").value(static_cast<std::int64_t>(bytes));
        out.key("time_s").value(time);
        out.end_object();
        table += fmt::format("  {:<6}{:<32}{:>14}{:>12}\n", key, to_string(step, one.problem.mesh),
                             to_string(Bytes(static_cast<std::int64_t>(bytes))),
                             to_string(from_seconds(time)));
      }
      out.end_array();
    };
    if (!one.base.empty()) {
      add("base", one.base);
    }
    add("fused", one.fused);
    const Sums fused = total(one, one.fused, seconds);
    out.key("bytes_after").value(static_cast<std::int64_t>(fused.bytes));
    out.key("time_after_s").value(fused.seconds);
    if (!one.base.empty()) {
      const Sums base = total(one, one.base, seconds);
      const double speedup = fused.seconds > 0 ? base.seconds / fused.seconds : 1;
      out.key("bytes_before").value(static_cast<std::int64_t>(base.bytes));
      out.key("time_before_s").value(base.seconds);
      out.key("speedup").value(speedup);
      table += fmt::format("  {} -> {}, {} -> {}: {:.3f}x\n",
                           to_string(Bytes(static_cast<std::int64_t>(base.bytes))),
                           to_string(Bytes(static_cast<std::int64_t>(fused.bytes))),
                           to_string(from_seconds(base.seconds)),
                           to_string(from_seconds(fused.seconds)), speedup);
    }
    out.end_object();
  }

  StepFlags step_;
  PlanFlags plan_;
  bool json_ = false;
  std::optional<std::string> pair_;
  std::optional<std::string> ranks_;
  std::optional<std::string> groups_;
  std::optional<std::string> tokens_;
  std::optional<std::string> width_;
  std::optional<std::string> copies_;
  std::optional<std::string> mesh_;
  std::optional<std::string> shape_;
  std::optional<std::string> element_;
  std::optional<std::string> from_;
  std::optional<std::string> to_;
};

}  // namespace

std::unique_ptr<Command> make_fuse() {
  return std::make_unique<Fuse>();
}

}  // namespace orrery::cli
