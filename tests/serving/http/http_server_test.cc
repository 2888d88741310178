// SPDX-License-Identifier: Apache-2.0
/// Clients of their own over real connections: slow, broken and hostile ones cost others nothing.
#include <arpa/inet.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <random>
#include <thread>

#include "http/connection.h"
#include "serving/http/endpoint.h"
#include "serving/http/observe.h"

namespace orrery::http {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

/// An endpoint on a free port, in a thread.
class Running {
 public:
  explicit Running(EndpointOptions options, Limits limits = Limits()) {
    serving::Engine engine = serving::load_engine("vllm@0.19").value();
    engine.blocks = 4000;
    server_.emplace(serving::Server::make(zoo::load_model("llama-3.2-1b").value(),
                                          machine::load_machine("dgx-h100").value(), engine)
                        .value());
    options.models = {"m"};
    endpoint_.emplace(*server_, options, [] { return 0; });
    limits.signals = false;
    http_ = HttpServer::listen("127.0.0.1:0", limits, *endpoint_).value();
    endpoint_->start(*http_);
    thread_ = std::thread([this] { http_->run(); });
  }
  ~Running() {
    http_->stop();
    thread_.join();
  }
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;
  std::string address() const { return http_->address(); }

 private:
  std::optional<serving::Server> server_;
  std::optional<Endpoint> endpoint_;
  std::unique_ptr<HttpServer> http_;
  std::thread thread_;
};

class TestClient {
 public:
  /// `buffer`: bytes that the kernel keeps of what is not read; 0: its default.
  explicit TestClient(const std::string& address, int buffer = 0) {
    const Place place = parse_address(address).value();
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(place.port);
    inet_pton(AF_INET, place.host.c_str(), &to.sin_addr);
    socket_ = socket(AF_INET, SOCK_STREAM, 0);
    if (buffer > 0) {
      setsockopt(socket_, SOL_SOCKET, SO_RCVBUF, &buffer, sizeof buffer);
    }
    EXPECT_EQ(connect(socket_, reinterpret_cast<sockaddr*>(&to), sizeof to), 0);
  }
  ~TestClient() { leave(); }
  TestClient(const TestClient&) = delete;
  TestClient& operator=(const TestClient&) = delete;

  void leave() {
    if (socket_ >= 0) {
      close(std::exchange(socket_, -1));
    }
  }
  void send_text(std::string_view text) {
    while (!text.empty()) {
      const ssize_t sent = send(socket_, text.data(), text.size(), MSG_NOSIGNAL);
      if (sent <= 0) {
        return;  // the server has closed
      }
      text.remove_prefix(static_cast<std::size_t>(sent));
    }
  }
  /// All until `end`, the connection's end, or five seconds of nothing.
  std::string read_until(const std::string& end) {
    std::string text;
    while (end.empty() || text.find(end) == std::string::npos) {
      pollfd ready{.fd = socket_, .events = POLLIN, .revents = 0};
      char bytes[4096];
      if (poll(&ready, 1, 5000) <= 0) {
        return text + "(nothing comes)";
      }
      const ssize_t read = recv(socket_, bytes, sizeof bytes, 0);
      if (read <= 0) {
        break;
      }
      text.append(bytes, static_cast<std::size_t>(read));
    }
    return text;
  }

 private:
  int socket_ = -1;
};

std::string post(std::string_view body, std::string_view more = "") {
  return fmt::format("POST /v1/completions HTTP/1.1\r\nHost: x\r\n{}Content-Length: {}\r\n\r\n{}",
                     more, body.size(), body);
}

std::string metrics_of(const std::string& address) {
  TestClient client(address);
  client.send_text("GET /metrics HTTP/1.1\r\nConnection: close\r\n\r\n");
  return client.read_until("");
}

TEST(HttpServer, AnswersOneRequestAfterAnotherOnAConnection) {
  const Running running({.models = {}, .speed = 1000});
  TestClient client(running.address());
  client.send_text(post(R"({"prompt":"abcd","max_tokens":2})"));
  EXPECT_THAT(client.read_until("}}"), StartsWith("HTTP/1.1 200 OK\r\n"));
  client.send_text(post(R"({"prompt":"abcd","max_tokens":3,"stream":true})"));
  const std::string stream = client.read_until("\r\n0\r\n\r\n");
  EXPECT_THAT(stream, HasSubstr("Transfer-Encoding: chunked"));
  EXPECT_THAT(stream, HasSubstr("data: [DONE]"));
  client.send_text("GET /health HTTP/1.0\r\n\r\n");
  EXPECT_THAT(client.read_until(""), HasSubstr("Connection: close"));
}

TEST(HttpServer, SlowBrokenAndHostileClientsCostNobodyHisStream) {
  const Running running({.models = {}, .speed = 20});
  TestClient good(running.address());
  good.send_text(post(R"({"prompt":"abcd","max_tokens":400,"stream":true})"));
  TestClient slow(running.address());
  slow.send_text("POST /v1/completions HTTP/1.1\r\nHo");  // and no more
  TestClient header(running.address());
  header.send_text("GET / HTTP/1.1\r\nX: " + std::string(20'000, 'a') + "\r\n\r\n");
  EXPECT_THAT(header.read_until(""), StartsWith("HTTP/1.1 431"));
  TestClient body(running.address());
  body.send_text("POST /v1/completions HTTP/1.1\r\nContent-Length: 9000000\r\n\r\n");
  EXPECT_THAT(body.read_until(""), StartsWith("HTTP/1.1 413"));
  std::vector<std::unique_ptr<TestClient>> leavers;
  for (int i = 0; i < 20; ++i) {
    leavers.push_back(std::make_unique<TestClient>(running.address()));
    leavers.back()->send_text(post(R"({"prompt":"abcd","max_tokens":20000,"stream":true})"));
    leavers.back()->read_until("data:");
    leavers.back()->leave();
  }
  // Fuzzed: a request with bytes changed, dropped or doubled; seeded.
  std::mt19937 random(7);
  const std::string request = post(R"({"prompt":[1,2,3],"max_tokens":1,"n":2})", "X-Y: z\r\n");
  for (int i = 0; i < 200; ++i) {
    std::string fuzzed = request;
    for (int change = 0; change < 3; ++change) {
      const std::size_t at = random() % fuzzed.size();
      switch (random() % 3) {
        case 0:
          fuzzed[at] = static_cast<char>(random());
          break;
        case 1:
          fuzzed.erase(at, 1);
          break;
        default:
          fuzzed.insert(at, fuzzed.substr(at, 1 + random() % 8));
      }
    }
    TestClient client(running.address());
    client.send_text(fuzzed);
  }
  const std::string answer = good.read_until("[DONE]");
  EXPECT_THAT(answer, HasSubstr(R"("finish_reason":"length")"));
  EXPECT_THAT(answer, HasSubstr("data: [DONE]"));
  std::string metrics = metrics_of(running.address());
  for (int i = 0; i < 50 && metrics.find("requests_running{engine=\"0\",model_name=\"m\"} 0") ==
                                std::string::npos;
       ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    metrics = metrics_of(running.address());
  }
  EXPECT_THAT(metrics, HasSubstr("requests_running{engine=\"0\",model_name=\"m\"} 0"));
}

TEST(HttpServer, AClientThatDoesNotReadIsClosedAtItsLimit) {
  Limits limits;
  limits.buffered = 64_KiB;
  const Running running({.models = {}, .speed = 100'000}, limits);
  TestClient lazy(running.address(), 4096);
  // Tokens of some 200 bytes each, 5 MB: more than the sockets hold and the limit.
  lazy.send_text(post(R"({"prompt":"abcd","max_tokens":25000,"stream":true})"));
  std::string metrics;
  for (int i = 0; i < 250 && metrics.find("finished_reason=\"abort\"} 1") == std::string::npos;
       ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    metrics = metrics_of(running.address());
  }
  EXPECT_THAT(metrics, HasSubstr("finished_reason=\"abort\"} 1"));
}

TEST(HttpServer, OnTheWorldsClockAClientsTimesAreTheEngines) {
  // The client's own clock against an offline run: within 1 % or 2 ms of virtual time.
  const Running running({.models = {}});
  std::vector<requests::Request> requests;
  for (std::int64_t i = 0; i < 8; ++i) {
    requests.push_back({.arrival = Time(20_ms) * i, .input = 300, .output = 30, .ids = {}});
  }
  const auto seen = observe("http://" + running.address(), "m", requests);
  ASSERT_TRUE(seen.has_value()) << seen.error().to_string();
  serving::Engine engine = serving::load_engine("vllm@0.19").value();
  engine.blocks = 4000;
  const serving::Run run =
      serving::serve(zoo::load_model("llama-3.2-1b").value(),
                     machine::load_machine("dgx-h100").value(), engine, requests)
          .value();
  std::vector<double> late;
  for (std::size_t i = 0; i < requests.size(); ++i) {
    EXPECT_EQ((*seen)[i].status, 200);
    EXPECT_EQ((*seen)[i].output, 30);
    late.push_back(to_seconds((*seen)[i].last - (*seen)[i].sent) -
                   to_seconds(run.requests[i].latency()));
  }
  std::sort(late.begin(), late.end());
  EXPECT_GT(late.front(), -1e-3);
  EXPECT_LT(late[late.size() / 2], 20e-3);  // a busy machine wakes late; alone it is under 1 ms
}

TEST(HttpServer, AnAddressThatIsNoneIsNamed) {
  Endpoint* const nobody = nullptr;
  for (const char* address : {"nowhere:80", "127.0.0.1:99999", "127.0.0.1:port", "1.2.3:80"}) {
    const auto wrong = HttpServer::listen(address, Limits(), *nobody);
    ASSERT_FALSE(wrong.has_value());
    EXPECT_THAT(wrong.error().to_string(), HasSubstr("an address such as"));
  }
  EXPECT_EQ(parse_address("8000").value().host, "127.0.0.1");
  EXPECT_EQ(parse_address(":80").value().host, "127.0.0.1");
  EXPECT_EQ(parse_address("[::1]:80").value().host, "::1");
}

TEST(ResponseReader, ReadsChunksHoweverTheyArrive) {
  const std::string response =
      "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n6\r\n world\r\n0\r\n\r\n";
  for (std::size_t piece = 1; piece < response.size(); ++piece) {
    ResponseReader reader;
    std::string body;
    for (std::size_t at = 0; at < response.size(); at += piece) {
      body += reader.take(std::string_view(response).substr(at, piece));
    }
    EXPECT_EQ(body, "hello world") << piece;
    EXPECT_EQ(reader.status(), 200);
  }
}

}  // namespace
}  // namespace orrery::http
