// SPDX-License-Identifier: Apache-2.0
#include "ui/server.h"

#include <fmt/format.h>
#include <sys/random.h>

#include <algorithm>
#include <array>
#include <exception>
#include <optional>
#include <utility>

#include "http/connection.h"
#include "http/transport.h"
#include "ui/page_text.h"

namespace orrery::ui {
namespace {

constexpr const char* kLoopback = "127.0.0.1";
constexpr const char* kJson = "application/json";
constexpr Time kPatience = 10_s;  // that a client may take to send or read
constexpr std::size_t kMostUrl = 2048;

enum Status { kOk = 200, kUnauthorized = 401, kForbidden = 403, kNotFound = 404 };
constexpr int kOtherType = 415;
constexpr int kMistaken = 422;
constexpr int kBroken = 500;

/// Takes as long for every text of one length.
bool equal_in_constant_time(std::string_view left, std::string_view right) {
  unsigned different = left.size() == right.size() ? 0 : 1;
  for (std::size_t i = 0; i < left.size() && i < right.size(); ++i) {
    different |= static_cast<unsigned char>(left[i]) ^ static_cast<unsigned char>(right[i]);
  }
  return different == 0;
}

/// Returns the value of a cookie; "" where there is none.
std::string_view cookie_of(std::string_view header, std::string_view name) {
  while (!header.empty()) {
    const std::size_t end = std::min(header.find(';'), header.size());
    std::string_view pair = header.substr(0, end);
    header.remove_prefix(std::min(end + 1, header.size()));
    while (pair.starts_with(' ')) {
      pair.remove_prefix(1);
    }
    if (pair.starts_with(name) && pair.substr(name.size()).starts_with('=')) {
      return pair.substr(name.size() + 1);
    }
  }
  return {};
}

/// Returns a text as a JSON string. Control characters and bytes beyond ASCII that are no UTF-8 do
/// not come from Error::to_string().
std::string quoted(std::string_view text) {
  std::string json = "\"";
  for (const char letter : text) {
    if (letter == '"' || letter == '\\') {
      json += '\\';
      json += letter;
    } else if (letter == '\n') {
      json += "\\n";
    } else if (static_cast<unsigned char>(letter) < ' ') {
      json += ' ';
    } else {
      json += letter;
    }
  }
  return json + "\"";
}

/// Lines of the header of every answer.
constexpr const char* kSafeFields =
    "Content-Security-Policy: default-src 'none'; script-src 'self'; style-src 'self'; "
    "connect-src 'self'; img-src 'self' data:; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'\r\n"
    "X-Content-Type-Options: nosniff\r\n"
    "X-Frame-Options: DENY\r\n"
    "Referrer-Policy: no-referrer\r\n"
    "Cross-Origin-Resource-Policy: same-origin\r\n"
    "Cross-Origin-Opener-Policy: same-origin\r\n"
    "Cache-Control: no-store\r\n";

/// Returns the value of ?token=; nothing where there is none.
std::optional<std::string_view> token_of(std::string_view query) {
  constexpr std::string_view kName = "token=";
  while (!query.empty()) {
    const std::string_view one = query.substr(0, query.find('&'));
    if (one.starts_with(kName)) {
      return one.substr(kName.size());
    }
    query.remove_prefix(std::min(one.size() + 1, query.size()));
  }
  return std::nullopt;
}

struct Reply {
  int status = kOk;
  std::string body;
};

Reply refusal(int status, std::string_view why) {
  return {status, "{\"error\": " + quoted(why) + "}"};
}

Reply answer(const Question& question, const std::string& body) {
  try {
    const Result<std::string> text = question.answer(body);
    return text ? Reply{kOk, *text} : refusal(kMistaken, text.error().to_string());
  } catch (const std::exception&) {
    return refusal(kBroken, "internal error");
  }
}

}  // namespace

class Server::Http : private http::Handler {
 public:
  Http(int port, std::string token, std::vector<Question> questions)
      : port_(port), token_(std::move(token)), questions_(std::move(questions)) {}

  Result<int> bind() {
    const http::Limits limits{
        .body = Bytes(kMostBody), .idle = kPatience, .signals = false, .fields = kSafeFields};
    auto server = http::HttpServer::listen(fmt::format("{}:{}", kLoopback, port_), limits, *this);
    if (!server) {
      return fail(Error(Mistake{"--port", {}, std::to_string(port_), "a port that is free"}));
    }
    server_ = std::move(*server);
    port_ = http::parse_address(server_->address()).value().port;
    return port_;
  }

  void run() { server_->run(); }
  void stop() { server_->stop(); }

 private:
  void asked(http::HttpRequest request, std::shared_ptr<http::Answer> way) override {
    if (const std::optional<Reply> reply = refused(request)) {
      way->send(reply->status, kJson, reply->body);
      return;
    }
    if (request.method == "GET") {
      const Page& page = *std::ranges::find(pages(), request.path, &Page::path);
      way->send(kOk, page.type, std::string(page.text),
                token_of(request.query)
                    ? fmt::format("Set-Cookie: {}={}; HttpOnly; SameSite=Strict; Path=/\r\n",
                                  cookie_name(), token_)
                    : std::string());
      return;
    }
    server_->work([this, way = std::move(way), request = std::move(request)] {
      const auto question = std::ranges::find(questions_, request.path, &Question::path);
      const Reply reply = answer(*question, request.body);
      return [way, status = reply.status, body = reply.body] { way->send(status, kJson, body); };
    });
  }
  void left(std::uint64_t) override {}
  void closed(std::uint64_t) override {}
  void woken() override {}

  std::string cookie_name() const { return "orrery_" + std::to_string(port_); }

  bool is_own(std::string_view host) const {
    const std::string port = ":" + std::to_string(port_);
    return host == kLoopback + port || host == "localhost" + port;
  }

  bool has_token(const http::HttpRequest& request) const {
    const std::string_view bearer = request.header("authorization");
    constexpr std::string_view kBearer = "Bearer ";
    return equal_in_constant_time(cookie_of(request.header("cookie"), cookie_name()), token_) ||
           equal_in_constant_time(token_of(request.query).value_or(""), token_) ||
           (bearer.starts_with(kBearer) &&
            equal_in_constant_time(bearer.substr(kBearer.size()), token_));
  }

  /// Returns why the request is not looked at; nothing where it is.
  std::optional<Reply> refused(const http::HttpRequest& request) const {
    const std::string_view origin = request.header("origin");
    constexpr std::string_view kScheme = "http://";
    if (request.count("host") != 1 || !is_own(request.header("host"))) {
      return refusal(kForbidden, "Host: expected 127.0.0.1 or localhost with the port");
    }
    if (request.count("origin") > 1 ||
        (!origin.empty() &&
         (!origin.starts_with(kScheme) || !is_own(origin.substr(kScheme.size()))))) {
      return refusal(kForbidden, "Origin: expected this page's own");
    }
    if (!has_token(request)) {
      return refusal(kUnauthorized, "the token that orrery ui has printed is missing");
    }
    if (request.path.size() + request.query.size() > kMostUrl || !is_known(request)) {
      return refusal(kNotFound, "there is nothing here");
    }
    if (request.method == "POST" && !request.header("content-type").starts_with(kJson)) {
      return refusal(kOtherType, "Content-Type: expected application/json");
    }
    return std::nullopt;
  }

  bool is_known(const http::HttpRequest& request) const {
    const auto at = [&](const auto& row) { return row.path == request.path; };
    return request.method == "GET"
               ? std::ranges::any_of(pages(), at)
               : request.method == "POST" && std::ranges::any_of(questions_, at);
  }

  int port_;
  std::string token_;
  std::vector<Question> questions_;
  std::unique_ptr<http::HttpServer> server_;
};

const std::vector<Page>& pages() {
  static const std::vector<Page> all{
      {"/", "text/html; charset=utf-8", kPageHtml},
      {"/page.js", "text/javascript; charset=utf-8", kPageScript},
      {"/page.css", "text/css; charset=utf-8", kPageStyle},
  };
  return all;
}

Server::Server(int port, std::string token, std::vector<Question> questions)
    : http_(std::make_unique<Http>(port, std::move(token), std::move(questions))) {}
Server::~Server() = default;

Result<int> Server::bind() {
  return http_->bind();
}
void Server::run() {
  http_->run();
}
void Server::stop() {
  http_->stop();
}

Result<std::string> random_token() {
  std::array<unsigned char, 16> bytes{};
  if (getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size())) {
    return fail("the system has no random bytes; give --token");
  }
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string token;
  for (const unsigned char byte : bytes) {
    token += kDigits[byte >> 4U];
    token += kDigits[byte & 15U];
  }
  return token;
}

}  // namespace orrery::ui
