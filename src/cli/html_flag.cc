// SPDX-License-Identifier: Apache-2.0
#include "cli/html_flag.h"

#include "web/page.h"

namespace orrery::cli {

void HtmlFlag::declare(Options& options) {
  options.output("--html", file_, "FILE",
                 "also write the report as one HTML page with figures, which needs no network");
}

Result<std::string> HtmlFlag::beside(std::string text, const Make& json, const Make& extra) const {
  if (!file_) {
    return text;
  }
  const std::string result = json();
  const std::string more = extra ? extra() : std::string();
  return web::write_page(*file_, {command_, ORRERY_VERSION, result, more}).map([&] {
    return std::move(text);
  });
}

}  // namespace orrery::cli
