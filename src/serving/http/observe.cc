// SPDX-License-Identifier: Apache-2.0
#include "serving/http/observe.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>

#include "base/csv.h"
#include "http/connection.h"
#include "serving/scheduler/request.h"

namespace orrery::http {
namespace {

using Clock = std::chrono::steady_clock;

/// The same ids for content that requests share (Request::ids), below what every vocabulary has.
std::string prompt_of(const requests::Request& request, std::size_t number) {
  constexpr std::uint64_t kFirst = 1000;
  constexpr std::uint64_t kIds = 30'000;
  std::string text;
  for (std::int64_t i = 0; i < request.input; ++i) {
    const bool shared = i < request.shared;
    const auto block = static_cast<std::size_t>(i / request.id_tokens);
    const std::uint64_t seed = shared ? request.ids[block] : 0x5eedULL + number * 0x9e3779b9ULL;
    const std::uint64_t id =
        kFirst + scheduler::mixed(seed ^ scheduler::mixed(static_cast<std::uint64_t>(i))) % kIds;
    text += (i == 0 ? "" : ",") + std::to_string(id);
  }
  return text;
}

/// The number after the last "name": of a text.
std::int64_t number_in(const std::string& text, std::string_view name) {
  const std::size_t at = text.rfind(name);
  return at == std::string::npos ? -1 : std::strtoll(text.c_str() + at + name.size(), nullptr, 10);
}

/// One request on its way.
struct Stream {
  int socket = -1;
  std::string out;
  ResponseReader reader;
  std::string line;  ///< of events, not yet whole
  std::int64_t pieces = 0;
};

class Client {
 public:
  Client(const sockaddr_in& address, std::string host, std::string model,
         const std::vector<requests::Request>& requests)
      : address_(address),
        host_(std::move(host)),
        model_(std::move(model)),
        requests_(requests),
        streams_(requests.size()),
        seen_(requests.size()) {}

  std::vector<Observed> run() {
    std::vector<std::size_t> order(requests_.size());
    for (std::size_t i = 0; i < order.size(); ++i) {
      order[i] = i;
    }
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
      return requests_[a].arrival < requests_[b].arrival;
    });
    std::size_t next = 0;
    while (next < order.size() || !open_.empty()) {
      while (next < order.size() && requests_[order[next]].arrival <= now()) {
        begin(order[next++]);
      }
      const Time wait = next < order.size() ? requests_[order[next]].arrival - now() : Time(100_ms);
      look(std::clamp(wait, Time(0), Time(100_ms)));
    }
    return std::move(seen_);
  }

 private:
  Time now() const {
    return Time(
        std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - begin_).count() * 1000);
  }

  void begin(std::size_t number) {
    const requests::Request& request = requests_[number];
    seen_[number].input = request.input;
    Stream& stream = streams_[number];
    const std::string body = fmt::format(
        R"({{"model":"{}","prompt":[{}],"max_tokens":{},"ignore_eos":true,"temperature":0,)"
        R"("stream":true,"stream_options":{{"include_usage":true}}}})",
        model_, prompt_of(request, number), request.output);
    stream.out = fmt::format(
        "POST /v1/completions HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\n"
        "Content-Length: {}\r\nConnection: close\r\n\r\n{}",
        host_, body.size(), body);
    stream.socket = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    seen_[number].sent = now();
    if (stream.socket < 0) {
      return;
    }
    const int yes = 1;
    setsockopt(stream.socket, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    if (connect(stream.socket, reinterpret_cast<const sockaddr*>(&address_), sizeof address_) !=
            0 &&
        errno != EINPROGRESS) {
      close(stream.socket);
      return;
    }
    open_.push_back(number);
  }

  /// Reads and writes what can be, after waiting for it up to `wait`.
  void look(Time wait) {
    std::vector<pollfd> polled;
    polled.reserve(open_.size());
    for (const std::size_t number : open_) {
      const Stream& stream = streams_[number];
      const auto events = static_cast<short>(stream.out.empty() ? POLLIN : POLLIN | POLLOUT);
      polled.push_back({.fd = stream.socket, .events = events, .revents = 0});
    }
    const timespec limit{.tv_sec = 0, .tv_nsec = wait.value() / 1000 % 1'000'000'000};
    if (ppoll(polled.data(), polled.size(), &limit, nullptr) <= 0) {
      return;
    }
    std::vector<std::size_t> left;
    for (std::size_t i = 0; i < polled.size(); ++i) {
      const std::size_t number = open_[i];
      const bool goes_on = polled[i].revents == 0 || go_on(number, polled[i].revents);
      if (goes_on) {
        left.push_back(number);
      } else {
        close(streams_[number].socket);
        end(number);
      }
    }
    open_ = std::move(left);
  }

  bool go_on(std::size_t number, short events) {
    Stream& stream = streams_[number];
    if ((events & POLLOUT) != 0 && !stream.out.empty()) {
      const ssize_t sent = send(stream.socket, stream.out.data(), stream.out.size(), MSG_NOSIGNAL);
      if (sent < 0 && errno != EAGAIN) {
        return false;
      }
      stream.out.erase(0, static_cast<std::size_t>(std::max<ssize_t>(0, sent)));
    }
    if ((events & (POLLIN | POLLHUP | POLLERR)) == 0) {
      return true;
    }
    char bytes[65536];
    const ssize_t read = recv(stream.socket, bytes, sizeof bytes, 0);
    if (read < 0) {
      return errno == EAGAIN;
    }
    take(number, stream.reader.take({bytes, static_cast<std::size_t>(read)}));
    return read > 0;
  }

  void take(std::size_t number, const std::string& body) {
    Stream& stream = streams_[number];
    Observed& seen = seen_[number];
    const Time at = now();
    stream.line += body;
    for (std::size_t end = stream.line.find('\n'); end != std::string::npos;
         end = stream.line.find('\n')) {
      const std::string line = stream.line.substr(0, end);
      stream.line.erase(0, end + 1);
      const bool text = line.find("\"text\":\"") != std::string::npos &&
                        line.find("\"text\":\"\"") == std::string::npos;
      if (text) {
        seen.first = stream.pieces++ == 0 ? at : seen.first;
        seen.last = at;
      }
      if (const std::int64_t tokens = number_in(line, "\"completion_tokens\":"); tokens > 0) {
        seen.output = tokens;
      }
    }
  }

  void end(std::size_t number) {
    Observed& seen = seen_[number];
    seen.status = streams_[number].reader.status();
    seen.output = seen.output > 0 ? seen.output : streams_[number].pieces;
    streams_[number] = {};
  }

  sockaddr_in address_;
  std::string host_;
  std::string model_;
  const std::vector<requests::Request>& requests_;
  std::vector<Stream> streams_;
  std::vector<Observed> seen_;
  std::vector<std::size_t> open_;
  Clock::time_point begin_ = Clock::now();
};

}  // namespace

std::string ResponseReader::take(std::string_view bytes) {
  std::string body;
  if (in_head_) {
    head_ += bytes;
    const std::size_t end = head_.find("\r\n\r\n");
    if (end == std::string::npos) {
      return body;
    }
    in_head_ = false;
    const std::string rest = head_.substr(end + 4);
    head_.resize(end);
    std::ranges::transform(head_, head_.begin(), [](char letter) {
      return letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter - 'A' + 'a') : letter;
    });
    status_ = static_cast<int>(
        std::strtol(head_.c_str() + std::min<std::size_t>(9, head_.size()), nullptr, 10));
    chunked_ = head_.find("transfer-encoding: chunked") != std::string::npos;
    return take(rest);
  }
  if (!chunked_) {
    return std::string(bytes);
  }
  for (std::size_t at = 0; at < bytes.size();) {
    if (chunk_ > 0) {
      const std::size_t part = std::min(chunk_, bytes.size() - at);
      body += bytes.substr(at, part);
      at += part;
      chunk_ -= part;
      continue;
    }
    const char letter = bytes[at++];
    if (letter != '\n') {
      line_ += letter;
    } else if (line_.find_first_not_of("\r ") != std::string::npos) {
      chunk_ = static_cast<std::size_t>(std::strtoull(line_.c_str(), nullptr, 16));
      line_.clear();
    } else {
      line_.clear();  // the end of a chunk
    }
  }
  return body;
}

Result<std::vector<Observed>> observe(const std::string& url, const std::string& model,
                                      const std::vector<requests::Request>& requests) {
  const auto wrong = [&] {
    return fail(Error(Mistake{"--observe", "", url, "an address such as http://127.0.0.1:8000"}));
  };
  constexpr std::string_view kScheme = "http://";
  if (!url.starts_with(kScheme)) {
    return wrong();
  }
  const std::string host =
      url.substr(kScheme.size(), url.find('/', kScheme.size()) - kScheme.size());
  const auto place = parse_address(host);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  if (!place || inet_pton(AF_INET, place->host.c_str(), &address.sin_addr) != 1) {
    return wrong();
  }
  address.sin_port = htons(place->port);
  std::vector<Observed> seen = Client(address, host, model, requests).run();
  const bool any = std::ranges::any_of(seen, [](const Observed& one) { return one.status != 0; });
  if (!any && !seen.empty()) {
    return fail(Error(Mistake{"--observe", "", url, "an endpoint that answers: none does"}));
  }
  return seen;
}

std::string observed_csv(const std::vector<Observed>& seen) {
  std::string text = csv_line({"request", "input_tokens", "output_tokens", "sent_s", "ttft_s",
                               "tpot_s", "e2e_s", "status"});
  for (std::size_t i = 0; i < seen.size(); ++i) {
    const Observed& one = seen[i];
    const bool answered = one.status == 200 && one.first > Time(0);
    const double tpot = answered && one.output > 1
                            ? to_seconds(one.last - one.first) / static_cast<double>(one.output - 1)
                            : 0;
    text += fmt::format("{},{},{},{:.6f},{:.6f},{:.9f},{:.6f},{}\n", i, one.input, one.output,
                        to_seconds(one.sent), answered ? to_seconds(one.first - one.sent) : 0, tpot,
                        answered ? to_seconds(one.last - one.sent) : 0, one.status);
  }
  return text;
}

}  // namespace orrery::http
