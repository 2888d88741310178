// SPDX-License-Identifier: Apache-2.0
/// Published figures of T3: Pati et al., ASPLOS'24 (arXiv 2401.16677), "published-seen". Shapes and
/// tokens of the models are recalled; efficiency 0.75 and 75 GB/s a direction are derived.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <set>

#include "simulate/simulate.h"
#include "study/estimate_step.h"
#include "study/tensor_overlap.h"

namespace orrery {
namespace {

const std::string kFolder = std::string(ORRERY_SOURCE_DIR) + "/examples/t3/";

plan::Plan plan_of(std::int64_t tp, std::int64_t sequences, plan::TensorOverlap how) {
  plan::Plan plan;
  plan.tp = tp;
  plan.microbatch = plan.global_batch = sequences;
  plan.attention = zoo::AttentionKernel::flash;
  plan.tp_algorithm = collective::CollectiveAlgorithm::ring;
  plan.overlap_tensor = how;
  return plan;
}

study::Run run_of(const std::string& model, std::int64_t tp, std::int64_t sequences,
                  plan::TensorOverlap how) {
  const auto machine = machine::load_machine(kFolder + "machine.yaml");
  const auto shape = zoo::load_model(kFolder + model);
  EXPECT_TRUE(machine) << machine.error().to_string();
  EXPECT_TRUE(shape) << shape.error().to_string();
  auto run = study::run_step(shape.value(), machine.value(), plan_of(tp, sequences, how), 0,
                             {.allow_oom = true});
  EXPECT_TRUE(run) << run.error().to_string();
  return std::move(run).value();  // throws where there is none
}

bool is_sublayer(const study::OverlappedProduct& one) {
  static const std::set<std::string> kSublayers{"proj_gemm", "fc2_gemm", "fc1_gemm_input_gradient",
                                                "qkv_gemm_input_gradient"};
  return kSublayers.contains(one.name);
}

std::vector<study::OverlappedProduct> sublayers(plan::TensorOverlap how) {
  std::vector<study::OverlappedProduct> all;
  for (const std::int64_t tp : {8, 16}) {
    for (const auto& [model, sequences] : {std::pair("mega-gpt-2.json", 16), {"t-nlg.json", 8}}) {
      const auto overlap = study::overlap_of(run_of(model, tp, sequences, how));
      for (const study::OverlappedProduct& one : overlap.value().products) {
        if (is_sublayer(one)) {
          all.push_back(one);
        }
      }
    }
  }
  EXPECT_EQ(all.size(), 16U);
  return all;
}

struct Gains {
  double mean = 0;
  double most = 0;
};
Gains gains(const std::vector<study::OverlappedProduct>& all,
            const std::function<double(const study::OverlappedProduct&)>& gain) {
  Gains found;
  double logs = 0;
  for (const study::OverlappedProduct& one : all) {
    logs += std::log(gain(one));
    found.most = std::max(found.most, gain(one));
  }
  found.mean = std::exp(logs / static_cast<double>(all.size()));
  return found;
}

TEST(T3, SublayersGainWhatIsPublished) {
  const auto mca = sublayers(plan::TensorOverlap::tracked_mca);
  const auto speedup = [](const study::OverlappedProduct& one) { return one.speedup(); };
  const Gains ideal = gains(mca, [](const auto& one) { return one.ideal_speedup(); });
  EXPECT_NEAR(ideal.mean, 1.35, 0.03);
  EXPECT_NEAR(ideal.most, 1.50, 0.03);
  EXPECT_NEAR(gains(mca, speedup).mean, 1.30, 0.03);
  EXPECT_NEAR(gains(mca, speedup).most, 1.47, 0.03);
  // Its largest gain is a miss, 1.39 published: no one kappa meets both.
  const Gains plain = gains(sublayers(plan::TensorOverlap::tracked), speedup);
  EXPECT_NEAR(plain.mean, 1.20, 0.03);
  EXPECT_LT(plain.most, 1.39 - 0.03);
  double moved = 0;
  for (const study::OverlappedProduct& one : mca) {
    moved += one.fused.total() / one.unfused.total() - 1;
    EXPECT_LE(one.speedup(), one.ideal_speedup() + 1e-9) << one.name;
  }
  EXPECT_NEAR(moved / static_cast<double>(mca.size()), -0.22, 0.03);
}

TEST(T3, ProductsAndRingsTakeWhatTheFormulasSay) {
  // Mega-GPT-2 at TP 8: OP 2 x 16384 x 3072 x 384 FLOP at 86.016 TFLOP/s; R = 7 (V / 8 / 75 GB/s +
  // 0.5 us), V = 16384 x 3072 x 2 B.
  const auto all = sublayers(plan::TensorOverlap::tracked_mca);
  const auto op = std::ranges::find(all, "proj_gemm", &study::OverlappedProduct::name);
  ASSERT_NE(op, all.end());
  const double product = 2.0 * 16384 * 3072 * 384 / (0.75 * 80 * 1.4e9 * 1024);
  const double ring = 7 * (16384.0 * 3072 * 2 / 8 / 75e9 + 500e-9);
  EXPECT_NEAR(to_seconds(op->product), product, 1e-9);
  EXPECT_NEAR(to_seconds(op->reduce_scatter), ring, 1e-9);
  EXPECT_NEAR(to_seconds(op->all_gather), ring, 1e-9);
  EXPECT_NEAR(op->ideal_speedup(), 1.191, 5e-4);
  EXPECT_FALSE(op->bound_by_product());
  EXPECT_NEAR(to_seconds(op->overlapped), product / 8 + 2 * ring, 1e-9);
}

TEST(T3, AccessesOfAStepAreThoseOfItsProductsTimesTheirNumber) {
  // Of 72 layers and one microbatch; of every product the reduce-scatter reads 15 and 6 chunks, and
  // 16 and 14 are written.
  const study::Run run = run_of("mega-gpt-2.json", 8, 16, plan::TensorOverlap::tracked);
  const auto overlap = study::overlap_of(run);
  ASSERT_TRUE(overlap);
  EXPECT_NE(overlap->hypothetical.find("hypothetical hardware"), std::string::npos);
  double reads = 0;
  for (const study::OverlappedProduct& one : overlap->products) {
    if (is_sublayer(one)) {
      EXPECT_EQ(one.times, 72) << one.name;
    }
    reads += 15.0 / 8 * static_cast<double>(one.result.value() * one.times);
    EXPECT_DOUBLE_EQ(one.unfused.reduce_reads / one.fused.reduce_reads, 2.5);
    EXPECT_DOUBLE_EQ(one.unfused.writes / one.fused.writes, 16.0 / 14);
  }
  EXPECT_DOUBLE_EQ(overlap->unfused.reduce_reads, reads);
}

TEST(T3, StepsGainAndTheIntervalHoldsThem) {
  // Published: training gains 7 % in the mean and 9 % at most with T3, 10 % and 12 % with T3-MCA.
  const auto machine = machine::load_machine(kFolder + "machine.yaml").value();
  const auto model = zoo::load_model(kFolder + "t-nlg.json").value();
  std::array<Time, kNames<plan::TensorOverlap>.size()> times{};
  for (const auto& how : kNames<plan::TensorOverlap>) {
    const Time simulated = run_of("t-nlg.json", 8, 8, how.value).timeline.step_time;
    const auto estimate = study::estimate_step(model, machine, plan_of(8, 8, how.value), 0);
    ASSERT_TRUE(estimate) << estimate.error().to_string();
    EXPECT_LE(estimate->time.least, simulated) << how.name;
    EXPECT_NEAR(estimate->time.value / simulated, 1, 0.05) << how.name;
    times[static_cast<std::size_t>(how.value)] = simulated;
  }
  EXPECT_LT(times[3], times[2]);
  EXPECT_LT(times[2], times[0]);
}

TEST(T3, IsRefusedByFieldWithoutAnythingToOverlap) {
  const auto machine = machine::load_machine(kFolder + "machine.yaml").value();
  const auto message = [&](const std::string& model, const plan::Plan& plan) {
    return study::plan_mistakes(zoo::load_model(model).value(), machine, plan, plan.devices())
        .to_string();
  };
  const std::string gpt = kFolder + "t-nlg.json";
  EXPECT_EQ(message(gpt, plan_of(8, 8, plan::TensorOverlap::tracked)), "");
  EXPECT_NE(message(gpt, plan_of(1, 8, plan::TensorOverlap::tracked))
                .find("none without tensor parallelism"),
            std::string::npos);
  // A recommender's products are not cut over tp.
  EXPECT_NE(message("dlrm-criteo", plan_of(2, 8, plan::TensorOverlap::tracked))
                .find("overlap_tensor: found 'tracked', expected none: no product"),
            std::string::npos);
}

}  // namespace
}  // namespace orrery
