// SPDX-License-Identifier: Apache-2.0
#include "cli/native_flags.h"

#include <utility>

#include "base/reader.h"
#include "compat/astra/machine.h"
#include "machine/device_groups.h"
#include "machine/read_wires.h"
#include "study/trace_workload.h"

namespace orrery::cli {
namespace {

/// Returns the files of fields, whose names compat/astra does not keep.
Error in_files(Error error, const astra::Files& files) {
  for (Mistake& mistake : error.mistakes) {
    mistake.where = mistake.field == astra::kMemoryType ? files.memory : files.system;
  }
  return error;
}

}  // namespace

void NativeFlags::declare(Options& options) {
  options.group("Links");
  options.value(
      "--network", network_, "MODEL",
      "fifo, flow, flit or packet: messages share links of all dimensions; with --native its "
      "model (" +
          all_names<simulate::NetworkModel>() + "; default ports)");
  options.value("--topology", topology_, "SPEC|FILE",
                "messages pass this network of links (fat_tree:k=8, ns-3's or htsim's file; "
                "`orrery show topology --help`), NPU d being its host d");
  options.group("Native");
  options.flag("--native", native_,
               "also on Orrery's own event loop, as `orrery simulate --chakra`, side by side");
  options.value("--machine", name_, "NAME|FILE",
                "native run on this machine instead of what the files describe");
}

void NativeFlags::read(bool has_links, bool has_backend, astra::RunOptions& options,
                       Error& mistakes) {
  const std::string asked = network_.value_or(has_links || topology_ ? "flow" : "ports");
  model_ = network_named("--network", native_ ? network_.value_or("ports") : asked, mistakes);
  if (!native_ && (network_ || topology_ || has_links)) {
    const auto backend = value_of<astra::Backend>(name_of(model_));
    if (asked == "ports") {
      mistakes.add(
          wrong_value("--network", asked, "fifo, flow, flit or packet; ports goes with --native"));
    } else if (has_backend) {
      mistakes.add({"--network-backend",
                    {},
                    {},
                    "not with --network, --topology or --logical-topology-configuration, which say "
                    "how messages share links"});
    } else {
      options.backend = backend.value_or(astra::Backend::flow);
    }
  }
  if (!native_ && name_) {
    mistakes.add({"--machine", {}, {}, "goes with --native"});
  } else if (name_) {
    machine_ = load_named("--machine", *name_, machine::load_alike, mistakes);
  }
}

Result<machine::Machine> NativeFlags::machine_for(const astra::RunInput& input,
                                                  const astra::RunOptions& options) const {
  return name_ ? machine::with_devices(machine_, input.traces.ranks())
               : astra::machine_of(input, options.injection_scale);
}

Result<topology::Wires> NativeFlags::wires_for(const std::string& network,
                                               std::int64_t ranks) const {
  ConfigNode spec;
  spec.kind = ConfigNode::Kind::scalar;
  spec.text = network;
  auto wires = machine::read_wires(spec, ranks);
  if (!wires) {
    for (Mistake& mistake : wires.error().mistakes) {
      mistake.where = topology_ ? "--topology" : "--network-configuration";
    }
  }
  return wires;
}

Result<void> NativeFlags::lay(const astra::Loaded& loaded, astra::RunOptions& options) const {
  const std::string links = topology_.value_or(loaded.topology);
  if (links.empty()) {
    return {};
  }
  return wires_for(links, loaded.input.traces.ranks()).transform([&](topology::Wires wires) {
    options.wires = std::move(wires);
  });
}

Result<study::WorkloadRun> NativeFlags::run_loop(const astra::Loaded& loaded,
                                                 const astra::RunOptions& options,
                                                 const astra::Files& files) const {
  const astra::RunInput& input = loaded.input;
  if (auto portable = astra::check_portable(input.system); !portable) {
    return fail(in_files(std::move(portable.error()), files));
  }
  auto machine = machine_for(input, options);
  if (!machine) {
    return fail(name_ ? std::move(machine.error()) : in_files(std::move(machine.error()), files));
  }
  machine->name = name_.value_or(files.network);
  if (const std::string links = topology_.value_or(loaded.topology); !links.empty()) {
    auto wires = wires_for(links, input.traces.ranks());
    if (!wires) {
      return fail(std::move(wires.error()));
    }
    machine->wires = std::move(*wires);
  }
  auto workload = study::workload_of(input.traces, *machine, !input.system.roofline);
  if (!workload) {
    return fail(std::move(workload.error()));
  }
  simulate::SimulateOptions how;
  how.fold = options.fold;
  how.network = model_;
  how.progress = [&](double share, std::uint64_t) {
    if (options.progress) {
      options.progress(share);
    }
  };
  if (!name_) {
    how.algorithms.fill(workload->groups.size(), astra::algorithm_of(input));
  }
  return study::run_workload(files.workload, std::move(*workload), *machine, how);
}

Result<report::NativeReport> NativeFlags::run(const astra::Loaded& loaded,
                                              const astra::RunOptions& options,
                                              const astra::Files& files) const {
  auto native = run_loop(loaded, options, files);
  if (!native) {
    return fail(std::move(native.error()));
  }
  report::NativeReport report;
  report.native = std::move(*native);
  report.backend = name_of(options.backend);
  if (auto compat = astra::run(loaded.input, options)) {
    report.compat = std::move(*compat);
  } else {
    report.compat_failure = compat.error().to_string();
  }
  return report;
}

}  // namespace orrery::cli
