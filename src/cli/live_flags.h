// SPDX-License-Identifier: Apache-2.0
/// The flags of `orrery serve` for clients that are real: an endpoint for them, or a client of one.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/command.h"
#include "serving/serve.h"

namespace orrery::cli {

class LiveFlags {
 public:
  void declare(Options& options);
  bool listens() const { return listen_.has_value(); }
  bool observes() const { return observe_.has_value(); }
  void check(bool searches, const serving::Engine& engine, Error& mistakes) const;
  /// Serves until it is told to stop; says on standard error where it listens.
  Result<serving::Run> listen(serving::Server& server, std::vector<std::string> models) const;
  /// Sends the requests to the endpoint of --observe and returns a CSV row for each.
  Result<std::string> observe(const std::vector<requests::Request>& requests,
                              const std::string& model) const;

 private:
  std::optional<std::string> listen_;
  std::optional<std::string> speed_;
  std::optional<std::string> clients_;
  std::optional<std::string> served_name_;
  std::optional<std::string> observe_;
};

}  // namespace orrery::cli
