// SPDX-License-Identifier: Apache-2.0
#include "mpi_calls/check.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "base/file.h"
#include "base/lists.h"
#include "base/process.h"
#include "base/words.h"
#include "mpi_calls/c_tokens.h"

namespace orrery::mpi_calls {
namespace {

namespace fs = std::filesystem;

constexpr Duration kCompileLimit{120};
constexpr std::size_t kMostShown = 2000;  // bytes of output in a row

/// These return no int, or are often macros.
constexpr std::array<std::string_view, 5> kWithoutNote{"MPI_Wtime", "MPI_Wtick", "MPI_Aint_add",
                                                       "MPI_Aint_diff", "MPI_Abort"};

/// A record of fixed width per process: rank, line, whether it is inside, function. Written with
/// pwrite: what a killed process has noted is there.
constexpr const char* kNotes =
    R"(#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
static int orrery_note(int line, const char *name, int inside) {
  static int file = -1;
  static int rank = -1;
  char text[97];
  if (file < 0) {
    const char *of_rank = getenv("OMPI_COMM_WORLD_RANK");
    if (of_rank == NULL) of_rank = getenv("PMI_RANK");
    rank = of_rank == NULL ? 0 : atoi(of_rank);
    snprintf(text, sizeof text, "%s/at.%d", getenv("ORRERY_NOTES"), rank);
    file = open(text, O_CREAT | O_WRONLY, 0600);
  }
  int length = snprintf(text, sizeof text, "%8d %8d %d %-60s\n", rank, line, inside, name);
  return pwrite(file, text, (size_t)length, 0) < 0;
}
static int orrery_back(int line, const char *name, int result) {
  orrery_note(line, name, 0);
  return result;
}
)";

std::string shown_part(std::string text) {
  if (text.size() > kMostShown) {
    text = text.substr(0, kMostShown) + "...";
  }
  return text;
}

std::vector<Whereabouts> read_whereabouts(const fs::path& folder, std::int64_t ranks) {
  std::vector<Whereabouts> list;
  for (std::int64_t rank = 0; rank < ranks; ++rank) {
    Whereabouts where{rank, {}, 0, false};
    const auto text = read_file((folder / ("at." + std::to_string(rank))).string());
    const auto words = orrery::words_of<std::string>(text.value_or(""));
    if (words.size() >= 4) {
      where.line = std::strtol(words[1].c_str(), nullptr, 10);
      where.inside = words[2] == "1";
      where.function = on_one_line(words[3]);
    }
    list.push_back(std::move(where));
  }
  return list;
}

CheckRow run_on(const MpiLibrary& library, const fs::path& folder, std::int64_t ranks,
                Duration limit) {
  CheckRow row{std::string(library.name), ranks};
  const auto notes = folder / (std::string(library.name) + std::to_string(ranks));
  std::error_code ignored;
  fs::create_directory(notes, ignored);
  ProcessOptions options{
      .folder = folder.string(), .environment = {"ORRERY_NOTES=" + notes.string()}, .limit = limit};
  options.on_limit = [&] { row.whereabouts = read_whereabouts(notes, ranks); };
  const auto run = run_ranks(library, ranks, {(folder / "program").string()}, std::move(options));
  if (!run) {
    row.result = CheckResult::no_library;
    row.output = run.error().to_string();
    return row;
  }
  row.status = run->status;
  row.wall = run->wall;
  row.result = run->stopped       ? CheckResult::hung
               : run->status == 0 ? CheckResult::passed
                                  : CheckResult::failed;
  row.output = shown_part(run->output + run->errors);
  return row;
}

std::vector<CheckRow> check_with(const MpiLibrary& library, const fs::path& folder,
                                 const CheckOptions& options) {
  CheckRow row{std::string(library.name), 0};
  const std::string compiler(library.compiler);
  if (find_program(compiler).empty() || find_program(std::string(library.launcher)).empty()) {
    row.result = CheckResult::no_library;
    row.output = compiler + " or " + std::string(library.launcher) +
                 " is not found; Debian's packages are " + std::string(library.package);
    return {row};
  }
  const auto compiled = run_process({compiler, "-O1", "-w", "-o", "program", "noted.c", "-lm"},
                                    {.folder = folder.string(), .limit = kCompileLimit});
  if (!compiled || compiled->status != 0) {
    row.result = CheckResult::not_compiled;
    row.status = compiled ? compiled->status : 0;
    row.output = shown_part(compiled ? compiled->errors : compiled.error().to_string());
    return {row};
  }
  return mapped(options.ranks, [&](const std::int64_t ranks) {
    return run_on(library, folder, ranks, options.limit);
  });
}

Error unknown_libraries(const std::vector<std::string>& names) {
  const std::vector<std::string> known = mapped<std::string>(kMpiLibraries, &MpiLibrary::name);
  Error mistakes;
  for (const std::string& name : names) {
    if (std::ranges::find(known, name) == known.end()) {
      mistakes.add({{}, "library", name, "openmpi or mpich" + did_you_mean(name, known)});
    }
  }
  return mistakes;
}

}  // namespace

Result<ProcessRun> run_ranks(const MpiLibrary& library, std::int64_t ranks,
                             const std::vector<std::string>& program, ProcessOptions options) {
  std::vector<std::string> command{std::string(library.launcher)};
  if (library.name == "openmpi") {
    command.emplace_back("--oversubscribe");
  }
  command.insert(command.end(), {"-n", std::to_string(ranks)});
  command.insert(command.end(), program.begin(), program.end());
  options.environment.insert(
      options.environment.end(),
      {"OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1",
       "OMPI_MCA_rmaps_base_oversubscribe=1", "OMPI_MCA_mpi_yield_when_idle=1"});
  return run_process(command, options);
}

std::string with_notes(const std::string& program, const std::string& name) {
  const std::vector<Token> tokens = tokens_of(program);
  std::string noted = std::string(kNotes) + "#line 1 \"" + name + "\"\n";
  std::size_t at = 0;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    const std::size_t close = is_mpi_call(tokens, i) ? closing(tokens, i + 1) : tokens.size();
    if (close == tokens.size() ||
        std::ranges::find(kWithoutNote, tokens[i].text) != kWithoutNote.end()) {
      continue;
    }
    const std::string place =
        std::to_string(tokens[i].line + 1) + ", \"" + std::string(tokens[i].text) + "\", ";
    noted += fmt::format("{}orrery_back({}(orrery_note({}1), {}))",
                         program.substr(at, tokens[i].begin - at), place, place,
                         program.substr(tokens[i].begin, tokens[close].end() - tokens[i].begin));
    at = tokens[close].end();
    i = close;
  }
  return noted + program.substr(at);
}

Result<std::vector<CheckRow>> check_program(const std::string& program,
                                            const CheckOptions& options) {
  if (Error unknown = unknown_libraries(options.libraries); !unknown.empty()) {
    return fail(std::move(unknown));
  }
  const TemporaryFolder folder;
  if (!folder.made()) {
    return fail("no folder for programs can be made in the folder of temporary files");
  }
  if (auto written =
          write_file((folder.path() / "noted.c").string(), with_notes(program, "program.c"));
      !written) {
    return fail(std::move(written.error()));
  }
  std::vector<CheckRow> rows;
  for (const MpiLibrary& library : kMpiLibraries) {
    if (!options.libraries.empty() &&
        std::ranges::find(options.libraries, library.name) == options.libraries.end()) {
      continue;
    }
    for (CheckRow& row : check_with(library, folder.path(), options)) {
      rows.push_back(std::move(row));
    }
  }
  return rows;
}

}  // namespace orrery::mpi_calls
