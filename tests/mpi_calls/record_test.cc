// SPDX-License-Identifier: Apache-2.0
#include "mpi_calls/record.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <filesystem>

#include "base/file.h"
#include "mpi_calls/align.h"
#include "mpi_calls/rules.h"

namespace orrery::mpi_calls {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::Not;

std::vector<fs::path> corpus() {
  std::vector<fs::path> files;
  for (const auto& entry :
       fs::directory_iterator(fs::path(ORRERY_SOURCE_DIR) / "examples/mpi_calls/corpus")) {
    files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

TEST(Record, HasTheCallsBesideTheCode) {
  // Behind line 1 two statements; in line 2 an expression; the code is numbered.
  const Record record = strip("small.c",
                              "int main() {\n"
                              "  MPI_Init(0,   0);\n"
                              "  MPI_Barrier(MPI_COMM_WORLD);\n"
                              "  double t = MPI_Wtime();\n"
                              "  return 0;\n"
                              "}\n");
  EXPECT_EQ(record.code, "1 int main() {\n2   double t = ;\n3   return 0;\n4 }\n");
  EXPECT_EQ(record.mpi_labels,
            " (1 1,   MPI_Init(0, 0);) (1 2,   MPI_Barrier(MPI_COMM_WORLD);) (2 0, MPI_Wtime();)");
}

TEST(Record, OfTheCorpusComesBackByteForByte) {
  const auto files = corpus();
  ASSERT_EQ(files.size(), 30U);
  for (const fs::path& file : files) {
    const std::string program = read_file(file.string()).value();
    const Record record = strip(file.filename().string(), program);
    EXPECT_EQ(restore(record), program) << file;
    EXPECT_THAT(record.code, Not(HasSubstr("MPI_Init("))) << file;
    EXPECT_GE(parse_labels(record.mpi_labels).size(), 4U) << file;
  }
}

TEST(Record, KeepsWhatIsNoCall) {
  const std::string program =
      "#define SEND MPI_Send(a, 1, MPI_INT, 0, 0, MPI_COMM_WORLD)\n"
      "// MPI_Init(0, 0);\n"
      "const char *s = \"MPI_Init(0, 0);\";\n"
      "MPI_Status status;\n";
  const Record record = strip("none.c", program);
  EXPECT_EQ(record.mpi_labels, "");
  EXPECT_EQ(restore(record), program);
}

TEST(Record, RestoresWhatALineAloneWouldNot) {
  for (const std::string program : {
           "a();\r\n  MPI_Init(0, 0);\r\nb();\r\n",
           "if (rank == 0) MPI_Send(x, 1, MPI_INT, 1, 0, MPI_COMM_WORLD); else\n  MPI_Recv(x,\n"
           "      1, MPI_INT, 0, 0, MPI_COMM_WORLD, &s);  /* from 0 */\n",
           "  MPI_Init(0, 0); MPI_Comm_rank(MPI_COMM_WORLD, &r);  // both\n",
           "int e = MPI_Init(0, 0), f = g(MPI_Wtime(), MPI_Wtime() - 1);\n",
           "MPI_Finalize();",  // no newline
           "MPI_Init(0, 0); /* a comment\n that goes on */ x();\n",
           "MPI_Init(0, 0\n",  // no end
           "\n\n\tMPI_Barrier(c);\n\n",
       }) {
    const Record record = strip("odd.c", program);
    EXPECT_EQ(restore(record), program);
  }
}

RC_GTEST_PROP(Record, OfAnyTextComesBack, ()) {
  // Pieces of programs in any order, whatever they mean together.
  const auto pieces = *rc::gen::container<std::vector<std::string>>(
      rc::gen::elementOf(std::vector<std::string>{"MPI_Init(&a, b)",
                                                  ";",
                                                  "\n",
                                                  "  ",
                                                  "x = ",
                                                  "(",
                                                  ")",
                                                  "{",
                                                  "}",
                                                  "/* c */",
                                                  "// d\n",
                                                  "\"s",
                                                  "MPI_Send (q, 1)",
                                                  "\t",
                                                  "\r\n",
                                                  "#if 1\n",
                                                  "'",
                                                  ",",
                                                  "7 3, MPI_X();",
                                                  "\\\n"}));
  std::string program;
  for (const std::string& piece : pieces) {
    program += piece;
  }
  RC_ASSERT(restore(strip("any.c", program)) == program);
}

TEST(Record, LabelsOfAModelArePutWhereTheyFit) {
  // A statement behind its line, an expression in the gap of its line, one too far down at the end.
  Record record{"p.c", "1 int main() {\n2   t = ;\n3 }\n", {}, {}};
  record.mpi_labels = "junk (2 0, MPI_Wtime();) (1 1,   MPI_Init(0, 0);) ((9 1, MPI_Abort(c, 1);)";
  EXPECT_EQ(restore(record),
            "int main() {\n  MPI_Init(0, 0);\n  t = MPI_Wtime();\n}\nMPI_Abort(c, 1);\n");
}

TEST(Record, LabelsGoThroughNestedCallsAndStrings) {
  const auto labels = parse_labels(
      "(3 1, MPI_Send(f(a, b), sizeof(\";)\"), MPI_INT);) (4 12, "
      "MPI_Bcast(x,  1);)");
  ASSERT_EQ(labels.size(), 2U);
  EXPECT_EQ(labels[1].sub, 12);
  const Call call = call_of(labels[0]);
  EXPECT_EQ(call.name, "MPI_Send");
  EXPECT_THAT(call.arguments, ::testing::ElementsAre("f(a, b)", "sizeof(\";)\")", "MPI_INT"));
}

TEST(Rules, PutTheBoilerplateWhereItGoes) {
  // Behind the declarations (line 3), before the last return (line 5).
  const Record record = strip("r.c",
                              "int main(int argc, char **argv) {\n"
                              "  int myid, i;\n"
                              "  int nprocs = 0;\n"
                              "  i = myid + nprocs;\n"
                              "  work(i);\n"
                              "  return 0;\n"
                              "}\n");
  EXPECT_EQ(labels_text(complete_by_rules(record)),
            " (3 1,   MPI_Init(&argc, &argv);) (3 2,   MPI_Comm_rank(MPI_COMM_WORLD, &myid);)"
            " (3 3,   MPI_Comm_size(MPI_COMM_WORLD, &nprocs);) (5 1,   MPI_Finalize();)");
  EXPECT_TRUE(complete_by_rules(strip("none.c", "void f() { int rank; }\n")).empty());
}

/// Calls behind "x" and within "double t": the other program lacks "y", has a line more in front,
/// and is indented otherwise. So x is line 3 of it, the barrier behind y goes behind x too, as the
/// second; the line of t is its line 4.
TEST(CompleteLike, CallsGoBehindTheSameLines) {
  const Record whole = strip("whole.c",
                             "int main() {\n  x();\n  MPI_Init(0, 0);\n  y();\n"
                             "  MPI_Barrier(MPI_COMM_WORLD);\n  double t = MPI_Wtime();\n}\n");
  const Record code = strip("code.c", "// edited\nint main() {\n    x();\n    double t = ;\n}\n");
  EXPECT_EQ(labels_text(complete_like(whole, code)),
            " (3 1,   MPI_Init(0, 0);) (3 2,   MPI_Barrier(MPI_COMM_WORLD);) (4 0, MPI_Wtime();)");
}

/// Lines that stand twice are told apart by their neighbours: the second "f();" of each.
TEST(CompleteLike, EqualLinesAreThoseBesideTheSameLine) {
  const Record whole = strip("whole.c", "f();\na();\nf();\nMPI_Finalize();\nb();\n");
  const Record code = strip("code.c", "f();\nf();\na();\nf();\nb();\n");
  EXPECT_EQ(labels_text(complete_like(whole, code)), " (4 1, MPI_Finalize();)");
}

TEST(CompleteLike, AnExpressionWithoutItsLineIsLeftOutAndNothingAlikeIsEmpty) {
  const Record whole = strip("whole.c", "a();\nt = MPI_Wtime();\nMPI_Finalize();\n");
  EXPECT_EQ(labels_text(complete_like(whole, strip("code.c", "a();\n"))),
            " (1 1, MPI_Finalize();)");
  EXPECT_TRUE(complete_like(whole, strip("code.c", "b();\n")).empty());
}

RC_GTEST_PROP(CompleteLike, TheSameCodeGetsItsCallsBack, ()) {
  std::string program;
  for (const int line : *rc::gen::container<std::vector<int>>(rc::gen::inRange(0, 6))) {
    program +=
        line == 0 ? "  MPI_Barrier(MPI_COMM_WORLD);\n" : "  f(" + std::to_string(line) + ");\n";
  }
  const Record whole = strip("same.c", program + "once();\n");
  Record code = whole;
  code.mpi_labels = labels_text(complete_like(whole, code));
  RC_ASSERT(restore(code) == program + "once();\n");
}

}  // namespace
}  // namespace orrery::mpi_calls
