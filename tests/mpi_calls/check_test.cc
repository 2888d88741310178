// SPDX-License-Identifier: Apache-2.0
#include "mpi_calls/check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>

#include "base/file.h"
#include "base/process.h"

namespace orrery::mpi_calls {
namespace {

using ::testing::HasSubstr;

bool has(const MpiLibrary& library) {
  return !find_program(std::string(library.compiler)).empty() &&
         !find_program(std::string(library.launcher)).empty();
}

TEST(Check, NotesEveryCallAndNothingElse) {
  const std::string noted =
      with_notes("int x = 1;\nMPI_Send(a, f(b));\ndouble t = MPI_Wtime();\n", "p.c");
  EXPECT_THAT(noted, HasSubstr("#line 1 \"p.c\"\nint x = 1;\norrery_back(2, \"MPI_Send\", "
                               "(orrery_note(2, \"MPI_Send\", 1), MPI_Send(a, f(b))));\n"
                               "double t = MPI_Wtime();\n"));
}

TEST(Check, TellsWhatPassesWhatFailsAndWhatHangsWhere) {
  bool first = true;  // of the libraries: how a refusal and a failure are told is no library's
  const std::string head =
      "#include <mpi.h>\nint main(int argc, char **argv) {\n  int rank, x;\n"
      "  MPI_Init(&argc, &argv);\n"
      "  MPI_Comm_rank(MPI_COMM_WORLD, &rank);\n";
  const std::string tail = "  MPI_Finalize();\n  return 0;\n}\n";
  for (const MpiLibrary& library : kMpiLibraries) {
    if (!has(library)) {
      GTEST_LOG_(INFO) << library.compiler << " is not installed";
      continue;
    }
    const CheckOptions options{
        .libraries = {std::string(library.name)}, .ranks = {2}, .limit = Duration(60)};
    const auto passed = check_program(head + tail, options).value().front();
    EXPECT_EQ(passed.result, CheckResult::passed) << library.name << passed.output;
    if (std::exchange(first, false)) {
      const auto failed =
          check_program(head + "  if (rank == 1) MPI_Abort(MPI_COMM_WORLD, 3);\n" + tail, options)
              .value()
              .front();
      EXPECT_EQ(failed.result, CheckResult::failed) << library.name;
      const auto refused = check_program(head + "  nonsense\n" + tail, options).value().front();
      EXPECT_EQ(refused.result, CheckResult::not_compiled);
      EXPECT_THAT(refused.output, HasSubstr("program.c:"));
    }
    // Both ranks wait in line 6 for a message that nobody sends, long after they have begun.
    const auto hung =
        check_program(
            head + "  MPI_Recv(&x, 1, MPI_INT, 1 - rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);\n" +
                tail,
            {options.libraries, {2}, Duration(1) + passed.wall * 3})
            .value()
            .front();
    EXPECT_EQ(hung.result, CheckResult::hung) << library.name;
    ASSERT_EQ(hung.whereabouts.size(), 2U);
    for (const Whereabouts& where : hung.whereabouts) {
      EXPECT_EQ(where.function, "MPI_Recv") << library.name;
      EXPECT_EQ(where.line, 6);
      EXPECT_TRUE(where.inside);
    }
  }
}

TEST(Check, SaysWhichLibraryIsNone) {
  EXPECT_THAT(check_program("", {.libraries = {"openmp"}}).error().to_string(),
              HasSubstr("did you mean 'openmpi'"));
}

}  // namespace
}  // namespace orrery::mpi_calls
