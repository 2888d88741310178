// SPDX-License-Identifier: Apache-2.0
/// A server of the Model Context Protocol over lines of text: an agent asks what tools there are,
/// and calls them. What the tools do is the caller's.
///
///   2025-06-18   initialize, ping, tools/list, tools/call; the revision is agreed on once
///   2026-07-28   server/discover, tools/list, tools/call; each request names its revision in _meta
///
/// A request without a revision of its own is one of 2025-06-18, whether or not initialize came
/// before: the server keeps nothing between requests. An `initialize` that asks for 2026-07-28 has
/// it. Calls are answered one after the other; notifications, of cancellation too, are read over.
///
/// Errors:  -32700 what is no JSON, or a line of over kMostLine bytes; -32600 what is no request;
///          -32601 unknown methods; -32602 parameters that are missing or of another type, unknown
///          tools; -32603 a tool that broke; -32022 a revision that is not spoken. What tools find
///          wrong with its arguments is a result with isError, which an agent reads.
/// Source:  https://modelcontextprotocol.io/specification, the pages of these two revisions.
#pragma once

#include <cstddef>
#include <functional>
#include <iosfwd>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace orrery::mcp {

inline constexpr std::size_t kMostLine = std::size_t{1} << 20;

/// One argument of a tool. The kind gives its JSON type:
///   "INT" integer, "NUMBER" number, "BOOL" boolean, "{a,b}" one of these; else text or number
struct ToolArgument {
  std::string name{};
  std::string kind{};
  std::string sentence{};
  bool required = false;
  bool repeated = false;  ///< an array of such
};

struct GivenArgument {
  std::string name;
  std::string text;  ///< numbers as they were written, booleans "true" and "false"
};

struct Tool {
  std::string name{};
  std::string sentence{};
  std::vector<ToolArgument> arguments{};
  /// Returns a JSON object as text. Names and values are not checked before.
  std::function<Result<std::string>(const std::vector<GivenArgument>& given)> call{};
};

class Server {
 public:
  Server(std::string version, std::vector<Tool> tools)
      : version_(std::move(version)), tools_(std::move(tools)) {}

  /// Returns the answer to one line, without a newline; nothing to a notification.
  std::optional<std::string> answer(std::string_view line) const;

  /// Answers lines until `in` ends. Empty lines are passed over.
  void serve(std::istream& in, std::ostream& out) const;

 private:
  std::string version_;
  std::vector<Tool> tools_;
};

}  // namespace orrery::mcp
