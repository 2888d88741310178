// SPDX-License-Identifier: Apache-2.0
/// orrery fuse: what fusing communication makes of a plan, of a published pair, or of any change of
/// layout.
#include <fmt/format.h>

#include "base/format.h"
#include "cli/commands.h"
#include "cli/layout_flags.h"
#include "cli/plan_flags.h"
#include "cli/step_flags.h"
#include "collective/layout/convert.h"
#include "collective/layout/fuse_workload.h"
#include "collective/layout/packing.h"
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
class Fuse : public Command {
 public:
  void declare(Options& options) override {
    step_.declare(options);
    options.flag("--json", json_, "print one JSON object");
    layouts_.declare(options);
    plan_.declare(options, true, true);
    options.footer(kFuseExamples);
  }

  Result<std::string> run(Error mistakes) override {
    return layouts_.given() ? run_layouts(std::move(mistakes)) : run_plan(std::move(mistakes));
  }

 private:
  Result<std::string> run_plan(Error mistakes) {
    layouts_.refuse(mistakes);
    PlannedStep step = read_planned_step(step_, plan_, mistakes);
    step.plan.plan.fuse_communication = false;  // both ways are run
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
      json.key("places").objects(places, [&](const layout::Fusion& one) {
        json.key("role").value(one.role);
        json.key("place").value(one.place);
        json.key("fused").value(one.reason.empty());
        json.key("reason").value(one.reason);
        json.key("ranks").value(one.ranks);
        json.key("bytes_before").value(one.before.value());
        json.key("bytes_after").value(one.after.value());
        json.key("time_before_s").value(to_seconds(one.time_before));
        json.key("time_after_s").value(to_seconds(one.time_after));
      });
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
    plan_.refuse(layouts_.given(), mistakes);
    const StepInput step = step_.read_machine(layouts_.given(), mistakes);
    collect(machine::check_dimensions_only(step.machine, "fuse"), mistakes);
    if (step.devices > 0) {
      mistakes.add({"--devices",
                    {},
                    {},
                    fmt::format("contradicts {}, which has its ranks", layouts_.given())});
    }
    std::vector<LayoutCase> cases = layouts_.read(mistakes);
    if (!mistakes.empty()) {
      return fail(std::move(mistakes));
    }
    for (LayoutCase& one : cases) {
      auto machine = machine::with_devices(step.machine, one.problem.mesh.ranks());
      if (!machine) {
        return fail(std::move(machine.error()));
      }
      const layout::Cost cost = layout::machine_cost(one.problem.mesh, *machine);
      auto steps = layout::cheapest(one.problem, cost);
      if (!steps) {
        return fail(Error({"--to",
                           {},
                           layouts_.wanted(),
                           "a layout that can be reached: copies do not become sums"}));
      }
      one.fused = std::move(*steps);
      // What is published counts too: a search over single steps may price it alike.
      if (!one.base.empty() && layout::total_cost(one.problem, one.base, cost) <
                                   layout::total_cost(one.problem, one.fused, cost)) {
        one.fused = one.base;
      }
      for (const auto* sequence : {&one.base, &one.published, &one.fused}) {
        if (Error late = layout::beyond_time(one.name, one.problem, *sequence, cost);
            !late.empty()) {
          return fail(std::move(late));
        }
      }
    }
    return table_of(step.machine, cases);
  }

  struct Sums {
    double bytes = 0;
    double seconds = 0;
  };

  static Sums total(const LayoutCase& one, const std::vector<layout::Step>& steps,
                    const layout::Cost& seconds) {
    return {layout::total_cost(one.problem, steps, layout::byte_cost(one.problem.mesh)),
            layout::total_cost(one.problem, steps, seconds)};
  }

  Result<std::string> table_of(const machine::Machine& machine,
                               const std::vector<LayoutCase>& cases) const {
    std::string table =
        fmt::format("{}, bytes that the busiest rank sends, time alone\n", machine.name);
    const std::string json = report::json_text([&](report::JsonWriter& out) {
      out.begin_object();
      out.key("machine").value(machine.name);
      out.key("cases").array(cases,
                             [&](const LayoutCase& one) { add_case(machine, one, out, table); });
      out.end_object();
    });
    return json_ ? json : table;
  }

  static void add_case(const machine::Machine& whole, const LayoutCase& one,
                       report::JsonWriter& out, std::string& table) {
    const auto machine = machine::with_devices(whole, one.problem.mesh.ranks());
    const layout::Cost seconds = layout::machine_cost(one.problem.mesh, *machine);
    out.begin_object();
    out.key("name").value(one.name);
    out.key("ranks").value(one.problem.mesh.ranks());
    out.key("from").value(to_string(one.problem.from, one.problem.mesh));
    out.key("to").value(to_string(one.problem.to, one.problem.mesh));
    table += fmt::format("{}: {} -> {}\n", one.name, to_string(one.problem.from, one.problem.mesh),
                         to_string(one.problem.to, one.problem.mesh));
    if (!one.base.empty()) {
      add_steps("base", one, one.base, *machine, out, table);
    }
    add_steps("fused", one, one.fused, *machine, out, table);
    const Sums fused = total(one, one.fused, seconds);
    out.key("bytes_after").value(static_cast<std::int64_t>(fused.bytes));
    out.key("time_after_s").value(fused.seconds);
    if (!one.base.empty()) {
      add_published(one, fused, seconds, out, table);
    }
    out.end_object();
  }

  static void add_steps(std::string_view key, const LayoutCase& one,
                        const std::vector<layout::Step>& steps, const machine::Machine& machine,
                        report::JsonWriter& out, std::string& table) {
    const layout::Mesh& mesh = one.problem.mesh;
    const layout::Cost seconds = layout::machine_cost(mesh, machine);
    out.key(key).array(steps, [&](const layout::Step& step) {
      const layout::Shape& shape = layout::shape_of(one.problem, step);
      const double bytes = layout::byte_cost(mesh)(step, shape);
      const layout::Packing packing = layout::packing_of(step, shape, mesh, machine.device);
      const double time = seconds(step, shape);
      out.begin_object();
      out.key("step").value(to_string(step, mesh));
      out.key("bytes").value(static_cast<std::int64_t>(bytes));
      out.key("time_s").value(time);
      out.key("packing_s").value(to_seconds(packing.time));
      out.key("packing_blocks").value(packing.blocks);
      out.key("packing_block_bytes").value(packing.block.value());
      out.end_object();
      table += fmt::format("  {:<6}{:<32}{:>14}{:>12}{}\n", key, to_string(step, mesh),
                           to_string(Bytes(static_cast<std::int64_t>(bytes))),
                           to_string(from_seconds(time)), packing_text(packing));
    });
  }

  static std::string packing_text(const layout::Packing& packing) {
    return packing.blocks == 0
               ? ""
               : fmt::format(", {} to pack {} blocks of {}", to_string(packing.time),
                             packing.blocks, to_string(packing.block));
  }

  /// Adds the published times of the pair's base and fused sequences.
  static void add_published(const LayoutCase& one, const Sums& fused, const layout::Cost& seconds,
                            report::JsonWriter& out, std::string& table) {
    const Sums base = total(one, one.base, seconds);
    const auto speedup = [&](double of) { return of > 0 ? base.seconds / of : 1; };
    out.key("bytes_before").value(static_cast<std::int64_t>(base.bytes));
    out.key("time_before_s").value(base.seconds);
    out.key("speedup").value(speedup(fused.seconds));
    table += fmt::format("  {} -> {}, {} -> {}: {:.3f}x\n",
                         to_string(Bytes(static_cast<std::int64_t>(base.bytes))),
                         to_string(Bytes(static_cast<std::int64_t>(fused.bytes))),
                         to_string(from_seconds(base.seconds)),
                         to_string(from_seconds(fused.seconds)), speedup(fused.seconds));
    const double published = total(one, one.published, seconds).seconds;
    out.key("time_published_s").value(published);
    out.key("speedup_published").value(speedup(published));
    if (published > fused.seconds) {
      table += fmt::format("  fused as published {}: {:.3f}x{}\n",
                           to_string(from_seconds(published)), speedup(published),
                           published > base.seconds ? ", slower than not fused" : "");
    }
  }

  StepFlags step_;
  PlanFlags plan_;
  bool json_ = false;
  LayoutFlags layouts_;
};

}  // namespace

std::unique_ptr<Command> make_fuse() {
  return std::make_unique<Fuse>();
}

}  // namespace orrery::cli
