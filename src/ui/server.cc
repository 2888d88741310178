// SPDX-License-Identifier: Apache-2.0
#include "ui/server.h"

#include <httplib.h>
#include <sys/random.h>

#include <algorithm>
#include <array>
#include <exception>
#include <utility>

#include "ui/page_text.h"

namespace orrery::ui {
namespace {

constexpr const char* kLoopback = "127.0.0.1";
constexpr const char* kJson = "application/json";
constexpr int kSeconds = 10;  // that a client may take to send or read
constexpr std::size_t kMostUrl = 2048;

enum Status { kOk = 200, kUnauthorized = 401, kForbidden = 403, kNotFound = 404 };
constexpr int kTooLarge = 413;
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

/// The value of a cookie; "" where there is none.
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

/// A text as a JSON string. Control characters and bytes beyond ASCII that are no UTF-8 do not come
/// from Error::to_string().
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

void set_safe_headers(httplib::Response& response) {
  response.set_header(
      "Content-Security-Policy",
      "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
      "img-src 'self' data:; base-uri 'none'; form-action 'none'; "
      "frame-ancestors 'none'");
  response.set_header("X-Content-Type-Options", "nosniff");
  response.set_header("X-Frame-Options", "DENY");
  response.set_header("Referrer-Policy", "no-referrer");
  response.set_header("Cross-Origin-Resource-Policy", "same-origin");
  response.set_header("Cross-Origin-Opener-Policy", "same-origin");
  response.set_header("Cache-Control", "no-store");
}

void refuse(httplib::Response& response, int status, std::string_view why) {
  response.status = status;
  response.set_content("{\"error\": " + quoted(why) + "}", kJson);
}

}  // namespace

class Server::Http {
 public:
  Http(int port, std::string token, std::vector<Question> questions)
      : port_(port), token_(std::move(token)), questions_(std::move(questions)) {
    server_.set_payload_max_length(kMostBody);
    server_.set_read_timeout(kSeconds);
    server_.set_write_timeout(kSeconds);
    server_.set_pre_routing_handler(
        [this](const httplib::Request& request, httplib::Response& response) {
          set_safe_headers(response);
          return admits(request, response) ? httplib::Server::HandlerResponse::Unhandled
                                           : httplib::Server::HandlerResponse::Handled;
        });
    server_.set_exception_handler(
        [](const httplib::Request&, httplib::Response& response, const std::exception_ptr&) {
          refuse(response, kBroken, "internal error");
        });
    for (const Page& page : pages()) {
      server_.Get(std::string(page.path), [this, page](const httplib::Request& request,
                                                       httplib::Response& response) {
        if (request.has_param("token")) {
          response.set_header("Set-Cookie",
                              cookie_name() + "=" + token_ + "; HttpOnly; SameSite=Strict; Path=/");
        }
        response.set_content(page.text.data(), page.text.size(), std::string(page.type));
      });
    }
    for (const Question& question : questions_) {
      server_.Post(question.path,
                   [&question](const httplib::Request& request, httplib::Response& response) {
                     answer(question, request, response);
                   });
    }
  }

  Result<int> bind() {
    const int bound = port_ == 0                               ? server_.bind_to_any_port(kLoopback)
                      : server_.bind_to_port(kLoopback, port_) ? port_
                                                               : -1;
    if (bound <= 0) {
      return fail(Error(Mistake{"--port", {}, std::to_string(port_), "a port that is free"}));
    }
    port_ = bound;
    return bound;
  }

  void run() { server_.listen_after_bind(); }
  void stop() { server_.stop(); }

 private:
  std::string cookie_name() const { return "orrery_" + std::to_string(port_); }

  bool is_own(std::string_view host) const {
    const std::string port = ":" + std::to_string(port_);
    return host == kLoopback + port || host == "localhost" + port;
  }

  bool has_token(const httplib::Request& request) const {
    const std::string bearer = request.get_header_value("Authorization");
    const std::string cookies = request.get_header_value("Cookie");
    const std::string asked = request.get_param_value("token");
    constexpr std::string_view kBearer = "Bearer ";
    return equal_in_constant_time(cookie_of(cookies, cookie_name()), token_) ||
           equal_in_constant_time(asked, token_) ||
           (bearer.starts_with(kBearer) &&
            equal_in_constant_time(std::string_view(bearer).substr(kBearer.size()), token_));
  }

  /// Whether the request is looked at; else `response` says why not.
  bool admits(const httplib::Request& request, httplib::Response& response) const {
    const std::string origin = request.get_header_value("Origin");
    constexpr std::string_view kScheme = "http://";
    if (request.get_header_value_count("Host") != 1 || !is_own(request.get_header_value("Host"))) {
      refuse(response, kForbidden, "Host: expected 127.0.0.1 or localhost with the port");
    } else if (request.get_header_value_count("Origin") > 1 ||
               (!origin.empty() && (!origin.starts_with(kScheme) ||
                                    !is_own(std::string_view(origin).substr(kScheme.size()))))) {
      refuse(response, kForbidden, "Origin: expected this page's own");
    } else if (!has_token(request)) {
      refuse(response, kUnauthorized, "the token that orrery ui has printed is missing");
    } else if (request.target.size() > kMostUrl || !is_known(request)) {
      refuse(response, kNotFound, "there is nothing here");
    } else if (request.method == "POST" &&
               !request.get_header_value("Content-Type").starts_with(kJson)) {
      refuse(response, kOtherType, "Content-Type: expected application/json");
    } else {
      return true;
    }
    return false;
  }

  bool is_known(const httplib::Request& request) const {
    if (request.method == "GET") {
      return std::ranges::any_of(pages(),
                                 [&](const Page& page) { return page.path == request.path; });
    }
    return request.method == "POST" &&
           std::ranges::any_of(
               questions_, [&](const Question& question) { return question.path == request.path; });
  }

  static void answer(const Question& question, const httplib::Request& request,
                     httplib::Response& response) {
    if (request.body.size() > kMostBody) {
      refuse(response, kTooLarge, "the body is too large");
      return;
    }
    const Result<std::string> text = question.answer(request.body);
    if (text) {
      response.set_content(*text, kJson);
    } else {
      refuse(response, kMistaken, text.error().to_string());
    }
  }

  int port_;
  std::string token_;
  std::vector<Question> questions_;
  httplib::Server server_;
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
