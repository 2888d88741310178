// SPDX-License-Identifier: Apache-2.0
#include "mpi_calls/learned.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/process.h"

namespace orrery::mpi_calls {
namespace {

using ::testing::HasSubstr;

std::vector<Record> corpus_records() {
  return load_records(std::string(ORRERY_SOURCE_DIR) + "/examples/mpi_calls/corpus",
                      RecordUse::code)
      .value();
}

TEST(Learned, CompletesAKnownProgramWithItsOwnNames) {
  // The model's only program with every variable renamed: the labels are those of the new names.
  const Record known = strip("known.c",
                             "int main(int argc, char **argv) {\n"
                             "  int rank, size;\n"
                             "  double part, whole;\n"
                             "  MPI_Init(&argc, &argv);\n"
                             "  MPI_Comm_rank(MPI_COMM_WORLD, &rank);\n"
                             "  MPI_Comm_size(MPI_COMM_WORLD, &size);\n"
                             "  part = rank * 0.5;\n"
                             "  MPI_Reduce(&part, &whole, 1, MPI_DOUBLE, MPI_SUM, 0, c);\n"
                             "  if (rank == 0) {\n"
                             "    show(whole);\n"
                             "  }\n"
                             "  MPI_Finalize();\n"
                             "  return 0;\n"
                             "}\n");
  const Record asked = strip("asked.c",
                             "int main(int argc, char **argv) {\n"
                             "  int myid, nprocs;\n"
                             "  double local, total;\n"
                             "  local = myid * 0.5;\n"
                             "  if (myid == 0) {\n"
                             "    show(total);\n"
                             "  }\n"
                             "  return 0;\n"
                             "}\n");
  const Completer completer({{known}, 0.5});
  EXPECT_THAT(labels_text(completer.complete(asked)),
              HasSubstr("(4 1,   MPI_Reduce(&local, &total, 1, MPI_DOUBLE, MPI_SUM, 0, c);)"));
  EXPECT_THAT(labels_text(completer.complete(asked)),
              HasSubstr("MPI_Comm_rank(MPI_COMM_WORLD, &myid);"));
}

TEST(Learned, BeatsTheRulesInSendsReceivesAndCollectives) {
  // Each of 30 programs from the other 29; the rules know none of these calls.
  const Training training = train_model(corpus_records());
  const Score learned = score_records(training.model.programs, training.left_out, {}).value();
  const Score rules =
      score_records(training.model.programs, predict_by_rules(training.model.programs), {}).value();
  for (std::size_t group = 0; group < 3; ++group) {
    EXPECT_EQ(rules.groups[group].f1(), 0);
    EXPECT_GT(learned.groups[group].f1(), 0.25) << learned.groups[group].name;
  }
  EXPECT_GT(learned.f1, rules.f1);
}

TEST(Process, IsKilledWithAllThatItStarted) {
  // The shell's child would sleep for a minute, and ignores SIGTERM.
  bool told = false;
  const auto run = run_process({"sh", "-c", "trap '' TERM; sleep 60 & echo $!; wait; sleep 60"},
                               {.limit = Duration(0.2), .on_limit = [&] { told = true; }})
                       .value();
  EXPECT_TRUE(run.stopped);
  EXPECT_TRUE(told);
  EXPECT_LT(run.wall.value(), 10);
  EXPECT_NE(run.status, 0);
  // What nobody has waited for yet is dead as well: Z.
  const std::string child = run.output.substr(0, run.output.find('\n'));
  const auto alive =
      run_process({"sh", "-c", "kill -0 " + child + " && ! grep -q ') Z' /proc/" + child + "/stat"},
                  {})
          .value();
  EXPECT_NE(alive.status, 0);
}

TEST(Process, GetsItsInputAndGivesItsOutput) {
  const std::string much(300'000, 'x');  // more than a pipe holds
  const auto run = run_process({"cat"}, {.input = much}).value();
  EXPECT_EQ(run.output, much);
  EXPECT_EQ(run.status, 0);
  EXPECT_EQ(run_process({"sh", "-c", "exit 3"}, {})->status, 3);
  EXPECT_THAT(run_process({"no-such-program"}, {}).error().to_string(),
              HasSubstr("no-such-program"));
}

}  // namespace
}  // namespace orrery::mpi_calls
