// SPDX-License-Identifier: Apache-2.0
/// orrery gemm, orrery attention, orrery moe: one kernel, or a file of them.
#include "study/kernels.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/beyond_time.h"
#include "base/collect.h"
#include "base/format.h"
#include "base/lists.h"
#include "base/reader.h"
#include "cli/commands.h"
#include "cli/plain_fields.h"
#include "cli/systolic_flags.h"
#include "machine/compute/pim.h"
#include "machine/device_groups.h"
#include "machine/machine.h"
#include "report/json_writer.h"

namespace orrery::cli {
namespace {

constexpr const char* kGemmExamples =
    "C[m, n] = A[m, k] B[k, n]. bound: on what most of the time depends: compute, memory or\n"
    "launch. A file's columns are named as the options (type, m, n, k, batch).\n"
    "Examples:\n"
    "  orrery gemm --machine dgx-h100 --m 4096 --n 4096 --k 4096\n"
    "  orrery gemm --machine dgx-h100 --type fp8 --m 8192 --n 28672 --k 8192 --json\n"
    "  orrery gemm --machine dgx-b200 --file rows.csv --json\n"
    "  orrery gemm --device systolic:256x256:os --m 256 --n 4096 --k 1024 --json\n"
    "  orrery gemm --machine pim-gpt --m 1 --n 3072 --k 768\n"
    "  orrery gemm --scale-sim google.cfg alexnet.csv\n";

constexpr const char* kAttentionExamples =
    "Fused (flash) attention, forward after writing keys and values to a paged cache, as\n"
    "inference engines run it; --cache false: as training does. bound: on what most of the time\n"
    "depends: compute, memory or launch. A file's columns are named as the options (type,\n"
    "batch, heads, kv_heads, head_dim, queries, keys, window, causal, backward, cache,\n"
    "framework, library).\n"
    "Examples:\n"
    "  orrery attention --machine dgx-h100 --heads 32 --head-dim 128 --queries 8192\n"
    "  orrery attention --machine dgx-h100 --batch 64 --heads 32 --kv-heads 8 --head-dim 128 \\\n"
    "                   --queries 1 --keys 4096\n"
    "  orrery attention --machine dgx-h100 --heads 32 --head-dim 128 --queries 4096 --backward \\\n"
    "                   --library flash2\n"
    "  orrery attention --machine dgx-h100 --file rows.csv --json\n";

constexpr const char* kMoeExamples =
    "The experts of one rank, without router, shared experts and exchange of tokens: rows to\n"
    "experts, first products, activation, second products, weighted sum. power_law: loads of\n"
    "experts as x^-1, the most loaded rank. A file's columns are named as the options\n"
    "(type, num_tokens, hidden_size, inter_size, topk, num_experts, moe_tp_size,\n"
    "moe_ep_size, distribution, gated).\n"
    "Examples:\n"
    "  orrery moe --machine dgx-h100 --num-tokens 8192 --hidden-size 7168 --inter-size 2048 \\\n"
    "             --topk 8 --num-experts 256 --moe-ep-size 8 --type fp8_block\n"
    "  orrery moe --machine dgx-b200 --file rows.csv --json\n";

/// Returns what a column shows: of an enumerator its name.
template <class T>
auto shown(const T& value) {
  if constexpr (std::is_enum_v<T>) {
    return name_of(value);
  } else {
    return value;
  }
}

template <class Query>
class Kernels : public Command {
 public:
  explicit Kernels(const char* examples) : examples_(examples) {}

  void declare(Options& options) override {
    options.value("--machine", machine_, "NAME|FILE",
                  "a name of `orrery list machines`, or a file");
    flags_.declare(options);
    options.value("--file", file_, "FILE", "a CSV file with one kernel per row");
    options.flag("--json", json_, "print one JSON object");
    if constexpr (kArrays) {
      systolic_.declare(options);
    }
    options.footer(examples_);
  }

  Result<std::string> run(Error mistakes) override {
    if (systolic_.has_files()) {
      return layers(std::move(mistakes));
    }
    const machine::Machine machine = read_machine(mistakes);
    const bool systolic = machine.device.model == compute::ComputeModel::systolic;
    if (!machine.device.memory.empty()) {
      systolic_.check(systolic, mistakes);
    }
    std::vector<int> lines;
    const std::vector<Query> queries = read(lines, mistakes);
    std::vector<study::KernelRow> rows;
    rows.reserve(queries.size());
    FileMistakes of_rows(file_.value_or(""));
    for (std::size_t i = 0; i < queries.size(); ++i) {
      if (machine.device.memory.empty()) {
        break;  // the machine could not be read
      }
      const std::string place = file_ ? fmt::format("{}:{}", *file_, lines[i]) : "";
      const auto kernels = study::kernels_of(queries[i], machine.device, place);
      if (kernels) {
        rows.push_back(study::time_kernels(*kernels, machine.device));
        if (rows.back().time.is_overflow()) {
          of_rows.add({file_ ? place : "kernel", {}, {}, kBeyondTime});
        }
        if (kArrays && systolic) {
          arrays_.push_back(systolic_.kernel(kernels->front(), machine.device));
          study::KernelRow& row = rows.back();  // as --sparsity and --compat have it
          const Time of_cycles =
              SystolicFlags::time_of(kernels->front(), arrays_.back().cost, machine.device);
          row.flops_per_s *= row.time / of_cycles;
          row.bytes_per_s *= row.time / of_cycles;
          row.time = of_cycles;
        } else if (kArrays && machine.device.model == compute::ComputeModel::pim) {
          banks_.push_back(
              compute::pim_kernel(kernels->front(), compute::at_boost(machine.device)));
        }
      } else {
        of_rows.add(file_ ? kernels.error() : by_flags(kernels.error()));
      }
    }
    mistakes.add(of_rows.take());
    if (!mistakes.empty()) {
      return fail(std::move(mistakes));
    }
    return json_ ? as_json(machine, queries, rows) : as_table(machine, queries, rows);
  }

 private:
  static constexpr bool kArrays = std::is_same_v<Query, study::GemmQuery>;
  static constexpr std::size_t kAnswerBytes = 600;  // about, of a row of the answer

  Result<std::string> layers(Error mistakes) {
    refuse_given({{"--machine", machine_}, {"--file", file_}},
                 "contradicts --scale-sim, whose files say it", mistakes);
    flags_.refuse("contradicts --scale-sim, whose topology says it", mistakes);
    return systolic_.layers(json_, std::move(mistakes));
  }

  machine::Machine read_machine(Error& mistakes) const {
    if (systolic_.has_device()) {
      if (machine_) {
        mistakes.add({"--device", {}, {}, "contradicts --machine"});
      }
      return systolic_.machine(mistakes);
    }
    if (machine_) {
      return load_named("--machine", *machine_, machine::load_alike, mistakes);
    }
    mistakes.add({"--machine",
                  {},
                  {},
                  kArrays ? "missing; expected a name or a file, or --device"
                          : "missing; expected a name or a file"});
    return {};
  }

  /// Reads the queries of the file and the line of each, or the flags' one.
  std::vector<Query> read(std::vector<int>& lines, Error& mistakes) const {
    if (!file_) {
      return {from_flags(mistakes)};
    }
    flags_.refuse("contradicts --file, whose columns say it", mistakes);
    std::vector<Query> queries;
    if (const auto table = load_csv(*file_)) {
      queries = collect(study::read_queries<Query>(*table, kAnswerBytes), mistakes);
      lines = mapped(table->rows, &CsvRow::line);
    } else {
      mistakes.add(table.error());
    }
    return queries;
  }

  Query from_flags(Error& mistakes) const {
    Query query = flags_.read(mistakes);
    if constexpr (std::is_same_v<Query, study::AttentionQuery>) {
      if (query.backward && flags_.given("cache") && query.cache) {
        mistakes.add(
            {"--cache", {}, {}, "goes without --backward, which writes no keys and values"});
      }
      query.cache = query.cache && !query.backward;
    }
    return query;
  }

  /// Fields by their flags; those that were not given are missing, not 0.
  Error by_flags(Error error) const {
    for (Mistake& mistake : error.mistakes) {
      if (!flags_.has(mistake.field)) {
        continue;
      }
      const bool given = flags_.given(mistake.field);
      mistake.where = flag_of(mistake.field);
      mistake.field.clear();
      if (!given) {
        mistake.found.clear();
        mistake.expected = "missing; expected " + mistake.expected;
      }
    }
    return error;
  }

  void write_row(report::JsonWriter& json, const Query& query, std::size_t number,
                 const study::KernelRow& row) const {
    write_fields(json, query);
    json.key("time_s").value(to_seconds(row.time));
    json.key("bound").value(name_of(row.bound));
    json.key("flops_per_s").value(row.flops_per_s);
    json.key("bytes_per_s").value(row.bytes_per_s);
    if (!arrays_.empty()) {
      write_systolic(json, arrays_[number].cost, arrays_[number].energy);
    }
    if (!banks_.empty()) {
      const compute::PimKernel& kernel = banks_[number];
      json.key("activates").value(kernel.cost.activates);
      json.key("columns").value(kernel.cost.columns);
      json.key("interface_bytes").value(kernel.cost.io_bytes);
      json.key("refresh").value(kernel.cost.refresh);
      json.key("energy_j").value(kernel.energy.value());
    }
  }

  std::string as_json(const machine::Machine& machine, const std::vector<Query>& queries,
                      const std::vector<study::KernelRow>& rows) const {
    return report::json_text([&](report::JsonWriter& json) {
      json.begin_object();
      json.key("machine").value(machine.name);
      json.key("device").value(machine.device.name);
      if (!file_) {
        write_row(json, queries.front(), 0, rows.front());
      } else {
        json.key("rows").begin_array();
        for (std::size_t i = 0; i < rows.size(); ++i) {
          json.begin_object();
          write_row(json, queries[i], i, rows[i]);
          json.end_object();
        }
        json.end_array();
      }
      json.end_object();
    });
  }

  std::string as_table(const machine::Machine& machine, const std::vector<Query>& queries,
                       const std::vector<study::KernelRow>& rows) const {
    std::string text = fmt::format("{} ({}), kernels alone\n", machine.device.name, machine.name);
    Query::fields([&](std::string_view name, auto, std::string_view) {
      text += fmt::format(" {:>9}", name);
    });
    text += fmt::format(" {:>13}{:>12}{:>12}  {}\n", "time (us)", "TFLOP/s", "GB/s", "bound");
    for (std::size_t i = 0; i < rows.size(); ++i) {
      Query::fields([&](std::string_view name, auto member, std::string_view) {
        text += fmt::format(" {:>{}}", shown(queries[i].*member),
                            std::max<std::size_t>(9, name.size()));
      });
      const study::KernelRow& row = rows[i];
      text += fmt::format(" {:>13.2f}{:>12.1f}{:>12.1f}  {}\n", 1e6 * to_seconds(row.time),
                          row.flops_per_s / 1e12, row.bytes_per_s / 1e9, name_of(row.bound));
    }
    if (!arrays_.empty()) {
      text += fmt::format("{:>10}{:>16}{:>16}{:>10}{:>10}{:>14}\n", "dataflow", "cycles", "stalled",
                          "used %", "mapped %", "energy");
    }
    for (const compute::SystolicKernel& kernel : arrays_) {
      text += fmt::format("{:>10}{:>16.0f}{:>16.0f}{:>10.2f}{:>10.2f}{:>14}\n",
                          name_of(kernel.cost.dataflow), kernel.cost.cycles,
                          kernel.cost.stall_cycles, 100 * kernel.cost.utilization,
                          100 * kernel.cost.mapping_efficiency, to_string(kernel.energy));
    }
    if (!banks_.empty()) {
      text += fmt::format("{:>16}{:>16}{:>16}{:>10}{:>14}\n", "rows of a bank", "columns",
                          "interface B", "refresh", "energy");
    }
    for (const compute::PimKernel& kernel : banks_) {
      text += fmt::format("{:>16.0f}{:>16.0f}{:>16.0f}{:>10.4f}{:>14}\n", kernel.cost.activates,
                          kernel.cost.columns, kernel.cost.io_bytes, kernel.cost.refresh,
                          to_string(kernel.energy));
    }
    return text;
  }

  const char* examples_;
  std::optional<std::string> machine_;
  std::optional<std::string> file_;
  FieldFlags<Query> flags_;
  bool json_ = false;
  SystolicFlags systolic_;                         ///< of gemm
  std::vector<compute::SystolicKernel> arrays_{};  ///< on a device of model systolic: by row
  std::vector<compute::PimKernel> banks_{};        ///< the same, of model pim
};

}  // namespace

std::unique_ptr<Command> make_gemm() {
  return std::make_unique<Kernels<study::GemmQuery>>(kGemmExamples);
}

std::unique_ptr<Command> make_attention() {
  return std::make_unique<Kernels<study::AttentionQuery>>(kAttentionExamples);
}

std::unique_ptr<Command> make_moe() {
  return std::make_unique<Kernels<study::MoeQuery>>(kMoeExamples);
}

}  // namespace orrery::cli
