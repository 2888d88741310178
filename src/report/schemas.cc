// SPDX-License-Identifier: Apache-2.0
#include "report/schemas.h"

#include <algorithm>
#include <array>
#include <optional>

#include "base/lists.h"
#include "report/calibration.h"
#include "report/collective_calibration.h"
#include "report/compare.h"
#include "report/diagnose.h"
#include "report/estimate.h"
#include "report/explain.h"
#include "report/fields.h"
#include "report/flit.h"
#include "report/goodput.h"
#include "report/host_fit.h"
#include "report/jobs.h"
#include "report/measured.h"
#include "report/mpi_calls.h"
#include "report/plan_division.h"
#include "report/ranking.h"
#include "report/reinforcement.h"
#include "report/replay.h"
#include "report/report.h"
#include "report/serving.h"
#include "report/spmd.h"
#include "report/spmd_mesh.h"
#include "report/validation.h"

namespace orrery::report {
namespace {

/// Declares what the command puts in front of what --json prints (cli/stamp.h).
void declare_stamp(Fields& fields) {
  fields.object("orrery", "what made this", [&] {
    fields.field("version", "of orrery", std::string());
    fields.list("inputs", {"files that arguments name, shipped configurations too", "one of them"},
                std::vector<std::string>(), [&](const std::string& none) {  // of a schema alone
                  fields.field("flag", "that names it", none);
                  fields.field("name", "of the file or configuration", none);
                  fields.field("hash", "of its bytes", none);
                });
  });
}

/// Declares a result of parts that hold nothing.
template <class... Parts>
void declare_empty(Fields& fields) {
  declare(Parts{}..., fields);
}

void declare_goodput(Fields& fields) {
  const goodput::Asked nothing;
  declare(GoodputReport{.asked = nothing, .lives = {}}, fields);
}

void declare_run_plan(Fields& fields) {
  declare(study::Run{}, study::RunPlan{}, goodput::Asked{}, 1, fields);
}

void declare_serving(Fields& fields) {
  const serving::Metrics nothing;
  const machine::Machine machine;
  declare(serving::Run{}, nothing, &nothing, &machine, fields);
}

struct DeclaredSchema {
  std::string_view name;
  std::string_view title;
  std::string_view sentence;
  void (*declare)(Fields&);
};

constexpr auto kSchemas = std::to_array<DeclaredSchema>({
    {"calibrate-collectives", "orrery calibrate collectives --json",
     "Coefficients of protocols fitted to measurements.", declare_empty<calibrate::CollectiveFit>},
    {"calibrate-gemm", "orrery calibrate gemm --json",
     "Coefficients of GEMM kernels fitted to measurements.",
     declare_empty<calibrate::GemmCalibration>},
    {"calibrate-kernels", "orrery calibrate attention --json, orrery calibrate moe --json",
     "Coefficients of fused attention or of MoE layers fitted to measurements.",
     declare_empty<calibrate::KernelCalibration>},
    {"calibrate-serving", "orrery calibrate serving --json",
     "Times of an engine's host fitted to those of requests at an endpoint.",
     declare_empty<serving::HostFit>},
    {"compare", "orrery compare --json",
     "Runs side by side; every list is in the order of the runs.",
     declare_empty<study::Comparison>},
    {"compare-measured", "orrery compare --measured --json",
     "A measured step beside the simulated one, by class of work. Times in seconds.",
     declare_empty<study::MeasuredComparison>},
    {"diagnose", "orrery diagnose --json", "What is wrong with a running job, from its telemetry.",
     declare_empty<diagnose::Diagnosis>},
    {"estimate", "orrery estimate --json", "Time of a training step without events.",
     declare_empty<study::StepEstimate>},
    {"explain", "orrery explain --json", "Why a step takes as long as it does.",
     declare_empty<study::Explanation>},
    {"flit", "orrery flit --json",
     "A network of routers under load; cycles, flits per node and cycle.",
     declare_empty<FlitReport>},
    {"flit-loop", "orrery flit --json, with --messages or --batch",
     "Messages and work that wait for one another; cycles.",
     [](Fields& fields) { declare_loop(FlitReport{}, fields); }},
    {"goodput", "orrery goodput --json",
     "Goodput of a long job with failures, checkpoints and restarts.", declare_goodput},
    {"mpi-check", "orrery mpi check --json", "A program compiled and run with each MPI.",
     declare_empty<std::vector<mpi_calls::CheckRow>>},
    {"mpi-score", "orrery mpi score --json", "Proposed MPI calls beside those of the programs.",
     declare_empty<mpi_calls::Score, mpi_calls::ScoreOptions>},
    {"mpi-train", "orrery mpi train --json",
     "A completer that has learned, each program completed from the others, beside the rules.",
     declare_empty<mpi_calls::Training, mpi_calls::Score, mpi_calls::Score>},
    {"plan-division", "orrery plan --also --json", "One budget of devices divided between models.",
     declare_empty<DivisionReport>},
    {"rank", "orrery rank --json",
     "Untrained architectures by zero-cost proxies and simulated cost.",
     declare_empty<RankingReport>},
    {"reinforce", "orrery reinforce --json", "How a step of reinforcement learning is divided.",
     declare_empty<ReinforcementReport>},
    {"replay", "orrery replay --json",
     "A step that ran on real ranks of MPI, and the machine fitted to its parts; errors are "
     "predicted / measured - 1.",
     declare_empty<Replay>},
    {"run-plan", "orrery run-plan --json", "A whole training run from one simulated step.",
     declare_run_plan},
    {"serve", "orrery serve --json",
     "An inference engine serving requests. Times in seconds on the client's clock.",
     declare_serving},
    {"simulate", "orrery simulate --json",
     "One training step. --csv has the same fields as columns, names of nested ones joined with "
     "dots (plan.tp); memory_bytes.* are of the fullest stage, named by memory_stage and "
     "memory_moment.",
     declare_empty<study::Run, std::optional<study::RunPlan>>},
    {"simulate-jobs", "orrery simulate --jobs --json",
     "Several jobs on one machine. Times in seconds.", declare_empty<study::JobsRun>},
    {"spmd", "orrery spmd --json", "The fastest program that all devices run alike.",
     declare_empty<SpmdRun>},
    {"validate", "orrery validate --json", "Published measurements and predictions.",
     declare_empty<std::vector<study::ValidationResult>>},
    {"spmd-mesh", "orrery spmd --mesh --json",
     "The fastest program on a mesh of two or three axes.", declare_empty<MeshRun>},
});

}  // namespace

std::vector<std::string_view> declared_schemas() {
  return mapped<std::string_view>(kSchemas, &DeclaredSchema::name);
}

std::string declared_schema(std::string_view name) {
  const auto* const schema = std::ranges::find(kSchemas, name, &DeclaredSchema::name);
  if (schema == kSchemas.end()) {
    return {};
  }
  SchemaFields fields(schema->title, schema->sentence);
  declare_stamp(fields);
  schema->declare(fields);
  return fields.schema();
}

}  // namespace orrery::report
