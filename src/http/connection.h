// SPDX-License-Identifier: Apache-2.0
/// A connection is what an answer is written to, as HTTP/1.1. Internal to this folder.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "http/transport.h"

namespace orrery::http {

class Connection {
 public:
  virtual ~Connection() = default;
  /// Returns whether its client still waits for the answer of this exchange.
  virtual bool answers(std::uint64_t exchange) const = 0;
  /// Returns whether the client speaks HTTP/1.0, which knows no chunks.
  virtual bool is_old() const = 0;
  /// Returns whether it goes on after the answer.
  virtual bool keeps() const = 0;
  virtual void end_with_connection() = 0;
  /// Returns the lines of the header of every answer.
  virtual std::string_view fields() const = 0;
  virtual void write(std::string_view text) = 0;
  virtual void end() = 0;
};

std::shared_ptr<Answer> make_answer(const std::shared_ptr<Connection>& connection,
                                    std::uint64_t exchange);

/// A ResponseHead is what an answer says before its body.
struct ResponseHead {
  int status = 200;
  std::string_view type;
  std::optional<std::size_t> length = {};  ///< none: a stream
  bool chunked = false;                    ///< else a stream ends with the connection
  std::string_view fields = {};            ///< further lines, beside the connection's
};
/// Returns the status line and the fields of an answer.
std::string response_head(const Connection& connection, const ResponseHead& head);

struct Place {
  std::string host;  ///< an IP address
  std::uint16_t port = 0;
};
inline constexpr const char* kAddresses = "an address such as 127.0.0.1:8000 or [::1]:8000";
/// Reads "127.0.0.1:8000", "[::1]:8000", "localhost:8000", ":8000" and "8000"; without a host
/// 127.0.0.1.
Result<Place> parse_address(const std::string& address);

}  // namespace orrery::http
