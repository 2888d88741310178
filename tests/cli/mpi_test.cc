// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "command.h"

namespace orrery::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

const std::string kCorpus = std::string(ORRERY_SOURCE_DIR) + "/examples/mpi_calls/corpus";

TEST(MpiCalls, ComeOutAndGoBackByteForByte) {
  const Folder folder;
  const std::string program = "/* head */\nint main() {\n  MPI_Init(0, 0); // begin\r\n  x();\n}";
  const std::string file = folder.write("p.c", program);
  const Outcome stripped = orrery("mpi strip " + file);
  ASSERT_EQ(stripped.status, 0) << stripped.err;
  const auto record = nlohmann::json::parse(stripped.out);
  EXPECT_EQ(record.at("program"), "p.c");
  EXPECT_EQ(record.at("mpi_labels"), " (2 1,   MPI_Init(0, 0);)");
  const std::string kept = folder.write("r.json", stripped.out);
  ASSERT_EQ(orrery("mpi restore " + kept + " --out " + folder / "back.c").status, 0);
  EXPECT_EQ(content(folder / "back.c"), program);
  const std::string ring =
      folder.write("ring.json", orrery("mpi strip " + kCorpus + "/ring.c").out);
  EXPECT_EQ(orrery("mpi restore " + ring).out, content(kCorpus + "/ring.c"));
}

TEST(MpiCalls, AreCompletedAndScored) {
  const Folder folder;
  const std::string truth = folder.write("truth.jsonl", orrery("mpi strip " + kCorpus).out);
  const auto own = nlohmann::json::parse(
      orrery("mpi score " + truth + " " + truth + " --tolerance 0 --json").out);
  for (const char* const key : {"location", "function", "args", "precision", "f1"}) {
    EXPECT_EQ(own.at(key), 1) << key;
  }
  EXPECT_EQ(own.at("programs"), 30);
  const std::string model = folder / "model.json";
  const Outcome training = orrery("mpi train " + kCorpus + " --out " + model + " --json");
  ASSERT_EQ(training.status, 0) << training.err;
  const auto trained = nlohmann::json::parse(training.out);
  EXPECT_GT(trained.at("learned").at("f1"), trained.at("rules").at("f1"));
  // What the model has seen it knows better than the rules do.
  const auto score = [&](const std::string& how) {
    const std::string predicted =
        folder.write("predicted.jsonl", orrery("mpi complete " + truth + how).out);
    return nlohmann::json::parse(orrery("mpi score " + truth + " " + predicted + " --json").out)
        .at("f1")
        .get<double>();
  };
  EXPECT_GT(score(" --model " + model), score(""));
  // A completer of the user's: its labels, whatever else it prints.
  const auto record =
      nlohmann::json::parse(orrery("mpi complete " + kCorpus +
                                   "/hello.c --command 'grep -c main; echo \"(3 1, MPI_Init(0, "
                                   "0);)\"'")
                                .out);
  EXPECT_EQ(record.at("mpi_labels"), " (3 1, MPI_Init(0, 0);)");
}

TEST(MpiCalls, ScoresOfThePublishedFormat) {
  // label and pred of one file; with tolerance 1 the second prediction is near, of another name.
  const Folder folder;
  const std::string file = folder.write(
      "p.jsonl",
      "{\"pred\": \"<|endoftext|>2 1,   MPI_Init(0, 0);) (6 1,   MPI_Recv(x);)\", "
      "\"label\": \" (2 1,   MPI_Init(0, 0);) (7 1,   MPI_Send(x);)  <|endoftext|>\"}\n"
      "{\"pred\": \"\", \"label\": \" (2 1,   MPI_Init(0, 0);)\"}\n");
  const auto json = nlohmann::json::parse(
      orrery("mpi score " + file + " " + file + " --compat mpirigen --tolerance 1 --json").out);
  EXPECT_EQ(json.at("location"), 0.5);  // (2 / 2 + 0 / 1) / 2
  EXPECT_EQ(json.at("function"), 0.5);  // of the first: 1 of 2
  EXPECT_EQ(json.at("args"), 1);
  EXPECT_EQ(json.at("precision"), 0.5);
}

TEST(MpiCalls, NamesEveryMistake) {
  const Folder folder;
  const std::string empty = folder.write("e.json", "{\"program\": 3}");
  const std::string torn = folder.write("t.jsonl", "{\"code\": \"\"}\n{\"code\": }\n");
  EXPECT_THAT(orrery("mpi stripp x.c").err, HasSubstr("did you mean 'strip'"));
  EXPECT_THAT(orrery("mpi strip").err, HasSubstr("FILE: mpi strip reads a C file"));
  EXPECT_THAT(orrery("mpi restore " + empty).err, HasSubstr("code"));
  EXPECT_THAT(orrery("mpi restore " + torn).err, HasSubstr("t.jsonl:2"));
  const Outcome score =
      orrery("mpi score " + empty + " /none --tolerance x --compat rigen --ranks 2");
  EXPECT_EQ(score.status, 2);
  EXPECT_THAT(score.err, AllOf(HasSubstr("mpi_labels"), HasSubstr("/none"),
                               HasSubstr("--tolerance: found 'x'"), HasSubstr("--compat"),
                               HasSubstr("--ranks: goes with orrery mpi check")));
  EXPECT_THAT(orrery("mpi score " + empty + " " + empty + " --tolerance -1").err,
              HasSubstr("expected 0 to 1000000"));
  EXPECT_THAT(orrery("mpi complete " + kCorpus + "/ring.c --command false").err,
              HasSubstr("--command"));
  EXPECT_THAT(orrery("mpi complete " + kCorpus + "/ring.c --plan llama-3-8b-8 --shrink 0").err,
              AllOf(HasSubstr("--model: missing"), HasSubstr("--shrink: found '0'")));
  EXPECT_THAT(orrery("mpi complete " + kCorpus + "/ring.c --shrink 2").err,
              HasSubstr("--shrink: goes with --plan"));
  EXPECT_THAT(orrery("mpi complete " + kCorpus +
                     "/ring.c --plan llama-3-8b-8 --model llama-3-8b"
                     " --shrink 1000")
                  .err,
              HasSubstr("half of the lines of the plan's listing.c"));
  EXPECT_THAT(orrery("mpi check " + kCorpus + "/ring.c --library lam --ranks 0").err,
              HasSubstr("--ranks: found '0'"));
  EXPECT_THAT(orrery("mpi check " + kCorpus + "/ring.c --library mpic").err,
              HasSubstr("did you mean 'mpich'"));
}

TEST(MpiCalls, ItsExampleRuns) {
  const Folder folder;
  const std::string command = "ORRERY=" + std::string(ORRERY_BINARY) + " " + ORRERY_SOURCE_DIR +
                              "/examples/mpi_calls/run.sh >" + folder / "out";
  ASSERT_EQ(std::system(command.c_str()), 0);
  EXPECT_THAT(content(folder / "out"),
              AllOf(HasSubstr("byte for byte"), HasSubstr("learned"), HasSubstr("receives")));
}

}  // namespace
}  // namespace orrery::testing
