// SPDX-License-Identifier: Apache-2.0
// Requests per second: 1000 tokens in, 250 out, Llama-3.1-8B on one H100, at most 128 at once.
#include <benchmark/benchmark.h>

#include "serving/requests/generate.h"
#include "serving/serve.h"

namespace orrery {
namespace {

void serve_requests(benchmark::State& state, bool skip) {
  serving::Engine engine = serving::load_engine("vllm@0.19").value();
  engine.max_num_seqs = 128;
  auto server = serving::Server::make(zoo::load_model("llama-3.1-8b").value(),
                                      machine::load_machine("dgx-h100").value(), engine);
  requests::Generator generator{.rate = static_cast<double>(state.range(0))};
  generator.input.first = 1000;
  generator.output.first = 250;
  generator.count = 20000;
  const std::vector<requests::Request> requests = requests::generate(generator);
  for (auto _ : state) {
    benchmark::DoNotOptimize(server->run(requests, {.skip = skip}).duration);
  }
  state.SetItemsProcessed(state.iterations() * generator.count);
}
BENCHMARK_CAPTURE(serve_requests, skipping, true)->Arg(10)->Arg(20)->Arg(40);
BENCHMARK_CAPTURE(serve_requests, stepping, false)->Arg(20);

}  // namespace
}  // namespace orrery
