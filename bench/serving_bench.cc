// SPDX-License-Identifier: Apache-2.0
// Requests per second: 1000 tokens in, 250 out, Llama-3.1-8B on one H100, at most 128 at once.
#include <benchmark/benchmark.h>

#include "serving/plan_search.h"
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

/// Eight H100 for Llama-3-70B, 1000 tokens in, 250 out, two formats, pools included.
void search_for_plans(benchmark::State& state) {
  const serving::Engine engine = serving::load_engine("vllm@0.19").value();
  const zoo::Model model = zoo::load_model("llama-3-70b").value();
  serving::PlanSearch search;
  search.machines = {machine::load_machine("dgx-h100").value()};
  search.formats = {serving::kFormats[0], serving::kFormats[1]};
  search.load.input.first = 1000;
  search.load.output.first = 250;
  for (auto _ : state) {
    benchmark::DoNotOptimize(serving::search_plans(model, engine, search).front.size());
  }
}
BENCHMARK(search_for_plans)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace orrery
