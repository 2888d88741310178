// SPDX-License-Identifier: Apache-2.0
#include "http/connection.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/reader.h"

namespace orrery::http {
namespace {

std::string_view reason_of(int status) {
  constexpr std::array<std::pair<int, std::string_view>, 14> kReasons{
      {{200, "OK"},
       {400, "Bad Request"},
       {401, "Unauthorized"},
       {403, "Forbidden"},
       {404, "Not Found"},
       {405, "Method Not Allowed"},
       {413, "Payload Too Large"},
       {415, "Unsupported Media Type"},
       {422, "Unprocessable Entity"},
       {429, "Too Many Requests"},
       {431, "Request Header Fields Too Large"},
       {500, "Internal Server Error"},
       {501, "Not Implemented"},
       {503, "Service Unavailable"}}};
  const auto* const row =
      std::ranges::find(kReasons, status, &std::pair<int, std::string_view>::first);
  return row == kReasons.end() ? "Error" : row->second;
}

class ConnectionAnswer : public Answer {
 public:
  ConnectionAnswer(const std::shared_ptr<Connection>& connection, std::uint64_t exchange)
      : connection_(connection), exchange_(exchange) {}

  void send(int status, std::string_view type, std::string body, std::string_view fields) override {
    if (const auto connection = open()) {
      connection->write(
          response_head(*connection,
                        {.status = status, .type = type, .length = body.size(), .fields = fields}) +
          body);
      connection->end();
    }
  }
  void begin(std::string_view type) override {
    if (const auto connection = open()) {
      chunks_ = !connection->is_old();
      if (!chunks_) {
        connection->end_with_connection();
      }
      connection->write(response_head(*connection, {.type = type, .chunked = chunks_}));
    }
  }
  void piece(std::string_view text) override {
    if (const auto connection = open(); connection && !text.empty()) {
      connection->write(chunks_ ? fmt::format("{:x}\r\n{}\r\n", text.size(), text)
                                : std::string(text));
    }
  }
  void end() override {
    if (const auto connection = open()) {
      if (chunks_) {
        connection->write("0\r\n\r\n");
      }
      connection->end();
    }
  }

 private:
  std::shared_ptr<Connection> open() const {
    auto connection = connection_.lock();
    return connection && connection->answers(exchange_) ? connection : nullptr;
  }

  std::weak_ptr<Connection> connection_;
  std::uint64_t exchange_;
  bool chunks_ = true;
};

}  // namespace

std::shared_ptr<Answer> make_answer(const std::shared_ptr<Connection>& connection,
                                    std::uint64_t exchange) {
  return std::make_shared<ConnectionAnswer>(connection, exchange);
}

std::string response_head(const Connection& connection, const ResponseHead& head) {
  const std::string size = head.length ? fmt::format("Content-Length: {}\r\n", *head.length)
                           : head.chunked
                               ? "Cache-Control: no-cache\r\nTransfer-Encoding: chunked\r\n"
                               : "Cache-Control: no-cache\r\n";
  return fmt::format("HTTP/1.1 {} {}\r\nContent-Type: {}\r\n{}{}{}Connection: {}\r\n\r\n",
                     head.status, reason_of(head.status), head.type, size, connection.fields(),
                     head.fields, connection.keeps() ? "keep-alive" : "close");
}

std::string_view HttpRequest::header(std::string_view name) const {
  const auto found = std::ranges::find(headers, name, &std::pair<std::string, std::string>::first);
  return found == headers.end() ? std::string_view() : std::string_view(found->second);
}

std::int64_t HttpRequest::count(std::string_view name) const {
  return std::ranges::count(headers, name, &std::pair<std::string, std::string>::first);
}

Result<Place> parse_address(const std::string& address) {
  const std::size_t colon = address.rfind(':');
  const bool alone = colon == std::string::npos;
  std::string host = alone ? "" : address.substr(0, colon);
  if (host.size() > 2 && host.front() == '[' && host.back() == ']') {
    host = host.substr(1, host.size() - 2);
  }
  const auto port = parse_integer(alone ? address : address.substr(colon + 1));
  if (!port || *port < 0 || *port > 65535) {
    return fail(Error(Mistake{"", "", address, kAddresses}));
  }
  return Place{.host = host.empty() || host == "localhost" ? "127.0.0.1" : host,
               .port = static_cast<std::uint16_t>(*port)};
}

}  // namespace orrery::http
