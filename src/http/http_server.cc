// SPDX-License-Identifier: Apache-2.0
/// The one file that includes Boost.Beast, whose templates take long to compile.
#include <sys/resource.h>

#include <algorithm>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/string.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/string_body.hpp>
#include <chrono>
#include <csignal>
#include <optional>

#include "http/connection.h"
#include "http/transport.h"

namespace orrery::http {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
using asio::ip::tcp;
using boost::system::error_code;
using Parser = beast::http::request_parser<beast::http::string_body>;

std::string_view view(beast::string_view text) {
  return {text.data(), text.size()};
}

auto seconds_of(Time time) {
  return std::chrono::nanoseconds(time.value() / 1000);
}

/// Shared is what the connections of a server have in common.
struct Shared {
  Limits limits;
  Handler* handler = nullptr;
  std::uint64_t exchanges = 0;
  std::uint64_t connections = 0;
  std::int64_t open = 0;    ///< connections
  std::int64_t bodies = 0;  ///< bytes that are being read, at most
  asio::io_context io{1};   ///< goes first, and its connections with it
};

/// One connection: requests are read and answered one after another.
class Session : public Connection, public std::enable_shared_from_this<Session> {
 public:
  Session(Shared& shared, tcp::socket socket)
      : shared_(shared), stream_(std::move(socket)), connection_(++shared.connections) {
    error_code ignored;
    stream_.socket().set_option(tcp::no_delay(true), ignored);
    stream_.socket().non_blocking(true, ignored);
    ++shared_.open;
  }
  ~Session() override { --shared_.open; }
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  void read() {
    parser_.emplace();
    parser_->header_limit(static_cast<std::uint32_t>(shared_.limits.header.value()));
    parser_->body_limit(static_cast<std::uint64_t>(shared_.limits.body.value()));
    stream_.expires_after(seconds_of(shared_.limits.idle));
    beast::http::async_read_header(
        stream_, buffer_, *parser_,
        [self = shared_from_this()](error_code error, std::size_t) { self->on_header(error); });
  }

  bool answers(std::uint64_t exchange) const override {
    return answering_ && exchange == exchange_;
  }
  bool is_old() const override { return parser_->get().version() < 11; }
  bool keeps() const override { return keeps_; }
  void end_with_connection() override { keeps_ = false; }
  std::string_view fields() const override { return shared_.limits.fields; }
  void write(std::string_view text) override {
    waiting_ += text;
    const auto buffered = waiting_.size() + writing_.size() - written_;
    if (buffered > static_cast<std::size_t>(shared_.limits.buffered.value())) {
      waiting_.clear();
      close_soon();
    } else if (!busy_) {
      write_some();
    }
  }
  void end() override {
    answering_ = false;
    ended_ = true;
    if (!busy_) {
      on_all_written();
    }
  }

 private:
  void on_header(error_code error) {
    if (error == beast::http::error::header_limit) {
      return fail_with(431);
    }
    if (error == beast::http::error::body_limit) {
      return fail_with(413);  // it says so
    }
    if (error) {
      return is_wrong(error) ? fail_with(400) : close();
    }
    const auto length = parser_->content_length();
    const std::int64_t body =
        length               ? static_cast<std::int64_t>(std::min<std::uint64_t>(
                     *length, static_cast<std::uint64_t>(shared_.limits.body.value()) + 1))
        : parser_->chunked() ? shared_.limits.body.value()
                             : 0;
    if (body > shared_.limits.body.value()) {
      return fail_with(413);
    }
    if (body + shared_.bodies > shared_.limits.bodies.value()) {
      return fail_with(503);
    }
    reserve(body);
    if (beast::iequals(parser_->get()[beast::http::field::expect], "100-continue")) {
      write("HTTP/1.1 100 Continue\r\n\r\n");
    }
    beast::http::async_read(
        stream_, buffer_, *parser_,
        [self = shared_from_this()](error_code failed, std::size_t) { self->on_request(failed); });
  }

  void on_request(error_code error) {
    reserve(0);
    if (error == beast::http::error::body_limit) {
      return fail_with(413);
    }
    if (error) {
      return is_wrong(error) ? fail_with(400) : close();
    }
    exchange_ = ++shared_.exchanges;
    answering_ = true;
    keeps_ = parser_->keep_alive();
    watch();
    auto& message = parser_->get();
    HttpRequest request;
    request.exchange = exchange_;
    request.connection = connection_;
    request.method = view(message.method_string());
    const std::string_view target = view(message.target());
    request.path = target.substr(0, target.find('?'));
    request.query = target.substr(std::min(request.path.size() + 1, target.size()));
    for (const auto& field : message.base()) {
      std::string name(view(field.name_string()));
      std::transform(name.begin(), name.end(), name.begin(), [](char letter) {
        return letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter - 'A' + 'a') : letter;
      });
      request.headers.emplace_back(std::move(name), view(field.value()));
    }
    request.body = std::move(message.body());
    shared_.handler->asked(std::move(request), answer());
  }

  std::shared_ptr<Answer> answer();

  /// Sees a client leave while it waits for its answer.
  void watch() {
    stream_.socket().async_wait(tcp::socket::wait_read, [self = shared_from_this(),
                                                         exchange = exchange_](error_code error) {
      if (error || !self->answers(exchange)) {
        return;
      }
      char next = 0;
      error_code failed;
      const std::size_t read =
          self->stream_.socket().receive(asio::buffer(&next, 1), tcp::socket::message_peek, failed);
      if (failed == asio::error::would_block) {
        self->watch();
      } else if (failed || read == 0) {
        self->close();
      }  // else the next request has come early, and the client is there
    });
  }

  void write_some() {
    busy_ = true;
    if (written_ == writing_.size()) {
      writing_.clear();
      std::swap(writing_, waiting_);
      written_ = 0;
    }
    stream_.expires_after(seconds_of(shared_.limits.idle));
    stream_.async_write_some(
        asio::buffer(writing_.data() + written_, writing_.size() - written_),
        [self = shared_from_this()](error_code error, std::size_t bytes) {
          self->busy_ = false;
          self->written_ += bytes;
          if (error) {
            self->close();
          } else if (self->written_ < self->writing_.size() || !self->waiting_.empty()) {
            self->write_some();
          } else if (self->ended_) {
            self->on_all_written();
          }
        });
  }

  void on_all_written() {
    ended_ = false;
    if (closed_) {
      return;
    }
    if (keeps_) {
      read();
      return;
    }
    error_code ignored;
    stream_.socket().shutdown(tcp::socket::shutdown_send, ignored);
    close();
  }

  /// Says whether the parser found the error, not the network.
  static bool is_wrong(error_code error) {
    return error.category() ==
               beast::http::make_error_code(beast::http::error::bad_method).category() &&
           error != beast::http::error::end_of_stream &&
           error != beast::http::error::partial_message;
  }

  void fail_with(int status) {
    reserve(0);
    keeps_ = false;
    write(response_head(*this, {.status = status, .type = "text/plain", .length = 0}));
    end();
  }

  void reserve(std::int64_t body) {
    shared_.bodies += body - body_;
    body_ = body;
  }

  void close_soon() {
    asio::post(shared_.io, [self = shared_from_this()] { self->close(); });
  }

  void close() {
    if (std::exchange(closed_, true)) {
      return;
    }
    reserve(0);
    error_code ignored;
    stream_.socket().close(ignored);
    if (std::exchange(answering_, false)) {
      shared_.handler->left(exchange_);
    }
    shared_.handler->closed(connection_);
  }

  Shared& shared_;
  beast::tcp_stream stream_;
  beast::flat_buffer buffer_;
  std::optional<Parser> parser_;
  std::uint64_t connection_;
  std::uint64_t exchange_ = 0;
  std::int64_t body_ = 0;  ///< reserved of Shared::bodies
  std::string waiting_;    ///< to be written after `writing_`
  std::string writing_;
  std::size_t written_ = 0;  ///< of it
  bool busy_ = false;        ///< a write is under way
  bool answering_ = false;
  bool ended_ = false;  ///< the answer, of which some may not be written yet
  bool keeps_ = true;   ///< the connection after it
  bool closed_ = false;
};

std::shared_ptr<Answer> Session::answer() {
  return make_answer(shared_from_this(), exchange_);
}

class BeastServer : public HttpServer {
 public:
  BeastServer(const Limits& limits, Handler& handler)
      : acceptor_(shared_.io), timer_(shared_.io), signals_(shared_.io) {
    shared_.limits = limits;
    shared_.handler = &handler;
  }

  error_code open(const tcp::endpoint& endpoint) {
    error_code error;
    acceptor_.open(endpoint.protocol(), error);
    if (!error) {
      acceptor_.set_option(tcp::acceptor::reuse_address(true), error);
    }
    if (!error) {
      acceptor_.bind(endpoint, error);
    }
    if (!error) {
      acceptor_.listen(tcp::acceptor::max_listen_connections, error);
    }
    return error;
  }

  std::string address() const override {
    error_code ignored;
    const tcp::endpoint at = acceptor_.local_endpoint(ignored);
    const std::string host = at.address().to_string();
    return at.address().is_v6() ? "[" + host + "]:" + std::to_string(at.port())
                                : host + ":" + std::to_string(at.port());
  }

  void run() override {
    if (shared_.limits.signals) {
      signals_.add(SIGINT);
      signals_.add(SIGTERM);
      signals_.async_wait([this](error_code error, int) { return error ? void() : stop(); });
    }
    accept();
    if (!shared_.limits.go_on || shared_.limits.go_on()) {
      shared_.io.run();
    }
  }
  void stop() override { shared_.io.stop(); }
  void work(std::function<std::function<void()>()> job) override {
    if (!workers_) {
      workers_.emplace(kWorkers);
    }
    asio::post(*workers_, [this, job = std::move(job)] { asio::post(shared_.io, job()); });
  }

  Time now() const override {
    const auto passed = std::chrono::steady_clock::now() - begin_;
    return Time(std::chrono::duration_cast<std::chrono::nanoseconds>(passed).count() * 1000);
  }
  void wake_at(Time at) override {
    timer_.expires_at(begin_ + seconds_of(at) + std::chrono::nanoseconds(1));
    timer_.async_wait([this](error_code error) {
      if (!error) {
        shared_.handler->woken();
      }
    });
  }

 private:
  void accept() {
    acceptor_.async_accept([this](error_code error, tcp::socket socket) {
      if (error) {  // no descriptor is left: those that are open go on
        retry_.emplace(shared_.io, std::chrono::milliseconds(50));
        retry_->async_wait([this](error_code) { accept(); });
        return;
      }
      if (shared_.open < shared_.limits.connections) {
        std::make_shared<Session>(shared_, std::move(socket))->read();
      }
      accept();
    });
  }

  Shared shared_;
  tcp::acceptor acceptor_;
  asio::steady_timer timer_;
  asio::signal_set signals_;
  std::optional<asio::steady_timer> retry_;
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
  static constexpr std::size_t kWorkers = 4;
  std::optional<asio::thread_pool> workers_;  ///< goes first: jobs post to what stands above
};

void raise_open_files() {
  rlimit files{};
  if (getrlimit(RLIMIT_NOFILE, &files) == 0 && files.rlim_cur < files.rlim_max) {
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);  // else fewer clients at once
  }
}

}  // namespace

Result<std::unique_ptr<HttpServer>> HttpServer::listen(const std::string& address,
                                                       const Limits& limits, Handler& handler) {
  const auto place = parse_address(address);
  if (!place) {
    return fail(place.error());
  }
  error_code error;
  const auto ip = asio::ip::make_address(place->host, error);
  if (error) {
    return fail(Error(Mistake{"", "", address, kAddresses}));
  }
  raise_open_files();
  auto server = std::make_unique<BeastServer>(limits, handler);
  error = server->open(tcp::endpoint(ip, place->port));
  if (error) {
    return fail(Error(Mistake{"", "", address, "an address that is free: " + error.message()}));
  }
  return std::unique_ptr<HttpServer>(std::move(server));
}

}  // namespace orrery::http
