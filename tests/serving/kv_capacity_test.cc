// SPDX-License-Identifier: Apache-2.0
/// The memory that is left for keys and values beside what engines have logged. Nothing is fitted
/// to these rows.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "serving/serve.h"

namespace orrery::serving {
namespace {

struct LoggedCapacity {
  const char* what;
  const char* model;
  const char* machine;
  const char* engine;
  double utilization;
  std::int64_t tp;
  void (*set)(Engine&);
  double gib;  ///< of a device
};

void as_it_is(Engine&) {}
void experts_in_mxfp4(Engine& engine) {
  engine.weights = graph::DataType::fp4;
  engine.narrow = step::Narrow::experts;
  engine.scale_bits = 0.25;  // 8 bits of scale for 32 weights
}
void blocks_of_fp8(Engine& engine) {
  engine.weights = engine.activations = graph::DataType::fp8;
  engine.block_scaled = true;
}

// 2588 blocks of 16 x 131,072 bytes; log of the run in vllm_requests (casys-kaist/LLMServingSim).
// "GPU KV cache size: 163,168 tokens", 19.92 GiB, Llama-3.1-8B, max_model_len 32768, May 2026: note
// on compute environments of a public student project, utilization assumed to be the default.
// "Available KV cache memory: 36.56 GiB", gpt-oss-20b on an A100, vLLM 0.19.0, April 2026:
// myoceane.fr, "vLLM ... A100".
// "Available KV cache memory: 1.71 GiB", gpt-oss-120b on an H100, vLLM 0.11: vllm-project/vllm
// issue 27508; of 1,024 x 201,088 logits, sorted for top-p in the profiling step, 40 bytes each.
// "#tokens: 367404, K size: 8.23 GB, V size: 8.23 GB", Qwen3-235B-A22B-FP8 on 4 H100, July 2025:
// vllm-project/vllm issue 21348.
constexpr std::array kLogged{
    LoggedCapacity{"rtx4090", "llama-3.1-8b", "rtx-4090", "vllm@0.19", 0.9, 1, as_it_is,
                   2588 * 16 * 131072.0 / (1 << 30)},
    LoggedCapacity{"a100_40g", "llama-3.1-8b", "dgx-a100-40g", "vllm@0.19", 0.9, 1, as_it_is,
                   19.92},
    LoggedCapacity{"a100_80g", "gpt-oss-20b", "dgx-a100-80g", "vllm@0.19", 0.65, 1,
                   experts_in_mxfp4, 36.56},
    LoggedCapacity{"h100_sorted", "gpt-oss-120b", "dgx-h100", "vllm@0.10", 0.95, 1,
                   experts_in_mxfp4, 1.71},
    LoggedCapacity{"h100_sglang", "qwen3-235b-a22b", "dgx-h100", "sglang@0.5", 0.93, 4,
                   blocks_of_fp8, 16.46},
};

// 36 layers of 128 experts of 3 matrices 2,880 x 2,880, which lie as 3,072 x 2,944, in 4.25 bits:
// 125.02e9 x 4.25 / 8 = 66.42 GB; their biases, 36 x 128 x (5,760 + 2,880) = 39.8 million, and the
// other 2,127.6 million parameters in 16 bits 4.33 GB: 65.9 GiB. Logged: 65.97 GiB ("Model loading
// took"), a public log of vLLM (configs/validation/serving_logs.csv).
TEST(LoadedWeights, OfMxfp4ExpertsLiePadded) {
  const Engine engine =
      load_engine_for(zoo::load_model_file("gpt-oss-120b").value(), "vllm@0.20").value();
  auto server = Server::make(zoo::load_model("gpt-oss-120b").value(),
                             machine::load_machine("dgx-h100").value(), engine);
  ASSERT_TRUE(server.has_value()) << server.error().to_string();
  const double gib = static_cast<double>(server->cost().weights_per_device().value()) / (1 << 30);
  EXPECT_NEAR(gib, 65.97, 0.005 * 65.97);
}

// DeepSeek-V3 ships in 8 bits, a scale of 32 bits for 128 x 128 weights: of its 671.0 billion
// parameters embedding and output, 2 x 129,280 x 7,168, take two bytes, 3.7 GB, the others 1.00024,
// 669.3 GB. An eighth is 84.1 GB; every rank has the down-projections of attention whole, 7/8 x 61
// x 7,168 x (1,536 + 576) = 0.8 GB more: 84.9 GB.
TEST(LoadedWeights, OfACheckpointThatShipsIn8BitsAreIts) {
  Engine engine = load_engine_for(zoo::load_model_file("deepseek-v3").value(), "vllm@0.20").value();
  engine.tp = 8;
  auto server = Server::make(zoo::load_model("deepseek-v3").value(),
                             machine::load_machine("dgx-h200").value(), engine);
  ASSERT_TRUE(server.has_value()) << server.error().to_string();
  const auto bytes = static_cast<double>(server->cost().weights_per_device().value());
  EXPECT_NEAR(bytes / 1e9, 84.9, 0.01 * 84.9);
}

class KvCapacity : public testing::TestWithParam<LoggedCapacity> {};

TEST_P(KvCapacity, IsWithinFivePercentOfWhatAnEngineLogged) {
  const LoggedCapacity& row = GetParam();
  Engine engine = load_engine(row.engine).value();
  engine.memory_utilization = row.utilization;
  engine.tp = row.tp;
  row.set(engine);
  auto server = Server::make(zoo::load_model(row.model).value(),
                             machine::load_machine(row.machine).value(), engine);
  ASSERT_TRUE(server.has_value()) << server.error().to_string();
  const std::int64_t block = server->engine().block_size;
  const double bytes =
      static_cast<double>((server->kv_blocks() + server->engine().null_blocks) * block) *
      static_cast<double>(server->cost().kv_bytes_per_token().value());
  const double error = bytes / (1 << 30) / row.gib - 1;
  fmt::print("{:<12} {:6.2f} GiB, logged {:6.2f}: {:+.1f} %\n", row.what, bytes / (1 << 30),
             row.gib, 100 * error);
  EXPECT_NEAR(error, 0, 0.05);
}
INSTANTIATE_TEST_SUITE_P(Logs, KvCapacity, testing::ValuesIn(kLogged),
                         [](const auto& row) { return std::string(row.param.what); });

}  // namespace
}  // namespace orrery::serving
