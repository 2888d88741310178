// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "base/result.h"
#include "cli/command.h"

namespace orrery::cli {

/// --html: the report as one page (src/web/page.h), beside what is printed.
class HtmlFlag {
 public:
  /// Makes the flag. `command`: whose figures the page draws.
  explicit HtmlFlag(std::string command) : command_(std::move(command)) {}

  void declare(Options& options);
  bool given() const { return file_.has_value(); }

  using Make = std::function<std::string()>;
  /// Returns `text` once the page is written, if it is asked for: `json` makes what --json prints,
  /// `extra` what only figures need.
  Result<std::string> beside(std::string text, const Make& json, const Make& extra = {}) const;

 private:
  std::string command_;
  std::optional<std::string> file_;
};

}  // namespace orrery::cli
