// SPDX-License-Identifier: Apache-2.0
/// Ten thousand streams that are open at once, on two cores: an endpoint and, in a process of its
/// own, their client.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <thread>

#include "serving/http/endpoint.h"
#include "serving/http/observe.h"
#include "serving/metrics.h"

namespace orrery::http {
namespace {

constexpr std::int64_t kStreams = 10'000;
constexpr std::int64_t kTokens = 20;

/// Runs a client in a process of its own: its descriptors count for it alone. Returns its exit
/// status.
int run_client(const std::string& url) {
  rlimit files{};
  getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = files.rlim_max;
  setrlimit(RLIMIT_NOFILE, &files);
  std::vector<requests::Request> requests;
  for (std::int64_t i = 0; i < kStreams; ++i) {
    requests.push_back({.arrival = Time(200_us) * i, .input = 16, .output = kTokens, .ids = {}});
  }
  const auto seen = observe(url, "m", requests);
  const bool good = seen && std::ranges::all_of(*seen, [](const Observed& one) {
                      return one.status == 200 && one.output == kTokens;
                    });
  return good ? 0 : 1;
}

TEST(Streams, TenThousandAreOpenAtOnce) {
  rlimit files{};
  getrlimit(RLIMIT_NOFILE, &files);
  if (files.rlim_max < kStreams + 100) {
    GTEST_SKIP() << "a process may open " << files.rlim_max << " files";
  }
  serving::Engine engine = serving::load_engine("vllm@0.19").value();
  engine.max_num_seqs = kStreams;
  engine.max_num_batched_tokens = 2 * kStreams;
  engine.front_end = 25_s;  // all have come before the first is answered, on a busy computer, too
  const machine::Machine machine = machine::load_machine("dgx-h100").value();
  auto server = serving::Server::make(zoo::load_model("llama-3.2-1b").value(), machine, engine);
  ASSERT_TRUE(server.has_value()) << server.error().to_string();
  Endpoint endpoint(*server, {.models = {"m"}}, [] { return 0; });
  Limits limits;
  limits.signals = false;
  const auto http = HttpServer::listen("127.0.0.1:0", limits, endpoint).value();
  endpoint.start(*http);
  const std::string url = "http://" + http->address();
  const pid_t client = fork();
  if (client == 0) {
    _exit(run_client(url));
  }
  ASSERT_GT(client, 0);
  std::thread watch([&] {
    int status = 1;
    waitpid(client, &status, 0);
    EXPECT_EQ(WEXITSTATUS(status), 0);
    http->stop();
  });
  http->run();
  watch.join();
  const serving::Run run = endpoint.finish();
  EXPECT_EQ(run.requests.size(), static_cast<std::size_t>(kStreams));
  EXPECT_GT(serving::metrics(run, machine).peak_concurrent, kStreams / 2);
}

}  // namespace
}  // namespace orrery::http
