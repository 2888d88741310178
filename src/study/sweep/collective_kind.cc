// SPDX-License-Identifier: Apache-2.0
#include <memory>

#include "base/one_of.h"
#include "base/reader.h"
#include "collective/sweep.h"
#include "machine/machine.h"
#include "study/collective_sweep.h"
#include "study/sweep/config_path.h"
#include "study/sweep/kind.h"

namespace orrery::sweep {
namespace {

/// A Measurement is what a point measures.
struct Measurement {
  machine::Machine machine;
  collective::SweepOptions options;
  simulate::NetworkModel network = simulate::NetworkModel::ports;
};

/// `collective: {kind, size, devices, stride, algorithm, chunks}`.
collective::SweepOptions read_options(Reader& description) {
  collective::SweepOptions options;
  const ConfigNode* node = description.child("collective", true);
  if (node == nullptr) {
    return options;
  }
  Reader read(*node);
  const auto kind = read.required<std::string>("kind");
  const auto named = collective::collective_named(kind);
  read.require(named.has_value(), "kind", one_of<graph::CollectiveKind>(kind));
  options.kind = named.value_or(options.kind);
  options.devices = read.required<std::int64_t>("devices");
  options.stride = read.optional<std::int64_t>("stride", 1);
  options.smallest = options.largest = read.required<Bytes>("size");
  const auto algorithm =
      read.optional<std::string>("algorithm", std::string(name_of(options.algorithm)));
  const auto by = collective::algorithm_named(algorithm);
  read.require(by.has_value(), "algorithm",
               "one of " + collective::algorithm_names() +
                   did_you_mean(algorithm, names_of<collective::CollectiveAlgorithm>()));
  options.algorithm = by.value_or(options.algorithm);
  options.chunks = read.optional<std::int64_t>("chunks", 0);
  return description.absorb(read.finish(options));
}

Result<Measurement> read_measurement(const ConfigNode& description) {
  Reader read(description);
  Measurement measurement;
  if (const ConfigNode* machine = read.child("machine", true)) {
    measurement.machine = read.absorb(machine::parse_machine(*machine));
  }
  measurement.options = read_options(read);
  measurement.network = read.optional("network", simulate::NetworkModel::ports);
  return read.finish(std::move(measurement));
}

std::string inputs_of(const Measurement& on) {
  const collective::SweepOptions& options = on.options;
  return "machine " + machine::to_yaml(on.machine) + "\nnetwork " +
         std::string(name_of(on.network)) + "\ncollective " + std::string(name_of(options.kind)) +
         "\ndevices " + std::to_string(options.devices) + "\nstride " +
         std::to_string(options.stride) + "\nsize " + std::to_string(options.smallest.value()) +
         "\nalgorithm " + std::string(name_of(options.algorithm)) + "\nchunks " +
         std::to_string(options.chunks);
}

Outcome measure(const Measurement& on) {
  const auto table = study::sweep_on(on.network, on.machine, on.options);
  if (!table) {
    return refused(kCollectiveFigures.size(), table.error());
  }
  const collective::SweepRow& row = table->rows.front();
  return {{to_seconds(row.time), row.algbw, row.busbw, std::string(name_of(row.algorithm)),
           row.protocol},
          ""};
}

}  // namespace

Prepared prepare_collective(const ConfigNode& description) {
  auto read = read_measurement(description);
  if (!read) {
    return {.inputs = "unread " + canonical_text(description), .mistakes = read.error(), .run = {}};
  }
  const auto on = std::make_shared<Measurement>(std::move(*read));
  return {.inputs = inputs_of(*on), .mistakes = {}, .run = [on](Shared&) { return measure(*on); }};
}

}  // namespace orrery::sweep
