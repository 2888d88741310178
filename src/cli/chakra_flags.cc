// SPDX-License-Identifier: Apache-2.0
#include "cli/chakra_flags.h"

#include <utility>

#include "cli/progress.h"
#include "study/trace_workload.h"
#include "workload/chakra/load.h"
#include "workload/chakra/trace_files.h"

namespace orrery::cli {
namespace {

Result<std::int64_t> ranks_of(const std::string& prefix, std::int64_t devices) {
  if (devices > 0) {
    return devices;
  }
  auto ranks = chakra::count_trace_files(prefix);
  if (ranks && *ranks == 0) {
    return fail(Error(Mistake{
        "--devices", {}, {}, "missing; expected the number of ranks, which all have one file"}));
  }
  return ranks;
}

}  // namespace

void ChakraFlags::declare(Options& options) {
  options.value("--chakra", prefix_, "PREFIX",
                "run the Chakra traces PREFIX.<rank>.et (or .json) instead of a model and plan");
  options.value("--groups", groups_, "FILE", "with --chakra: communicator groups, {\"1\": [0, 1]}");
  options.flag("--roofline", roofline_,
               "with --chakra: time computing by num_ops and tensor_size, not by durations");
}

void ChakraFlags::check(Error& mistakes) const {
  if (given()) {
    return;
  }
  if (groups_) {
    mistakes.add({"--groups", {}, {}, "goes with --chakra"});
  }
  if (roofline_) {
    mistakes.add({"--roofline", {}, {}, "goes with --chakra"});
  }
}

Result<graph::Workload> ChakraFlags::read(const machine::Machine& machine, std::int64_t devices,
                                          bool tensors) const {
  const auto ranks = ranks_of(*prefix_, devices);
  if (!ranks) {
    return fail(ranks.error());
  }
  const auto fitted = machine::with_devices(machine, *ranks);
  if (!fitted) {
    return fail(fitted.error());
  }
  ProgressBar bar;
  const auto traces = chakra::load({.prefix = *prefix_,
                                    .ranks = *ranks,
                                    .groups = groups_,
                                    .progress = [&](double share) { bar.update(share); }})
                          .and_then([&](chakra::TraceSet set) {
                            return chakra::with_work(std::move(set), *prefix_);
                          });
  if (!traces) {
    return fail(traces.error());
  }
  if (!tensors) {
    return study::workload_of(*traces, *fitted, !roofline_);
  }
  auto uses = study::tensors_of(*prefix_);
  if (!uses) {
    return fail(std::move(uses.error()));
  }
  return study::workload_of(*traces, *fitted, !roofline_, std::move(*uses));
}

}  // namespace orrery::cli
