// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/format.h"
#include "base/one_of.h"
#include "base/reader.h"
#include "cli/commands.h"
#include "cli/network_flag.h"
#include "cli/progress.h"
#include "machine/device_groups.h"
#include "report/json_writer.h"
#include "study/collective_sweep.h"

namespace orrery::cli {
namespace {

constexpr const char* kCollectiveExamples =
    "Sizes count as in nccl-tests: all_reduce, broadcast and send_recv the buffer of one rank,\n"
    "all_gather, reduce_scatter and all_to_all the buffer of all shards. algbw = size / time;\n"
    "busbw = algbw times 2(n-1)/n, (n-1)/n or 1.\n"
    "Examples:\n"
    "  orrery collective all_reduce --machine dgx-h100 --devices 64 --min 8B --max 8GiB\n"
    "  orrery collective all_reduce --machine dgx-h100 --devices 8 --algorithm ring --json\n"
    "  orrery collective all_reduce --machine dgx-h100 --devices 8 --algorithm custom\n"
    "  orrery collective all_gather --machine tpu-v4 --devices 64 --network fifo\n"
    "  orrery collective all_to_all --machine dgx-a100-80g --devices 16 --algorithm rail\n"
    "  orrery collective all_reduce --machine dgx-a100-80g --devices 64 --algorithm themis\n";

template <class E>
E take_name(std::string_view flag, const std::string& text, std::optional<E> value,
            Error& mistakes) {
  if (!value) {
    mistakes.add(wrong_value(flag, text, one_of<E>(text)));
  }
  return value.value_or(E{});
}

class Collective : public Command {
 public:
  void declare(Options& options) override {
    options.positional("KIND", kind_, all_names<graph::CollectiveKind>());
    options.value("--machine", machine_, "NAME|FILE",
                  "a name of `orrery list machines`, or a file");
    options.value("--devices", devices_, "INT", "members of the group");
    options.value("--stride", stride_, "INT", "ranks between members; default 1");
    options.value("--min", smallest_, "SIZE",
                  "first size, such as 512 (bytes) or 4MiB; default 8 B");
    options.value("--max", largest_, "SIZE", "last size; default 8 GiB");
    options.value("--factor", factor_, "NUMBER", "from one size to the next; default 2");
    options.value("--algorithm", algorithm_, "NAME",
                  all_names<collective::CollectiveAlgorithm>() + "; default auto");
    options.value(
        "--chunks", chunks_, "INT",
        "of themis (default 64 or fewer) and hierarchical (default 1): parts that flow through "
        "the dimensions");
    network_.declare(options);
    topology_.declare(options);
    options.flag("--json", json_, "print one JSON object; bytes, seconds, bytes per second");
    options.footer(kCollectiveExamples);
  }

  Result<std::string> run(Error mistakes) override {
    const collective::SweepOptions options = parse(mistakes);
    const simulate::NetworkModel network = network_.read(mistakes);
    if (!machine_) {
      mistakes.add({"--machine", {}, {}, "missing; expected a name of `orrery list machines`"});
    }
    machine::Machine machine =
        machine_ ? load_named("--machine", *machine_, machine::load_alike, mistakes)
                 : machine::Machine();
    topology_.lay(machine, mistakes);
    if (!mistakes.empty()) {
      return fail(std::move(mistakes));
    }
    ProgressBar bar;
    const auto tell = [&](double share, std::uint64_t /*events*/) { bar.update(share); };
    return study::sweep_on(network, machine, options, tell)
        .map([&](const study::SweepTable& table) {
          return json_ ? as_json(machine, network, options, table)
                       : as_table(machine, network, options, table);
        })
        .map_error([&](Error error) { return as_given(std::move(error)); });
  }

 private:
  collective::SweepOptions parse(Error& mistakes) const {
    collective::SweepOptions options;
    options.kind = take_name("collective", kind_, collective::collective_named(kind_), mistakes);
    if (algorithm_) {
      options.algorithm =
          take_name("--algorithm", *algorithm_, collective::algorithm_named(*algorithm_), mistakes);
    }
    if (!devices_) {
      mistakes.add({"--devices", {}, {}, "missing; expected the number of members"});
    }
    take("--devices", devices_, options.devices, mistakes);
    take("--stride", stride_, options.stride, mistakes);
    take_size("--min", smallest_, options.smallest, mistakes);
    take_size("--max", largest_, options.largest, mistakes);
    take("--chunks", chunks_, options.chunks, mistakes);
    take("--factor", factor_, options.factor, mistakes);
    return options;
  }

  /// Mistakes echo what stands on the command line.
  Error as_given(Error error) const {
    for (Mistake& mistake : error.mistakes) {
      for (const auto& [flag, text] : {std::pair{"--devices", &devices_},
                                       {"--stride", &stride_},
                                       {"--min", &smallest_},
                                       {"--max", &largest_},
                                       {"--factor", &factor_},
                                       {"--chunks", &chunks_},
                                       {"--algorithm", &algorithm_}}) {
        if (mistake.where == flag && *text) {
          mistake.found = **text;
        }
      }
    }
    return error;
  }

  /// A number alone counts bytes, as nccl-tests' -b and -e do.
  static void take_size(std::string_view flag, std::optional<std::string> text, Bytes& into,
                        Error& mistakes) {
    if (text && parse_integer(*text)) {
      *text += " B";
    }
    take(flag, text, into, mistakes);
  }

  static std::string algorithm_of(const collective::SweepRow& row) {
    std::string text(name_of(row.algorithm));
    return row.protocol.empty() ? text : text + " " + row.protocol;
  }

  static std::string as_table(const machine::Machine& machine, simulate::NetworkModel network,
                              const collective::SweepOptions& options,
                              const study::SweepTable& table) {
    std::string text = fmt::format(
        "{} over {} devices of {}, network {}\n{:>16} {:>15}{:>14}{:>14}  {}\n{:>16} {:>15}{:>14}"
        "{:>14}\n",
        name_of(options.kind), options.devices, machine.name, name_of(network), "size", "time",
        "algbw", "busbw", "algorithm", "(B)", "(us)", "(GB/s)", "(GB/s)");
    for (const collective::SweepRow& row : table.rows) {
      text += fmt::format("{:>16} {:>15.2f}{:>14.2f}{:>14.2f}  {}\n", row.bytes.value(),
                          1e6 * to_seconds(row.time), row.algbw / 1e9, row.busbw / 1e9,
                          algorithm_of(row));
    }
    for (const study::PublishedBandwidth& report : table.published) {
      text +=
          fmt::format("published: busbw {:.0f} GB/s from {} ({}; {})\n", report.busbw.value() / 1e9,
                      to_string(report.from), report.how, report.source);
    }
    if (const auto [least, most] = study::bandwidth_band(table); least < most) {
      text += fmt::format("take {:.0f} to {:.0f} GB/s for {}: the prediction and the reports\n",
                          least / 1e9, most / 1e9, to_string(table.rows.back().bytes));
    }
    for (const std::string& note : table.notes) {
      text += "note: " + note + "\n";
    }
    return text;
  }

  static std::string as_json(const machine::Machine& machine, simulate::NetworkModel network,
                             const collective::SweepOptions& options,
                             const study::SweepTable& table) {
    return report::json_text([&](report::JsonWriter& json) {
      json.begin_object();
      json.key("collective").value(name_of(options.kind));
      json.key("machine").value(machine.name);
      json.key("devices").value(options.devices);
      json.key("network").value(name_of(network));
      json.key("rows").objects(table.rows, [&](const collective::SweepRow& row) {
        json.key("bytes").value(row.bytes.value());
        json.key("time_s").value(to_seconds(row.time));
        json.key("algbw").value(row.algbw);
        json.key("busbw").value(row.busbw);
        json.key("algorithm").value(name_of(row.algorithm));
        json.key("protocol").value(row.protocol);
      });
      json.key("published").objects(table.published, [&](const study::PublishedBandwidth& report) {
        json.key("from").value(report.from.value());
        json.key("busbw").value(report.busbw.value());
        json.key("how").value(report.how);
        json.key("source").value(report.source);
      });
      const auto [least, most] = study::bandwidth_band(table);
      json.key("band").begin_object();
      json.key("least").value(least);
      json.key("most").value(most);
      json.end_object();
      json.key("notes").values(table.notes).end_object();
    });
  }

  std::string kind_;
  std::optional<std::string> machine_;
  std::optional<std::string> devices_;
  std::optional<std::string> stride_;
  std::optional<std::string> smallest_;
  std::optional<std::string> largest_;
  std::optional<std::string> factor_;
  std::optional<std::string> algorithm_;
  NetworkFlag network_;
  TopologyFlag topology_;
  std::optional<std::string> chunks_;
  bool json_ = false;
};

}  // namespace

std::unique_ptr<Command> make_collective() {
  return std::make_unique<Collective>();
}

}  // namespace orrery::cli
