// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <string>

#include "command.h"

namespace orrery::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(Goodput, AnswersForSixteenThousandDevices) {
  // A device every 50,677 h: the job every 50677 / 16384 = 3.0931 h = 11135.1 s. tau solves
  // 1 - e^{-(tau + 60)/M} = tau/M: 1116.2 s; goodput = tau e^{-300/M} / (M (e^{(tau+60)/M} - 1)) =
  // 0.10024 x 0.97342 / 0.111416 = 0.8758.
  const auto json = nlohmann::json::parse(
      orrery("goodput --devices 16384 --mtbf 50677h --checkpoint-cost 60s --restart 300s "
             "--days 54 --seeds 200 --json")
          .out);
  EXPECT_NEAR(json.at("mtbf_job_s").get<double>(), 11135.1, 0.1);
  EXPECT_NEAR(json.at("best_interval_s").get<double>(), 1116.2, 0.5);
  EXPECT_NEAR(json.at("goodput").get<double>(), 0.8758, 0.0002);
  EXPECT_NEAR(json.at("failures").get<double>(), 54 * 86400 / 11135.1, 0.1);
  EXPECT_NEAR(json.at("simulated_goodput").get<double>(), json.at("goodput").get<double>(), 0.001);
  EXPECT_LT(json.at("interval80").at(0).get<double>(), json.at("goodput").get<double>());
  EXPECT_GT(json.at("interval80").at(1).get<double>(), json.at("goodput").get<double>());
  const auto job = nlohmann::json::parse(
      orrery("goodput --devices 16384 --job-mtbf 11135.0830078125s --checkpoint-cost 60s "
             "--restart 300s --days 54 --seeds 200 --json")
          .out);
  EXPECT_EQ(job.at("interval80"), json.at("interval80"));
}

TEST(Goodput, WithoutARatePrintsTheBreakEven) {
  const Outcome text = orrery("goodput --devices 512 --checkpoint-cost 30s --restart 300s");
  EXPECT_EQ(text.status, 0);
  EXPECT_THAT(text.out, AllOf(HasSubstr("No rate of failures is known"), HasSubstr("90.0 %")));
  const auto json = nlohmann::json::parse(orrery("goodput --devices 512 --json").out);
  EXPECT_TRUE(json.at("goodput").is_null());
  EXPECT_EQ(json.at("break_even").size(), 5);
  EXPECT_EQ(json.at("assumed").size(), 3);
}

TEST(Goodput, NamesEveryMistakeByItsFlag) {
  const Outcome outcome = orrery(
      "goodput --mtbf 10parsecs --checkpoint-cost 0s --seeds 0 --days -1 --spares -2 --mtfb 3h");
  EXPECT_EQ(outcome.status, 2);
  EXPECT_EQ(outcome.out, "");
  EXPECT_THAT(
      outcome.err,
      AllOf(HasSubstr("--devices: missing"), HasSubstr("--mtbf: found '10parsecs'"),
            HasSubstr("--days"), HasSubstr("--seeds"), HasSubstr("--spares"),
            HasSubstr("free checkpoints"), HasSubstr("mtfb"), Not(HasSubstr("expected expected"))));
  EXPECT_THAT(orrery("goodput --devices 8 --job-mtbf 1ms --days 30").err,
              HasSubstr("at most 3e8 are simulated"));
}

TEST(RunPlan, StepsTimesStepTimeIsTheWork) {
  const std::string step = "--model gpt2 --machine aws-p5 --devices 8 --tp 1 --global-batch 64 ";
  const auto one = nlohmann::json::parse(orrery("simulate " + step + "--json").out);
  const auto run = nlohmann::json::parse(orrery("run-plan --tokens 10B " + step + "--json").out);
  const double days = 1e10 / one.at("tokens_per_s").get<double>() / 86400;
  EXPECT_NEAR(run.at("days").get<double>() / days, 1, 1e-9);
  // 8 devices at 12.29 dollars an hour.
  EXPECT_NEAR(run.at("money").get<double>() / (days * 24 * 8 * 12.29), 1, 1e-9);
  EXPECT_THAT(run.at("price").at("source").get<std::string>(), HasSubstr("recalled"));
  EXPECT_NEAR(run.at("energy_j").get<double>() /
                  (run.at("steps").get<double>() * one.at("energy").at("per_step_j").get<double>()),
              1, 1e-9);
  EXPECT_TRUE(run.at("failures").is_null());
  EXPECT_TRUE(run.at("failures80").empty());
  EXPECT_THAT(orrery("run-plan --tokens 10B " + step + "--price-per-hour 0").err,
              HasSubstr("--price-per-hour: found '0', expected more than 0"));
}

TEST(RunPlan, TheExampleOfItsHelpFits) {
  const std::string help = orrery("run-plan --help").out;
  const std::size_t at = help.rfind("  orrery run-plan ");
  ASSERT_NE(at, std::string::npos);
  const std::string words = help.substr(at + 9, help.find('\n', at) - at - 9);
  const Outcome run = orrery(words);
  EXPECT_EQ(run.status, 0) << words << run.err;
}

TEST(RunPlan, FailuresMakeItLonger) {
  const std::string words =
      "run-plan --tokens 10B --model gpt2 --machine dgx-a100-80g --devices 8 --tp 1 "
      "--global-batch 64 --seeds 50 --json";
  const auto alone = nlohmann::json::parse(orrery(words).out);
  const auto failing = nlohmann::json::parse(
      orrery(words + " --job-mtbf 1h --checkpoint-cost 10s --restart 300s").out);
  EXPECT_TRUE(alone.at("money").is_null());
  EXPECT_THAT(alone.at("price").at("source").get<std::string>(), HasSubstr("states no price"));
  EXPECT_GT(failing.at("days").get<double>(), alone.at("days").get<double>());
  EXPECT_GT(failing.at("days80").at(1), failing.at("days80").at(0));
  EXPECT_THAT(orrery("run-plan --tokens 15Q --model gpt2 --machine dgx-a100-80g").err,
              HasSubstr("--tokens: found '15Q'"));
}

TEST(RunPlan, StopsThatAreTooCloseAreThoseOfTheFlag) {
  EXPECT_THAT(orrery("run-plan --tokens 1T --model gpt2 --machine dgx-h100 --devices 8 "
                     "--job-mtbf 1s")
                  .err,
              HasSubstr("--job-mtbf: found '1 s'"));
}

TEST(RunPlan, APlanThatDoesNotFitIsToldWhatWould) {
  EXPECT_THAT(
      orrery("run-plan --tokens 10B --model llama-3-8b --machine dgx-a100-80g --devices 8").err,
      AllOf(HasSubstr("of hbm"), HasSubstr("fits with")));
}

TEST(RunPlan, ACheckpointCostsWhatTheMachinesTiersMakeOfIt) {
  // GPT-2 with a table of 50,304 rows: 124,475,904 parameters, 2 bytes each and 12 of Adam, in
  // eighths: 217,832,832 bytes. Through the host at 25.6 GB/s 8.509 ms, to nvme at 2 GB/s 108.9 ms.
  const std::string words =
      "run-plan --tokens 10B --model gpt2 --machine dgx-a100-80g --devices 8 --tp 1 "
      "--global-batch 64 --seeds 5 --job-mtbf 1h ";
  const auto run = nlohmann::json::parse(
      orrery(words + "--checkpoint-to nvme --checkpoint-through host --json --price-per-hour 32 "
                     "--price-of-node true --price-source '20.50 of a list, March 2026'")
          .out);
  const auto& checkpoint = run.at("checkpoint");
  const double bytes = 14.0 * 124'475'904 / 8;
  EXPECT_EQ(checkpoint.at("bytes").get<double>(), bytes);
  EXPECT_NEAR(checkpoint.at("holds_s").get<double>() / (bytes / 25.6e9), 1, 1e-6);
  EXPECT_NEAR(checkpoint.at("persists_s").get<double>() / (bytes / 2e9), 1, 1e-6);
  EXPECT_EQ(run.at("assumed").size(), 2);  // restart, spares
  // Young's best is sqrt(2 x 8.5 ms x 1 h) = 7.8 s, between two steps.
  const double steps = run.at("interval_s").get<double>() / run.at("step_time_s").get<double>();
  EXPECT_NEAR(steps, std::round(steps), 1e-9);
  EXPECT_NEAR(run.at("interval_s").get<double>(), std::sqrt(2 * 8.509e-3 * 3600), 1);
  EXPECT_NEAR(run.at("money").get<double>() / (run.at("days").get<double>() * 24 * 32), 1, 1e-9);
  EXPECT_EQ(run.at("price").at("year"), 2026);
  EXPECT_THAT(run.at("price").at("boundary").get<std::string>(), HasSubstr("of 8 devices"));
  EXPECT_THAT(orrery(words + "--checkpoint-to nvmf").err,
              AllOf(HasSubstr("--checkpoint-to: found 'nvmf'"), HasSubstr("mean 'nvme'")));
  EXPECT_THAT(orrery(words + "--checkpoint-to host --checkpoint-through nvme").err,
              HasSubstr("--checkpoint-through: found 'nvme', expected a tier above"));
  EXPECT_THAT(orrery(words + "--checkpoint-to nvme --checkpoint-cost 3s --price-of-node true").err,
              AllOf(HasSubstr("--checkpoint-cost"), HasSubstr("--price-of-node: expected beside")));
}

TEST(RunPlan, ASearchSaysItOfItsBestPlan) {
  // 1e10 tokens in steps of 8 x 1,024.
  const std::string words = "plan --model gpt2 --machine dgx-a100-80g --devices 1 --batch 8 ";
  const auto found = nlohmann::json::parse(orrery(words + "--tokens 10B --json").out);
  const auto& whole = found.at("whole_run");
  EXPECT_NEAR(whole.at("steps").get<double>(), 1e10 / 8192, 1e-3);
  EXPECT_NEAR(whole.at("days").get<double>() * 86400 /
                  (1e10 / found.at("best").at("tokens_per_s").get<double>()),
              1, 1e-6);
  EXPECT_THAT(whole.at("price_source").get<std::string>(), HasSubstr("states no price"));
  EXPECT_THAT(orrery(words + "--tokens 10").err, HasSubstr("--tokens: found '10'"));
}

}  // namespace
}  // namespace orrery::testing
