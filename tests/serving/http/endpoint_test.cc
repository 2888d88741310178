// SPDX-License-Identifier: Apache-2.0
#include "serving/http/endpoint.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <charconv>

#include "serving/metrics.h"
#include "serving/requests/generate.h"

namespace orrery::http {
namespace {

using testing::HasSubstr;
using testing::Not;

class FakeWall : public Wall {
 public:
  Time now() const override { return now_; }
  void wake_at(Time at) override { wake_ = at; }
  Time now_{0};
  Time wake_ = Time::max();
};

struct FakeAnswer : Answer {
  void send(int code, std::string_view /*type*/, std::string body,
            std::string_view /*fields*/) override {
    status = code;
    text = std::move(body);
    over = true;
  }
  void begin(std::string_view /*type*/) override { status = 200; }
  void piece(std::string_view more) override { text += more; }
  void end() override { over = true; }
  int status = 0;
  std::string text;
  bool over = false;

  /// A number of the last "name":NUMBER of the text.
  double number(const std::string& name) const {
    const std::size_t at = text.rfind("\"" + name + "\":");
    double value = -1;
    if (at != std::string::npos) {
      const char* const begin = text.data() + at + name.size() + 3;
      std::from_chars(begin, text.data() + text.size(), value);
    }
    return value;
  }
};

serving::Server small_server(std::int64_t replicas = 1) {
  serving::Engine engine = serving::load_engine("vllm@0.19").value();
  engine.blocks = 400;
  engine.max_num_seqs = 8;
  engine.replicas = replicas;
  return serving::Server::make(zoo::load_model("llama-3.2-1b").value(),
                               machine::load_machine("dgx-h100").value(), engine)
      .value();
}

/// Prompts of different requests have no token in common.
std::string body_of(std::size_t number, std::int64_t input, std::int64_t output, bool stream) {
  std::string tokens;
  for (std::int64_t i = 0; i < input; ++i) {
    tokens += (i == 0 ? "" : ",") +
              std::to_string(1'000'000 * (number + 1) + static_cast<std::size_t>(i));
  }
  return fmt::format(R"({{"model":"m","prompt":[{}],"max_tokens":{},"stream":{}}})", tokens, output,
                     stream);
}

class EndpointTest : public testing::Test {
 protected:
  void serve(EndpointOptions options, std::int64_t replicas = 1) {
    options.models = {"m"};
    server_.emplace(small_server(replicas));
    endpoint_.emplace(*server_, options, [] { return 0; });
    endpoint_->start(wall_);
  }
  std::shared_ptr<FakeAnswer> ask(std::string path, std::string body, std::string arrival = "",
                                  std::uint64_t connection = 1, bool last = false) {
    HttpRequest request;
    request.exchange = ++exchanges_;
    request.connection = connection;
    request.method = body.empty() ? "GET" : "POST";
    request.path = std::move(path);
    request.body = std::move(body);
    if (!arrival.empty()) {
      request.headers.emplace_back("x-orrery-arrival", std::move(arrival));
    }
    if (last) {
      request.headers.emplace_back("x-orrery-last", "1");
    }
    auto answer = std::make_shared<FakeAnswer>();
    endpoint_->asked(std::move(request), answer);
    return answer;
  }
  /// Lets the world go on until `until`.
  void pass(Time until) {
    while (wall_.wake_ <= until) {
      wall_.now_ = std::max(wall_.now_, std::exchange(wall_.wake_, Time::max()));
      endpoint_->woken();
    }
    wall_.now_ = until;
  }

  FakeWall wall_;
  std::optional<serving::Server> server_;
  std::optional<Endpoint> endpoint_;
  std::uint64_t exchanges_ = 0;
};

TEST_F(EndpointTest, WatchersAreToldOfBlocksAsVllmTellsThem) {
  serve({.models = {}});
  const auto early = ask("/v1/completions", body_of(0, 40, 2, false));
  pass(1_s);
  const auto watcher = ask("/kv_events", "");
  ask("/v1/completions", body_of(1, 40, 2, false));
  pass(2_s);
  // Two whole blocks of 16 of the 40 tokens, the second behind the first; nothing of what was there
  // before, and of the same prompt nothing again.
  std::string first;
  std::string second;
  for (std::int64_t i = 0; i < 16; ++i) {
    first += (i == 0 ? "" : ",") + std::to_string(2'000'000 + i);
    second += (i == 0 ? "" : ",") + std::to_string(2'000'016 + i);
  }
  EXPECT_THAT(watcher->text, testing::StartsWith("id: 0\ndata: [1,[[\"BlockStored\",["));
  EXPECT_THAT(watcher->text, HasSubstr("],null,[" + first + "],16,null,\"GPU\"]],0]\n\nid: 1\n"));
  EXPECT_THAT(watcher->text, HasSubstr(",[" + second + "],16,null,\"GPU\"]],0]\n\n"));
  const std::size_t key = watcher->text.find("[\"BlockStored\",[") + 16;
  const std::string parent = watcher->text.substr(key, watcher->text.find(']', key) - key);
  EXPECT_THAT(watcher->text, HasSubstr("]," + parent + ",[" + second));
  EXPECT_LT(std::stoull(parent), 9'007'199'254'740'992U);  // 2^53: a double has it
  const std::size_t told = watcher->text.size();
  ask("/v1/completions", body_of(1, 40, 2, false));
  pass(3_s);
  EXPECT_EQ(watcher->text.size(), told);
  // 400 blocks, one of them the engine's: the 12th prompt of 600 tokens needs those of the first.
  for (std::size_t i = 2; i < 14; ++i) {
    ask("/v1/completions", body_of(i, 600, 2, false));
    pass(wall_.now_ + 1_s);
  }
  EXPECT_THAT(watcher->text, HasSubstr("[\"BlockRemoved\",[" + parent + "],\"GPU\"]"));
  EXPECT_EQ(ask("/kv_events", "{}")->status, 405);
  EXPECT_FALSE(watcher->over);
  endpoint_->finish();
  EXPECT_TRUE(watcher->over);
}

TEST_F(EndpointTest, ClientsWithArrivalsGetTheTimesOfAnOfflineRun) {
  // Requests every 3 ms, sent in any order: virtual time waits for all of them. Of one engine and
  // of two behind a router.
  for (const std::int64_t replicas : {1, 2}) {
    constexpr std::size_t kRequests = 30;
    serve({.models = {}, .max = true, .clients = kRequests}, replicas);
    std::vector<requests::Request> offline;
    std::vector<std::shared_ptr<FakeAnswer>> answers(kRequests);
    for (std::size_t i = 0; i < kRequests; ++i) {
      offline.push_back({.arrival = Time(3_ms) * static_cast<std::int64_t>(i),
                         .input = 100 + 7 * static_cast<std::int64_t>(i),
                         .output = 20 + static_cast<std::int64_t>(i % 5),
                         .ids = {}});
    }
    for (std::size_t i = 0; i < kRequests; ++i) {
      const std::size_t other = (i * 7) % kRequests;  // 7 and 30 have no divisor in common
      const requests::Request& request = offline[other];
      answers[other] =
          ask("/v1/completions", body_of(other, request.input, request.output, other % 2 == 0),
              fmt::format("{:.3f}", to_seconds(request.arrival)), other + 1, true);
    }
    const serving::Run run = small_server(replicas).run(offline);
    for (std::size_t i = 0; i < kRequests; ++i) {
      ASSERT_TRUE(answers[i]->over) << i;
      EXPECT_NEAR(answers[i]->number("arrival"), to_seconds(run.requests[i].sent), 1e-9);
      EXPECT_NEAR(answers[i]->number("first_token"), to_seconds(run.requests[i].first), 1e-9);
      EXPECT_NEAR(answers[i]->number("finish"), to_seconds(run.requests[i].last), 1e-9);
    }
    const serving::Run live = endpoint_->finish();
    EXPECT_EQ(live.requests.size(), kRequests);
    EXPECT_EQ(serving::statistics(live.gaps).p99, serving::statistics(run.gaps).p99);
  }
}

TEST_F(EndpointTest, ClientsThatAskAgainAfterEachAnswerAreAnOfflineRunOfSoManyAtOnce) {
  // Four clients, each with its next request when the last one is answered: as max_concurrency 4.
  constexpr std::size_t kClients = 4;
  constexpr std::size_t kRequests = 20;
  serve({.models = {}, .max = true, .clients = kClients});
  std::vector<requests::Request> offline(kRequests, {.input = 200, .output = 30, .ids = {}});
  std::vector<std::shared_ptr<FakeAnswer>> last(kClients);
  std::vector<double> finished;
  std::size_t asked = 0;
  for (; asked < kClients; ++asked) {
    last[asked] = ask("/v1/completions", body_of(asked, 200, 30, true), "0", asked + 1);
  }
  while (finished.size() < kRequests) {
    const std::size_t before = finished.size();
    for (std::size_t client = 0; client < kClients; ++client) {
      if (!last[client] || !last[client]->over) {
        continue;
      }
      finished.push_back(last[client]->number("finish"));
      last[client].reset();
      if (asked < kRequests) {
        last[client] = ask("/v1/completions", body_of(asked, 200, 30, true),
                           fmt::format("{:.12f}", finished.back()), client + 1);
        ++asked;
      } else {
        endpoint_->closed(client + 1);
      }
    }
    ASSERT_GT(finished.size(), before) << "time stands";
  }
  const serving::Run run = small_server().run(offline, {.max_concurrency = kClients});
  std::vector<double> expected;
  for (const serving::Served& served : run.requests) {
    expected.push_back(to_seconds(served.last));
  }
  std::sort(finished.begin(), finished.end());
  std::sort(expected.begin(), expected.end());
  for (std::size_t i = 0; i < kRequests; ++i) {
    EXPECT_NEAR(finished[i], expected[i], 1e-9);
  }
}

TEST_F(EndpointTest, OnTheWorldsClockATokenComesWhenItsStepEnds) {
  // Twice as fast as the world: half of the offline run's times.
  serve({.models = {}, .speed = 2});
  const auto answer = ask("/v1/completions", body_of(0, 100, 3, true));
  const serving::Run run = small_server().run({{.input = 100, .output = 3, .ids = {}}});
  const Time first = run.requests[0].first / 2;
  pass(first - Time(1_us));
  EXPECT_EQ(answer->text, "");
  pass(first + Time(1_us));
  EXPECT_THAT(answer->text, HasSubstr(" token"));
  EXPECT_FALSE(answer->over);
  pass(run.requests[0].last / 2 + Time(1_us));
  EXPECT_TRUE(answer->over);
  EXPECT_THAT(answer->text, HasSubstr(R"("finish_reason":"length")"));
  EXPECT_THAT(answer->text, testing::EndsWith("data: [DONE]\n\n"));
}

TEST_F(EndpointTest, WhoLeavesGivesItsSeatAndItsBlocksBack) {
  serve({.models = {}});
  for (std::size_t i = 0; i < 10; ++i) {  // two more than there are seats
    ask("/v1/completions", body_of(i, 200, 200, true), "", i + 1);
  }
  pass(100_ms);
  EXPECT_THAT(ask("/metrics", "")->text,
              HasSubstr("num_requests_running{engine=\"0\",model_name=\"m\"} 8"));
  for (std::uint64_t exchange = 1; exchange <= 10; ++exchange) {
    endpoint_->left(exchange);
  }
  pass(200_ms);
  const std::string after = ask("/metrics", "")->text;
  EXPECT_THAT(after, HasSubstr("num_requests_running{engine=\"0\",model_name=\"m\"} 0"));
  EXPECT_THAT(after, HasSubstr("kv_cache_usage_perc{engine=\"0\",model_name=\"m\"} 0\n"));
  EXPECT_THAT(after, HasSubstr("finished_reason=\"abort\"} 10"));
  const auto next = ask("/v1/completions", body_of(50, 200, 2, false));
  pass(400_ms);
  EXPECT_EQ(next->status, 200);
  EXPECT_EQ(endpoint_->finish().requests.size(), 1U);
}

TEST_F(EndpointTest, AnswersAreOpenAis) {
  serve({.models = {}, .speed = 1000});
  const auto chat = ask("/v1/chat/completions",
                        R"({"model":"m","messages":[{"role":"user","content":"12345678"}],)"
                        R"("max_tokens":2,"stream":true,"stream_options":{"include_usage":true}})");
  const auto many = ask("/v1/completions", R"({"prompt":["abcd","efghi"],"n":2,"max_tokens":3})");
  pass(1_s);
  EXPECT_THAT(chat->text, HasSubstr(R"("delta":{"role":"assistant","content":" token"})"));
  // Two tokens of the text, one per four bytes, and four of the message.
  EXPECT_THAT(chat->text,
              HasSubstr(R"("usage":{"prompt_tokens":6,"total_tokens":8,"completion_tokens":2)"));
  // Prompts of 1 and 2 tokens, two answers of 3 each.
  EXPECT_THAT(many->text,
              HasSubstr(R"("usage":{"prompt_tokens":3,"total_tokens":15,"completion_tokens":12)"));
  EXPECT_THAT(
      many->text,
      HasSubstr(
          R"({"index":3,"text":" token token token","logprobs":null,"finish_reason":"length"})"));
  EXPECT_THAT(many->text, HasSubstr("estimated, one per 4 bytes"));
  EXPECT_THAT(ask("/v1/models", "")->text, HasSubstr(R"("id":"m","object":"model")"));
  EXPECT_EQ(ask("/health", "")->status, 200);
  EXPECT_THAT(ask("/metrics", "")->text, HasSubstr("vllm:time_to_first_token_seconds_count"));
}

TEST_F(EndpointTest, AWrongBodyIsToldWhatIsWrong) {
  serve({.models = {}});
  const std::vector<std::tuple<const char*, int, const char*>> cases{
      {"{", 400, "no JSON object"},
      {"[]", 400, "no JSON object"},
      {R"({"model":"n","prompt":"a"})", 404, "the model `n` does not exist; there is `m`"},
      {R"({"max_tokens":5})", 400, "prompt is missing"},
      {R"({"prompt":""})", 400, "a prompt is empty"},
      {R"({"prompt":[1,-2]})", 400, "no whole number from 0 on"},
      {R"({"prompt":{}})", 400, "neither text nor a list"},
      {R"({"prompt":"a","max_tokens":0})", 400, "max_tokens is no whole number from 1"},
      {R"({"prompt":"a","max_tokens":1e99})", 400, "max_tokens is no whole number from 1"},
      {R"({"prompt":"a","max_tokens":90000000})", 400, "maximum context length"},
      {R"({"prompt":"a","stream":"yes"})", 400, "neither true nor false"},
      {R"({"prompt":"a","n":1000})", 400, "of at most 128"},
      {R"({"prompt":"a","logprobs":3})", 400, "logprobs are not computed"},
      {R"({"prompt":"a","max_tokens":100000})", 400, "more than the KV cache"},
  };
  for (const auto& [body, status, message] : cases) {
    const auto answer = ask("/v1/completions", body);
    EXPECT_EQ(answer->status, status) << body;
    EXPECT_THAT(answer->text, HasSubstr(message)) << body;
  }
  EXPECT_EQ(ask("/v1/completions", "")->status, 405);
  EXPECT_EQ(ask("/nowhere", "")->status, 404);
  const std::string nested(100'000, '[');
  EXPECT_EQ(ask("/v1/completions", R"({"prompt":)" + nested)->status, 400);
  EXPECT_THAT(ask("/v1/chat/completions", R"({"messages":[{"role":1}]})")->text,
              HasSubstr("no object with a role"));
}

}  // namespace
}  // namespace orrery::http
