// SPDX-License-Identifier: Apache-2.0
#include "study/collective_sweep.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string>
#include <utility>

#include "base/beyond_time.h"
#include "base/file.h"
#include "base/reader.h"
#include "collective/left_out.h"
#include "collective/phase_messages.h"
#include "simulate/lone_collective.h"
#include "simulate/simulate.h"

namespace orrery::study {
namespace {

Mistake whole_only(const collective::SweepOptions& options, simulate::NetworkModel network) {
  return {"--chunks",
          {},
          std::to_string(options.chunks),
          fmt::format("--network ports; {} sends every message of a whole collective",
                      name_of(network))};
}

std::string without_messages(simulate::NetworkModel network,
                             const collective::CollectivePhase& wanted,
                             const collective::CollectivePhase& taken) {
  return fmt::format("network {} runs {} in place of auto's {}, which has no messages there",
                     name_of(network), name_of(taken.algorithm), name_of(wanted.algorithm));
}

Error beyond_time(const collective::SweepOptions& options,
                  const std::vector<collective::SweepRow>& rows) {
  Error error;
  for (const collective::SweepRow& row : rows) {
    if (row.time.is_overflow()) {
      error.add(Mistake{fmt::format("{} of {} B", name_of(options.kind), row.bytes.value()),
                        {},
                        {},
                        kBeyondTime});
    }
  }
  return error;
}

/// Packets take work by the byte, all else by the message.
class SizesDone {
 public:
  SizesDone(simulate::NetworkModel network, const std::vector<Bytes>& sizes,
            const simulate::Progress& progress)
      : by_byte_(row_of(network).by_byte), progress_(progress) {
    for (const Bytes bytes : sizes) {
      all_ += work_of(bytes);
    }
  }

  /// Returns the progress of the next size.
  simulate::Progress of(Bytes bytes) {
    const double before = done_;
    const double work = work_of(bytes);
    done_ += work;
    return [this, before, work](double share, std::uint64_t events) {
      if (progress_) {
        progress_((before + share * work) / all_, events);
      }
    };
  }

 private:
  double work_of(Bytes bytes) const {
    constexpr double kMessages = 1e6;  // bytes whose packets take as long as a size's messages
    return kMessages + (by_byte_ ? static_cast<double>(bytes.value()) : 0);
  }

  bool by_byte_;
  const simulate::Progress& progress_;
  double all_ = 0;
  double done_ = 0;
};

/// Returns the reports of the configuration that are of this collective, or the file's mistakes.
Result<std::vector<PublishedBandwidth>> published_on(const machine::Machine& machine,
                                                     const collective::SweepOptions& options,
                                                     const ConfigNode& node) {
  Reader read(node);
  std::vector<PublishedBandwidth> found;
  for (const ConfigNode* item : read.take_items("reports", true)) {
    Reader of(*item);
    const auto on = of.required<std::string>("machine");
    const auto kind = of.required<graph::CollectiveKind>("collective");
    const auto devices = of.required<std::int64_t>("devices");
    PublishedBandwidth report{.from = of.required<Bytes>("from"),
                              .busbw = of.required<Bandwidth>("busbw"),
                              .how = of.required<std::string>("how"),
                              .source = of.required<std::string>("source")};
    of.require(report.busbw > Bandwidth(0), "busbw", "above 0");
    report = read.absorb(of.finish(std::move(report)));
    if (on == machine.name && kind == options.kind && devices == options.devices &&
        options.stride == 1) {
      found.push_back(std::move(report));
    }
  }
  return read.finish(std::move(found));
}

Result<std::vector<PublishedBandwidth>> published_on(const machine::Machine& machine,
                                                     const collective::SweepOptions& options) {
  if (list_configs("collectives").empty()) {
    return std::vector<PublishedBandwidth>();
  }
  return find_config("collectives", "published")
      .and_then(load_config)
      .and_then([&](const ConfigNode& node) { return published_on(machine, options, node); });
}

}  // namespace

std::pair<double, double> bandwidth_band(const SweepTable& table) {
  const collective::SweepRow& largest = table.rows.back();
  std::pair<double, double> band{largest.busbw, largest.busbw};
  for (const PublishedBandwidth& report : table.published) {
    if (largest.bytes >= report.from) {
      band.first = std::min(band.first, report.busbw.value());
      band.second = std::max(band.second, report.busbw.value());
    }
  }
  return band;
}

Result<SweepTable> sweep_on(simulate::NetworkModel network, const machine::Machine& machine,
                            const collective::SweepOptions& options,
                            const simulate::Progress& progress) {
  const auto on = collective::sweep_case(machine, options);
  if (!on) {
    return fail(on.error());
  }
  auto published = published_on(machine, options);
  if (!published) {
    return fail(std::move(published.error()));
  }
  SweepTable table{
      .rows = {}, .published = *std::move(published), .notes = collective::left_out(*on, options)};
  if (network == simulate::NetworkModel::ports && !machine.wires.graph) {
    return collective::sweep_collective(machine, options)
        .and_then([&](std::vector<collective::SweepRow> rows) -> Result<SweepTable> {
          if (Error late = beyond_time(options, rows); !late.empty()) {
            return fail(std::move(late));
          }
          table.rows = std::move(rows);
          return std::move(table);
        });
  }
  if (options.chunks > 0) {
    return fail(Error(whole_only(options, network)));
  }
  simulate::SimulateOptions how;
  how.network = network;
  how.algorithms.set(simulate::kLoneGroup, options.algorithm);
  std::set<std::string> replaced;
  SizesDone done(network, on->sizes, progress);
  for (const Bytes bytes : on->sizes) {
    how.progress = done.of(bytes);
    const graph::Workload lone =
        simulate::lone_collective({.kind = options.kind,
                                   .bytes = bytes,
                                   .devices = options.devices,
                                   .stride = options.stride,
                                   .ranks = options.devices * options.stride});
    const auto timeline = simulate::simulate(lone, on->machine, how);
    if (!timeline) {
      return fail(timeline.error());
    }
    how.progress(1, 0);
    const auto phases =
        collective::plan_messages(options.kind, bytes, on->extents, options.algorithm, on->machine);
    table.rows.push_back(collective::sweep_row(*on, options, bytes, phases, timeline->step_time));
    const auto wanted = collective::plan_collective(options.kind, bytes, on->extents,
                                                    options.algorithm, on->machine);
    if (wanted.front().algorithm != phases.front().algorithm) {
      replaced.insert(without_messages(network, wanted.front(), phases.front()));
    }
  }
  table.notes.insert(table.notes.end(), replaced.begin(), replaced.end());
  return table;
}

}  // namespace orrery::study
