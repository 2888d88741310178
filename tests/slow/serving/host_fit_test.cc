// SPDX-License-Identifier: Apache-2.0
#include "serving/host_fit.h"

#include <gtest/gtest.h>

#include "serving/requests/generate.h"

namespace orrery::serving {
namespace {

zoo::Model small_model() {
  return zoo::load_model("llama-3.2-1b").value();
}
machine::Machine node_of(const char* name) {
  return machine::load_machine(name).value();
}

TEST(FitHost, FindsTheTimesThatARunWasMadeWith) {
  // A synchronous engine with 1 ms a step and 7 ms of front end: what it serves says so.
  Engine truth = load_engine("vllm@0.10").value();
  truth.step = 1_ms;
  truth.per_request = 20_us;
  truth.front_end = 7_ms;
  requests::Generator load;
  load.rate = 30;
  load.input = {.kind = requests::Length::Kind::uniform, .first = 50, .second = 600};
  load.output = {.kind = requests::Length::Kind::uniform, .first = 10, .second = 60};
  load.count = 24;
  const auto sent = requests::generate(load);
  const serving::Run run = serve(small_model(), node_of("dgx-h100"), truth, sent).value();
  std::vector<MeasuredRequest> measured;
  for (std::size_t i = 0; i < sent.size(); ++i) {
    measured.push_back({sent[i], run.requests[i].ttft(), run.requests[i].tpot()});
  }
  Engine start = truth;
  start.step = start.per_request = start.front_end = Time(0);
  const HostFit fit = fit_host(small_model(), node_of("dgx-h100"), start, measured).value();
  EXPECT_GT(fit.before.tpot, 0.3);
  EXPECT_LT(fit.after.tpot, 0.01);
  EXPECT_LT(fit.after.ttft, 0.01);
  EXPECT_NEAR(to_seconds(fit.engine.front_end), 7e-3, 0.2e-3);
  EXPECT_NEAR(to_seconds(fit.engine.step), 1e-3, 0.1e-3);
}

}  // namespace
}  // namespace orrery::serving
