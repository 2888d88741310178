// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <filesystem>

#include "base/csv.h"
#include "base/file.h"
#include "base/names.h"
#include "base/one_of.h"
#include "base/process.h"
#include "base/reader.h"
#include "cli/commands.h"
#include "cli/measure_kernels.h"
#include "cli/mpi_program.h"
#include "cli/step_flags.h"
#include "datatype/profile.h"
#include "report/json_writer.h"

namespace orrery::cli {
namespace {

constexpr const char* kMeasureExamples =
    "Measures this machine under MPI. The programs that do so are built with Orrery where CMake "
    "finds\n"
    "OpenMPI (Debian: libopenmpi-dev, openmpi-bin) or MPICH (libmpich-dev, mpich); the rest of "
    "Orrery\n"
    "needs neither. ORRERY_MPI_PROGRAMS names another folder of them.\n"
    "What:\n"
    "  pack         MPI_Pack and MPI_Unpack of derived datatypes against the packer of "
    "libtempi_*.so\n"
    "  send         one way of a typed message by method, and which the model of --profile "
    "chooses\n"
    "  profile      the tables of that model, for TEMPI_PROFILE and --profile\n"
    "  p2p          one way of plain bytes between two ranks\n"
    "  collectives  time of each collective by size\n"
    "  gemm, memory, attention\n"
    "               kernels on one core, by a program that is compiled here with mpicxx, with "
    "OpenBLAS\n"
    "               where it is installed\n"
    "`orrery calibrate` reads the rows of the last four by the same names, collectives also of "
    "p2p.\n"
    "Examples:\n"
    "  orrery measure pack --json\n"
    "  orrery measure pack --mpi mpich\n"
    "  orrery measure profile --output profile.csv\n"
    "  orrery measure send --profile profile.csv\n"
    "  orrery measure collectives --ranks 2 --output collectives.csv\n"
    "  orrery measure gemm --output gemm.csv\n"
    "  orrery calibrate gemm gemm.csv --machine localhost --output mine.yaml\n";

struct Measured {
  std::string_view name;
  int ranks;  ///< 0: any
};
constexpr std::array kMeasured{Measured{"pack", 1}, Measured{"send", 2}, Measured{"profile", 2},
                               Measured{"p2p", 2}, Measured{"collectives", 0}};
constexpr Duration kMeasurePatience{86400};

std::vector<std::string> names_of_measured() {
  std::vector<std::string> names;
  std::ranges::transform(kMeasured, std::back_inserter(names),
                         [](const Measured& what) { return std::string(what.name); });
  names.insert(names.end(), kMeasuredKernels.begin(), kMeasuredKernels.end());
  return names;
}

/// Returns where the programs are: of a build folder beside the command, of an installation in
/// libexec.
std::vector<std::filesystem::path> program_folders() {
  if (const char* const given = std::getenv("ORRERY_MPI_PROGRAMS")) {
    return {given};
  }
  std::error_code problem;
  const auto own = std::filesystem::read_symlink("/proc/self/exe", problem).parent_path();
  return {own / "mpi", own.parent_path() / "libexec/orrery/mpi"};
}

std::optional<std::string> program_of(std::string_view library) {
  for (const auto& folder : program_folders()) {
    const auto program = folder / library / "orrery-measure";
    if (access(program.c_str(), X_OK) == 0) {
      return program.string();
    }
  }
  return std::nullopt;
}

/// The geometric mean of library / ours over rows that have both; 0 where there are none.
double mean_speedup(const CsvTable& table, std::string_view library, std::string_view ours) {
  const auto a = table.column(library);
  const auto b = table.column(ours);
  if (!a || !b || table.rows.empty()) {
    return 0;
  }
  double sum = 0;
  for (const CsvRow& row : table.rows) {
    sum +=
        std::log(parse_number(row.cells[*a]).value_or(0) / parse_number(row.cells[*b]).value_or(0));
  }
  return std::exp(sum / static_cast<double>(table.rows.size()));
}

class Measure : public Command {
 public:
  void declare(Options& options) override {
    options.positional("WHAT", what_, enumerated(names_of_measured()));
    options.value("--mpi", library_, "NAME", "openmpi or mpich; default: the first that is built");
    options.value("--ranks", ranks_, "INT", "of collectives; default 2");
    options.value("--rounds", rounds_, "INT", "batches, of which the fastest counts; default 10");
    options.value("--profile", profile_, "FILE", "send: written by `orrery measure profile`");
    options.output("--output", output_, "FILE", "write the rows there, comma-separated");
    options.flag("--json", json_, "print one JSON object: rows, in the units of their names");
    options.footer(kMeasureExamples);
  }

  Result<std::string> run(Error mistakes) override {
    const auto* const what = std::ranges::find(kMeasured, what_, &Measured::name);
    if (std::ranges::find(kMeasuredKernels, what_) != kMeasuredKernels.end()) {
      return run_kernels(std::move(mistakes));
    }
    if (what == kMeasured.end()) {
      mistakes.add(wrong_value("measure", what_, one_of(what_, names_of_measured())));
      return fail(std::move(mistakes));
    }
    const std::int64_t rounds = whole_number("--rounds", rounds_, 10, 100000, mistakes);
    const std::int64_t ranks = whole_number("--ranks", ranks_, 2, 1024, mistakes);
    refuse_given({{"--ranks", what->ranks == 0 ? std::nullopt : ranks_}}, "is for collectives",
                 mistakes);
    refuse_given({{"--profile", what_ == "send" ? std::nullopt : profile_}}, "is for send",
                 mistakes);
    std::vector<std::string> command{"", what_, std::to_string(rounds)};
    const mpi_calls::MpiLibrary* const library = find_program(command.front(), mistakes);
    if (profile_) {
      for (std::string& mistake : datatype::load_profile(*profile_).mistakes) {
        mistakes.add(Error(std::move(mistake)));
      }
      command.push_back(*profile_);
    }
    if (!mistakes.empty()) {
      return fail(std::move(mistakes));
    }
    library_ = library->name;
    ranks_used_ = what->ranks == 0 ? ranks : what->ranks;
    return mpi_calls::run_ranks(*library, ranks_used_, command, {.limit = kMeasurePatience})
        .and_then([&](const ProcessRun& answer) { return tell(answer); });
  }

  int status() const override { return status_; }

 private:
  Result<std::string> run_kernels(Error mistakes) {
    refuse_given({{"--ranks", ranks_}}, "is for collectives", mistakes);
    refuse_given({{"--profile", profile_}}, "is for send", mistakes);
    const std::int64_t rounds = whole_number("--rounds", rounds_, 10, 100000, mistakes);
    const mpi_calls::MpiLibrary* const library = find_mpi(library_, mistakes);
    if (!mistakes.empty()) {
      return fail(std::move(mistakes));
    }
    library_ = library->name;
    return measure_kernels(what_, *library, rounds).and_then([&](const std::string& rows) {
      ProcessRun run;
      run.output = rows;
      return tell(run);
    });
  }

  /// Returns the first library, or the one that is asked for, whose program is found; null with a
  /// mistake.
  const mpi_calls::MpiLibrary* find_program(std::string& program, Error& mistakes) const {
    const auto& all = mpi_calls::kMpiLibraries;
    if (library_ && std::ranges::find(all, *library_, &mpi_calls::MpiLibrary::name) == all.end()) {
      mistakes.add(wrong_value("--mpi", *library_, "openmpi or mpich"));
      return nullptr;
    }
    std::string packages;
    for (const mpi_calls::MpiLibrary& library : all) {
      if (library_.value_or(std::string(library.name)) != library.name) {
        continue;
      }
      if (auto found = program_of(library.name)) {
        program = std::move(*found);
        return &library;
      }
      packages += (packages.empty() ? "" : ", or ") + std::string(library.package);
    }
    mistakes.add({"--mpi",
                  {},
                  library_.value_or(""),
                  fmt::format("a library of MPI that orrery-measure is built for; none at {}. "
                              "Install {} and build Orrery again: CMake finds it",
                              program_folders().front().string(), packages)});
    return nullptr;
  }

  Result<std::string> tell(const ProcessRun& answer) {
    const auto table = parse_csv(answer.output, "orrery-measure");
    if (!table || table->rows.empty()) {
      return fail(fmt::format("{} ended with exit status {} and no rows\n{}", *library_,
                              answer.status, answer.errors));
    }
    status_ = answer.status == 0 ? 0 : 1;
    if (output_) {
      keep(write_file(*output_, answer.output));
    }
    return json_ ? as_json(*table) : as_text(*table);
  }

  std::string as_text(const CsvTable& table) const {
    std::vector<std::size_t> widths;
    for (std::size_t c = 0; c < table.header.size(); ++c) {
      std::size_t width = table.header[c].size();
      for (const CsvRow& row : table.rows) {
        width = std::max(width, row.cells[c].size());
      }
      widths.push_back(width);
    }
    std::string text;
    const auto add = [&](const auto& cells) {
      text += fmt::format("{:<{}}", cells[0], widths[0]);
      for (std::size_t c = 1; c < cells.size(); ++c) {
        text += fmt::format("  {:>{}}", cells[c], widths[c]);
      }
      text += '\n';
    };
    add(table.header);
    for (const CsvRow& row : table.rows) {
      add(row.cells);
    }
    if (const double speedup = mean_speedup(table, "library_us", "ours_us"); speedup > 0) {
      text += fmt::format("geometric mean over {}: pack {:.2f}x, unpack {:.2f}x\n", *library_,
                          speedup, mean_speedup(table, "unpack_library_us", "unpack_ours_us"));
    }
    if (const double speedup = mean_speedup(table, "library_us", "chosen_us"); speedup > 0) {
      text += fmt::format("geometric mean over {}: chosen {:.2f}x, always packed {:.2f}x\n",
                          *library_, speedup, mean_speedup(table, "library_us", "packed_us"));
    }
    return text;
  }

  std::string as_json(const CsvTable& table) const {
    return report::json_text([&](report::JsonWriter& json) {
      json.begin_object();
      json.key("what").value(what_);
      json.key("mpi").value(*library_);
      json.key("ranks").value(ranks_used_);
      json.key("rows").objects(table.rows, [&](const CsvRow& row) {
        for (std::size_t c = 0; c < row.cells.size(); ++c) {
          json.key(table.header[c]);
          write_cell(json, row.cells[c]);
        }
      });
      if (const double speedup = mean_speedup(table, "library_us", "ours_us"); speedup > 0) {
        json.key("pack_speedup").value(speedup);
        json.key("unpack_speedup")
            .value(mean_speedup(table, "unpack_library_us", "unpack_ours_us"));
      }
      if (const double speedup = mean_speedup(table, "library_us", "chosen_us"); speedup > 0) {
        json.key("chosen_speedup").value(speedup);
      }
      json.end_object();
    });
  }

  static void write_cell(report::JsonWriter& json, std::string_view cell) {
    if (cell == "true" || cell == "false") {
      json.value(cell == "true");
    } else if (const auto whole = parse_value<std::int64_t>(cell)) {
      json.value(*whole);
    } else if (const auto number = parse_value<double>(cell)) {
      json.value(*number);
    } else {
      json.value(cell);
    }
  }

  std::string what_;
  std::optional<std::string> library_;
  std::optional<std::string> ranks_;
  std::optional<std::string> rounds_;
  std::optional<std::string> profile_;
  std::optional<std::string> output_;
  bool json_ = false;
  std::int64_t ranks_used_ = 1;
  int status_ = 0;
};

}  // namespace

std::unique_ptr<Command> make_measure() {
  return std::make_unique<Measure>();
}

}  // namespace orrery::cli
