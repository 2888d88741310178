// SPDX-License-Identifier: Apache-2.0
#include "cli/mpi_program.h"

#include <fmt/format.h>

#include <algorithm>

#include "cli/command.h"

namespace orrery::cli {
namespace {

constexpr Duration kCompileLimit{300};

std::string compiler_of(const mpi_calls::MpiLibrary& library) {
  return "mpicxx." + std::string(library.name);
}

}  // namespace

const mpi_calls::MpiLibrary* find_mpi(const std::optional<std::string>& name, Error& mistakes) {
  std::vector<std::string> names;
  for (const mpi_calls::MpiLibrary& library : mpi_calls::kMpiLibraries) {
    names.emplace_back(library.name);
    if (name.value_or(names.back()) == library.name &&
        !find_program(compiler_of(library)).empty() &&
        !find_program(std::string(library.launcher)).empty()) {
      return &library;
    }
  }
  if (name && std::ranges::find(names, *name) == names.end()) {
    mistakes.add(wrong_value("--mpi", *name, "openmpi or mpich" + did_you_mean(*name, names)));
  } else {
    mistakes.add({"--mpi",
                  {},
                  name.value_or(""),
                  "a library of MPI that is installed; Debian's packages are libopenmpi-dev and "
                  "openmpi-bin, or libmpich-dev and mpich"});
  }
  return nullptr;
}

Result<void> MpiProgram::make(const emit::Program& program, const emit::Description& description,
                              const mpi_calls::MpiLibrary& library, const std::string& folder) {
  library_ = &library;
  ranks_ = program.ranks;
  folder_ = folder;
  if (folder.empty()) {
    temporary_.emplace();
    if (!temporary_->made()) {
      return fail("no folder for the program can be made in the folder of temporary files");
    }
    folder_ = temporary_->path().string();
  }
  if (auto written = emit::write_files(emit::files_of(program, description), folder_); !written) {
    return written;
  }
  std::vector<std::string> command{compiler_of(library), "-std=c++20", "-O3", "-march=native"};
  command.insert(command.end(), {"-DOMPI_SKIP_MPICXX", "-DMPICH_SKIP_MPICXX", "main.cc", "trace.cc",
                                 "plan.cc", "-o", "plan"});
  const ProcessOptions options{.folder = folder_, .limit = kCompileLimit};
  const auto blas = run_process({command.front(), "-print-file-name=libopenblas.so"}, options);
  blas_ = blas && blas->output.find('/') != std::string::npos;  // a name alone: not found
  if (blas_) {
    command.insert(command.end(), {"-DPLAN_CBLAS", "-lopenblas"});
  }
  const auto made = run_process(command, options);
  if (!made) {
    return fail(made.error());
  }
  return made->status == 0 ? Result<void>() : fail("the program does not compile\n" + made->errors);
}

Result<std::string> MpiProgram::run(const std::vector<std::string>& flags, Duration limit) const {
  std::vector<std::string> program{"./plan"};  // in its folder, whose name may be relative
  program.insert(program.end(), flags.begin(), flags.end());
  const auto run = mpi_calls::run_ranks(
      *library_, ranks_, program,
      {.folder = folder_, .environment = {"OPENBLAS_NUM_THREADS=1"}, .limit = limit});
  if (!run) {
    return fail(run.error());
  }
  if (run->stopped || run->status != 0) {
    return fail(fmt::format(
        "the program {}\n{}{}",
        run->stopped ? "has not ended in time" : fmt::format("ended with status {}", run->status),
        run->output, run->errors));
  }
  return run->output;
}

Result<CsvTable> MpiProgram::measure(std::int64_t repeat, Duration limit) const {
  const std::string rows = "measured.csv";
  return run({"--repeat", std::to_string(repeat), "--unchecked", "--measure", rows}, limit)
      .and_then([&](const std::string&) { return load_csv(folder_ + "/" + rows); });
}

}  // namespace orrery::cli
