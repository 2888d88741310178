// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <iterator>
#include <string>
#include <utility>

namespace orrery::report {

/// Lines are a text for a terminal that a class writes line by line.
class Lines {
 protected:
  template <class... Values>
  void line(fmt::format_string<Values...> format, Values&&... values) {
    fmt::format_to(std::back_inserter(text_), format, std::forward<Values>(values)...);
    text_ += '\n';
  }

  std::string text_;
};

}  // namespace orrery::report
