// SPDX-License-Identifier: Apache-2.0
#include "emit/write.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <filesystem>

#include "base/file.h"
#include "base/names.h"
#include "emit/listing.h"
#include "emit/runtime_text.h"

namespace orrery::emit {
namespace {

/// A C++ string literal: letters, digits and common marks as they stand, other bytes as '_'.
std::string literal(const std::string& text) {
  std::string quoted = "\"";
  for (const char c : text) {
    const bool plain = (c >= ' ' && c <= '~') && c != '"' && c != '\\';
    quoted += plain ? c : '_';
  }
  return quoted + "\"";
}

std::string_view kind_of(const Call& call) {
  switch (call.kind) {
    case Call::Kind::compute:
      return "compute";
    case Call::Kind::send:
      return "send";
    case Call::Kind::receive:
      return "receive";
    case Call::Kind::collective:
      break;
  }
  return call.collective == graph::CollectiveKind::send_recv ? "ring_shift"
                                                             : name_of(call.collective);
}

/// The tables of one list: waits and works of all calls in one array each, calls as parts of them.
std::string list_text(const std::vector<Call>& list, std::size_t number) {
  if (list.empty()) {
    return "";
  }
  std::string waits;
  std::string works;
  std::string calls;
  std::size_t waits_before = 0;
  std::size_t works_before = 0;
  for (const Call& call : list) {
    for (const int earlier : call.waits) {
      waits += fmt::format("{}, ", earlier);
    }
    for (const Work& work : call.works) {
      works += fmt::format("    {{{}, {}, {}, {}, {}, {}}},\n", work.gemm.batch, work.gemm.m,
                           work.gemm.n, work.gemm.k, work.bytes.value(),
                           work.duration.value() / 1_ns .value());
    }
    calls += fmt::format(
        "    {{Kind::{}, {}, {}, {}, {}, {}, part(kWaits{}, {}, {}), part(kWorks{}, {}, {})}},\n",
        kind_of(call), literal(call.name), call.group, call.elements, call.peer, call.tag, number,
        waits_before, call.waits.size(), number, works_before, call.works.size());
    waits_before += call.waits.size();
    works_before += call.works.size();
  }
  return fmt::format(
      "constexpr int kWaits{0}[] = {{{1}-1}};\nconstexpr Work kWorks{0}[] = {{\n{2}    {{}}}};\n"
      "constexpr Call kCalls{0}[] = {{\n{3}}};\n\n",
      number, waits, works, calls);
}

std::string plan_text(const Program& program, const Description& description) {
  std::string text = fmt::format(
      "// {}\n#include \"plan.h\"\n\nnamespace plan {{\nnamespace {{\n\n"
      "template <class T>\nconstexpr std::span<const T> part(std::span<const T> all, std::size_t "
      "first, std::size_t size) {{\n  return all.subspan(first, size);\n}}\n"
      "template <class T, std::size_t kSize>\nconstexpr std::span<const T> part(const T "
      "(&all)[kSize], std::size_t first, std::size_t size) {{\n  return part(std::span<const "
      "T>(all), first, size);\n}}\n\n",
      description.title);
  std::string names;
  for (std::size_t i = 0; i < program.groups.size(); ++i) {
    const Family& family = program.groups[i];
    text +=
        fmt::format("constexpr int kColors{0}[] = {{{1}}};\nconstexpr int kKeys{0}[] = {{{2}}};\n",
                    i, fmt::join(family.colors, ", "), fmt::join(family.keys, ", "));
    names += fmt::format("    {{{}, kColors{}, kKeys{}}},\n", literal(family.name), i, i);
  }
  for (std::size_t i = 0; i < program.lists.size(); ++i) {
    text += list_text(program.lists[i], i);
  }
  text += fmt::format("constexpr int kListOf[] = {{{}}};\n", fmt::join(program.list_of, ", "));
  text += "constexpr std::span<const Call> kLists[] = {";
  for (std::size_t i = 0; i < program.lists.size(); ++i) {
    text += program.lists[i].empty() ? "{}, " : fmt::format("kCalls{}, ", i);
  }
  text += "};\n";
  if (!program.groups.empty()) {
    text += "constexpr Group kGroups[] = {\n" + names + "};\n";
  }
  return text + fmt::format(
                    "\n}}  // namespace\n\nconst int ranks = {};\nconst std::span<const Group> "
                    "groups{};\n\nstd::span<const Call> calls_of(int rank) {{\n  return "
                    "kLists[kListOf[rank]];\n}}\n\n}}  // namespace plan\n",
                    program.ranks, program.groups.empty() ? "" : " = kGroups");
}

constexpr const char* kBuild = R"(# {title}
cmake_minimum_required(VERSION 3.20)
project(plan LANGUAGES CXX)
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release)
endif()
find_package(MPI REQUIRED COMPONENTS CXX)
add_executable(plan main.cc trace.cc plan.cc)
target_link_libraries(plan PRIVATE MPI::MPI_CXX)
# Products by OpenBLAS where it is installed; without it by plain loops.
find_path(CBLAS_INCLUDE cblas.h PATH_SUFFIXES openblas)
find_library(CBLAS_LIBRARY NAMES openblas)
if(CBLAS_INCLUDE AND CBLAS_LIBRARY)
  target_compile_definitions(plan PRIVATE PLAN_CBLAS)
  target_include_directories(plan PRIVATE ${{CBLAS_INCLUDE}})
  target_link_libraries(plan PRIVATE ${{CBLAS_LIBRARY}})
endif()
enable_testing()
add_test(NAME plan COMMAND ${{MPIEXEC_EXECUTABLE}} ${{MPIEXEC_NUMPROC_FLAG}} {ranks} $<TARGET_FILE:plan>
         --order ${{CMAKE_CURRENT_SOURCE_DIR}}/order.txt)
# OpenMPI asks twice before it runs as root, and before there are more ranks than cores.
set_tests_properties(plan PROPERTIES ENVIRONMENT
  "OMPI_ALLOW_RUN_AS_ROOT=1;OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1;OMPI_MCA_rmaps_base_oversubscribe=1;OPENBLAS_NUM_THREADS=1")
)";

constexpr const char* kSlurm = R"(#!/bin/sh
# {title}
#SBATCH --job-name=plan
#SBATCH --ntasks={ranks}
#SBATCH --cpus-per-task=1
#SBATCH --time=00:30:00
export OPENBLAS_NUM_THREADS=1
srun ./build/plan --order order.txt --repeat 5
)";

constexpr const char* kReadme = R"(# {title}

An MPI program of {ranks} ranks, emitted by

    {command}

Every rank does what it does in one simulated step: products and streamed bytes of the plan's size, collectives on the
plan's communicators, messages between stages. Buffers hold numbers that follow from their sender; every element that
arrives is compared with what must arrive. Calls stand in the order of the simulation on {machine}, which `order.txt`
lists; the program compares it with what MPI's profiling interface has seen.

    cmake -B build && cmake --build build && ctest --test-dir build --output-on-failure

With another library of MPI: `cmake -B build -DMPI_CXX_COMPILER=mpicxx.mpich -DMPIEXEC_EXECUTABLE=$(which mpiexec.mpich)`.
Under Slurm: `sbatch job.sh`.

- `plan.cc`: the tables: communicators, and the calls of every rank.
- `main.cc`: runs them; `--repeat N`, `--trace PREFIX`, `--slow RANK FACTOR`, `--unchecked`.
- `measure.h`: `--measure FILE`, what each work and exchange takes, on ranks of one host.
- `trace.cc`: what MPI is asked.
- `listing.c`: the same step in C without tables, a call a line, to be read (`mpicc listing.c`).
- `job.sh`: a job of Slurm.
)";

std::string runtime(std::string_view text) {
  constexpr std::string_view kFolder = "emit/runtime/";
  std::string alone(text);
  for (std::size_t at = alone.find(kFolder); at != std::string::npos; at = alone.find(kFolder)) {
    alone.erase(at, kFolder.size());
  }
  return alone;
}

}  // namespace

std::vector<File> files_of(const Program& program, const Description& description) {
  const auto filled = [&](const char* text) {
    return fmt::format(fmt::runtime(text), fmt::arg("title", description.title),
                       fmt::arg("ranks", program.ranks), fmt::arg("command", description.command),
                       fmt::arg("machine", description.machine));
  };
  return {
      {"plan.cc", plan_text(program, description)},
      {"plan.h", runtime(kPlanHeader)},
      {"main.cc", runtime(kMainSource)},
      {"trace.h", runtime(kTraceHeader)},
      {"trace.cc", runtime(kTraceSource)},
      {"work.h", runtime(kWorkHeader)},
      {"exchange.h", runtime(kExchangeHeader)},
      {"measure.h", runtime(kMeasureHeader)},
      {"arguments.h", runtime(kArgumentsHeader)},
      {"telemetry.h", runtime(kTelemetryHeader)},
      {"probe.h", runtime(kProbeHeader)},
      {"listing.c", listing_of(program, description.title)},
      {"order.txt", description.order},
      {"CMakeLists.txt", filled(kBuild)},
      {"job.sh", filled(kSlurm)},
      {"README.md", filled(kReadme)},
  };
}

Result<void> write_files(const std::vector<File>& files, const std::string& folder) {
  std::error_code problem;  // a folder that cannot be made is one that cannot be written to
  std::filesystem::create_directories(folder, problem);
  for (const File& file : files) {
    if (auto ok = write_file(folder + "/" + file.name, file.text); !ok) {
      return ok;
    }
  }
  return {};
}

}  // namespace orrery::emit
