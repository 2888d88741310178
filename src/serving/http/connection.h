// SPDX-License-Identifier: Apache-2.0
/// A connection is what an answer is written to, as HTTP/1.1. Internal to this folder.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "serving/http/transport.h"

namespace orrery::http {

class Connection {
 public:
  virtual ~Connection() = default;
  /// Whether its client still waits for the answer of this exchange.
  virtual bool answers(std::uint64_t exchange) const = 0;
  /// HTTP/1.0, which knows no chunks.
  virtual bool is_old() const = 0;
  /// Whether it goes on after the answer.
  virtual bool keeps() const = 0;
  virtual void end_with_connection() = 0;
  virtual void write(std::string_view text) = 0;
  virtual void end() = 0;
};

std::shared_ptr<Answer> make_answer(const std::shared_ptr<Connection>& connection,
                                    std::uint64_t exchange);

/// Returns the status line and the fields of a whole answer of `length` bytes; without one, of a
/// stream, in chunks or up to the end of the connection.
std::string response_head(int status, std::string_view type, std::optional<std::size_t> length,
                          bool keeps, bool chunked = false);

struct Place {
  std::string host;  ///< an IP address
  std::uint16_t port = 0;
};
inline constexpr const char* kAddresses = "an address such as 127.0.0.1:8000 or [::1]:8000";
/// "127.0.0.1:8000", "[::1]:8000", "localhost:8000", ":8000" and "8000"; without a host 127.0.0.1.
Result<Place> parse_address(const std::string& address);

}  // namespace orrery::http
