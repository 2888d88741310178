// SPDX-License-Identifier: Apache-2.0
#include "cli/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

namespace orrery::cli {
namespace {

using namespace std::chrono_literals;
constexpr auto kQuiet = 2s;
constexpr auto kBetweenDrawings = 100ms;
constexpr int kBarWidth = 40;

}  // namespace

ProgressBar::ProgressBar() : next_(begin_ + kQuiet), terminal_(isatty(STDERR_FILENO) != 0) {}

ProgressBar::~ProgressBar() {
  if (drawn_) {
    std::fputs("\r\033[K", stderr);  // carriage return, erase the line
  }
}

void ProgressBar::update(double share) {
  const auto now = Clock::now();
  if (!terminal_ || now < next_) {
    return;
  }
  next_ = now + kBetweenDrawings;
  drawn_ = true;
  share = std::clamp(share, 0.0, 1.0);
  const auto filled = static_cast<int>(share * kBarWidth);
  const double elapsed = std::chrono::duration<double>(now - begin_).count();
  fmt::print(stderr, "\rsimulating [{:<{}}] {:3.0f} %  {:.0f} s",
             std::string(static_cast<std::size_t>(filled), '#'), kBarWidth, 100 * share, elapsed);
  std::fflush(stderr);
}

}  // namespace orrery::cli
