// SPDX-License-Identifier: Apache-2.0
#include "cli/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <utility>

namespace orrery::cli {
namespace {

using namespace std::chrono_literals;
constexpr auto kQuiet = 2s;
constexpr auto kBetweenDrawings = 100ms;
constexpr int kBarWidth = 40;
constexpr double kTold = 10;     // seconds after which a rate of work says something
constexpr double kLong = 60;     // seconds of work that are worth a remark
constexpr double kLeast = 1e-4;  // of the work: less says nothing about the rest

std::string duration(double seconds) {
  struct Unit {
    double seconds;
    const char* name;
  };
  constexpr std::array kUnits{Unit{86'400, "days"}, Unit{3'600, "h"}, Unit{60, "min"}};
  for (const Unit& unit : kUnits) {
    if (seconds >= 2 * unit.seconds) {
      return fmt::format("{:.0f} {}", seconds / unit.seconds, unit.name);
    }
  }
  return fmt::format("{:.0f} s", seconds);
}

/// ", about 1.9 G events": of the whole run.
std::string events_text(const ProgressState& state) {
  if (state.events == 0) {
    return "";
  }
  double count = static_cast<double>(state.events) / state.share;
  std::size_t prefix = 0;
  for (constexpr std::size_t kLast = 3; count >= 1000 && prefix < kLast; ++prefix) {
    count /= 1000;
  }
  constexpr std::array kPrefixes{"", " k", " M", " G"};
  return fmt::format(", about {:.3g}{} events", count, kPrefixes[prefix]);
}

double seconds_left(const ProgressState& state) {
  return state.elapsed_s * (1 - state.share) / state.share;
}

}  // namespace

std::string progress_line(const std::string& what, const ProgressState& state) {
  const auto filled = static_cast<std::size_t>(state.share * kBarWidth);
  std::string line = fmt::format("{} [{:<{}}] {:3.0f} %, {}", what, std::string(filled, '#'),
                                 kBarWidth, 100 * state.share, duration(state.elapsed_s));
  if (state.share >= kLeast) {
    line += fmt::format(", about {} left{}", duration(seconds_left(state)), events_text(state));
  }
  return line;
}

std::string progress_remark(const std::string& what, const ProgressState& state) {
  if (state.elapsed_s < kTold || state.share < kLeast ||
      state.elapsed_s + seconds_left(state) < kLong) {
    return "";
  }
  return fmt::format("{}: {:.2g} % done in {}, about {} left{}", what, 100 * state.share,
                     duration(state.elapsed_s), duration(seconds_left(state)), events_text(state));
}

ProgressBar::ProgressBar(std::string what)
    : what_(std::move(what)), next_(begin_ + kQuiet), terminal_(isatty(STDERR_FILENO) != 0) {}

ProgressBar::~ProgressBar() {
  if (terminal_ && drawn_) {
    std::fputs("\r\033[K", stderr);  // carriage return, erase the line
  }
}

void ProgressBar::update(double share, std::uint64_t events) {
  const auto now = Clock::now();
  if (now < next_ || (!terminal_ && drawn_)) {
    return;
  }
  next_ = now + kBetweenDrawings;
  const ProgressState state{.share = std::clamp(share, 0.0, 1.0),
                            .elapsed_s = std::chrono::duration<double>(now - begin_).count(),
                            .events = events};
  const std::string text = terminal_ ? progress_line(what_, state) : progress_remark(what_, state);
  if (text.empty()) {
    return;
  }
  drawn_ = true;
  fmt::print(stderr, "{}{}{}", terminal_ ? "\r" : "", text, terminal_ ? "\033[K" : "\n");
  std::fflush(stderr);
}

}  // namespace orrery::cli
