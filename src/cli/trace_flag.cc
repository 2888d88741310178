// SPDX-License-Identifier: Apache-2.0
#include "cli/trace_flag.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <iostream>

#include "base/reader.h"
#include "cli/progress.h"
#include "report/trace.h"

namespace orrery::cli {
namespace {

/// Returns the size in decimal units, as files are measured, and at least this much.
std::string size_text(Bytes size) {
  constexpr std::int64_t kMegabyte = 1'000'000;
  return size < Bytes(kMegabyte) ? fmt::format("{} bytes", size.value())
                                 : fmt::format("{} MB", (size.value() + kMegabyte - 1) / kMegabyte);
}

}  // namespace

void TraceFlag::declare(Options& options) {
  options.output("--trace", file_, "FILE", "also write the step as a Chrome/Perfetto trace");
  options.value("--trace-limit", limit_text_, "BYTES",
                "size from which on a trace is only written after asking; default 400 MB");
}

void TraceFlag::check(Error& mistakes) {
  if (!limit_text_) {
    return;
  }
  const auto limit = parse_value<Bytes>(*limit_text_);
  if (!limit || *limit < Bytes(1)) {
    mistakes.add(
        wrong_value("--trace-limit", *limit_text_, limit ? "at least 1 byte" : limit.error()));
  } else if (!file_) {
    mistakes.add({"--trace-limit", {}, {}, "goes with --trace"});
  } else {
    limit_ = *limit;
  }
}

Result<void> TraceFlag::write(const study::WorkloadRun& run) const {
  if (!file_) {
    return {};
  }
  if (auto allowed = allow(report::trace_size(run)); !allowed) {
    return allowed;
  }
  ProgressBar bar("writing the trace");
  return report::write_trace_file(run, *file_, [&](double share) { bar.update(share); });
}

Result<void> TraceFlag::allow(Bytes size) const {
  if (size <= limit_) {
    return {};
  }
  if (isatty(STDIN_FILENO) != 0 && isatty(STDERR_FILENO) != 0) {
    fmt::print(stderr, "{}: the trace takes {}. Write it? [y/N] ", *file_, size_text(size));
    std::string answer;
    std::getline(std::cin, answer);
    if (answer == "y" || answer == "yes") {
      return {};
    }
  }
  return fail(Error(Mistake{*file_,
                            {},
                            {},
                            fmt::format("the trace takes {}, more than {}, and was not written; "
                                        "give --trace-limit '{}' to write it",
                                        size_text(size), size_text(limit_), size_text(size))}));
}

}  // namespace orrery::cli
