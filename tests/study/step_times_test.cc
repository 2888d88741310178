// SPDX-License-Identifier: Apache-2.0
#include "study/step_times.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

namespace orrery::study {
namespace {

using ::testing::HasSubstr;

// Names as profilers print them: cuBLAS, CUTLASS, FlashAttention, cuDNN, PyTorch, NCCL.
TEST(StepTimes, KernelsAreOfTheClassOfTheirNames) {
  const std::vector<std::pair<std::string_view, WorkClass>> names{
      {"ampere_bf16_s16816gemm_bf16_128x128_ldg8_f2f_stages_32x5_tn", WorkClass::product},
      {"nvjet_tst_192x192_64x4_2x1_v_bz_coopB_TNN", WorkClass::product},
      {"void cutlass::Kernel2<cutlass_80_tensorop_bf16_s16816>", WorkClass::product},
      {"void flash::flash_bwd_dq_dk_dv_loop_kernel<Flash_bwd_kernel_traits<128, cutlass::bf16>>",
       WorkClass::attention},
      {"cudnn_generated_fort_native_sdpa_sm90_flash_fprop_wgmma", WorkClass::attention},
      {"void at::native::multi_tensor_apply_kernel<at::native::FusedAdamMathFunctor>",
       WorkClass::optimizer},
      {"void at::native::vectorized_elementwise_kernel<4, at::native::AddFunctor>",
       WorkClass::stream},
      {"ncclDevKernel_ReduceScatter_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
       WorkClass::reduce_scatter},
      {"ncclDevKernel_AllGather_RING_LL(ncclDevKernelArgsStorage<4096ul>)", WorkClass::all_gather},
      {"ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)", WorkClass::message},
  };
  for (const auto& [name, of] : names) {
    EXPECT_EQ(class_of(name), of) << name;
  }
  // The same kernel moves messages and all-to-alls: only the profiler's field tells.
  EXPECT_EQ(class_of("ncclDevKernel_SendRecv", "all_to_allv"), WorkClass::all_to_all);
  EXPECT_EQ(class_of("ncclDevKernel_AllGather", "_allgather_base"), WorkClass::all_gather);
}

ConfigNode trace_of(const std::string& events) {
  return parse_config("{\"traceEvents\": [" + events + "]}", "rank.json", ConfigSyntax::json)
      .value();
}

std::string kernel(const std::string& name, double begin_us, double length_us) {
  return R"({"ph": "X", "cat": "kernel", "name": ")" + name +
         R"(", "args": {"stream": 7, "graph node id": 3}, "ts": )" + std::to_string(begin_us) +
         R"(, "dur": )" + std::to_string(length_us) + "}";
}

// Two steps in one file: a product [0, 40] us, NCCL beside it [30, 60], another product [80, 100]:
// 100 us from first to last, of which [60, 80] is idle. A step: 50 us, idle 10, products 30,
// all-reduce 15. The second rank's one file has the same, later by 1e15 us, and the means are
// equal.
TEST(StepTimes, AreMeansOverStepsAndRanks) {
  std::vector<RankActivities> ranks;
  for (const double late : {0.0, 1e15}) {
    auto rank = read_kineto_activities(trace_of(
        R"({"ph": "X", "cat": "user_annotation", "name": "ProfilerStep#3", "ts": 0, "dur": 9},)"
        R"({"ph": "X", "cat": "user_annotation", "name": "ProfilerStep#4", "ts": 9, "dur": 9},)" +
        kernel("a_gemm", late, 40) + "," + kernel("ncclDevKernel_AllReduce_Sum", late + 30, 30) +
        "," + kernel("b_gemm", late + 80, 20)));
    ASSERT_TRUE(rank.has_value()) << rank.error().to_string();
    EXPECT_EQ(rank->steps, 2);
    ranks.push_back(std::move(*rank));
  }
  const StepTimes times = times_of(ranks, 0);
  EXPECT_EQ(times.ranks, 2U);
  EXPECT_EQ(times.step, 50_us);
  EXPECT_EQ(times.idle, 10_us);
  EXPECT_EQ(times.busy[static_cast<std::size_t>(WorkClass::product)], 30_us);
  EXPECT_EQ(times.busy[static_cast<std::size_t>(WorkClass::all_reduce)], 15_us);
  EXPECT_EQ(times.longest[static_cast<std::size_t>(WorkClass::product)], "a_gemm");
  EXPECT_EQ(times_of(ranks, 1).step, 100_us);
}

TEST(StepTimes, FilesWithoutADeviceOrWithoutTimesAreMistakes) {
  const auto host = read_kineto_activities(trace_of(R"({"ph": "X", "cat": "cpu_op"})"));
  EXPECT_THAT(host.error().to_string(), HasSubstr("rank.json: traceEvents"));
  const auto torn = read_kineto_activities(
      trace_of(R"({"ph": "X", "cat": "kernel", "name": "gemm", "ts": 1, "dur": "long"})"));
  EXPECT_THAT(torn.error().to_string(), HasSubstr("found 'long'"));
}

// On one device nothing overlaps: kernels of all classes, as the report's forward, backward and
// optimizer count them, and what is idle are the step.
TEST(StepTimes, OfARunOnOneDeviceAddUpToItsStep) {
  plan::Plan plan;
  plan.global_batch = 2;
  plan.attention = zoo::AttentionKernel::flash;
  const auto run =
      run_step(zoo::load_model("gpt2").value(), machine::load_machine("dgx-a100-80g").value(), plan,
               1, {.record_spans = true});
  ASSERT_TRUE(run.has_value()) << run.error().to_string();
  const StepTimes times = times_of(*run);
  const Time busy = std::accumulate(times.busy.begin(), times.busy.end(), Time(0));
  EXPECT_NEAR(to_seconds(busy + times.idle), to_seconds(run->timeline.step_time), 1e-9);
  EXPECT_GT(times.busy[static_cast<std::size_t>(WorkClass::product)], times.step / 5);
  EXPECT_GT(times.busy[static_cast<std::size_t>(WorkClass::attention)], Time(0));
  EXPECT_GT(times.busy[static_cast<std::size_t>(WorkClass::optimizer)], Time(0));
  EXPECT_EQ(times.busy[static_cast<std::size_t>(WorkClass::all_reduce)], Time(0));
}

// Products take 3 ms instead of 2, attention 1.05 instead of 1: of 1.05 ms of difference 1 ms, and
// only what is off by more than a tenth is worth calibrating.
TEST(StepTimes, TheLargestDifferenceComesFirstWithItsAdvice) {
  StepTimes measured{.step = 3_ms};
  StepTimes simulated{.step = 4_ms};
  measured.busy = {2_ms, 1_ms};
  simulated.busy = {3_ms, 1050_us};
  const MeasuredComparison compared = compare_measured(measured, simulated);
  ASSERT_EQ(compared.classes.size(), 2U);
  EXPECT_EQ(compared.classes[0].name, "product");
  EXPECT_NEAR(compared.classes[0].share, 1 / 1.05, 1e-12);
  EXPECT_THAT(compared.classes[0].advice, HasSubstr("orrery calibrate gemm"));
  EXPECT_EQ(compared.classes[1].advice, "");
}

}  // namespace
}  // namespace orrery::study
