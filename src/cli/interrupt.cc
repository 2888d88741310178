// SPDX-License-Identifier: Apache-2.0
#include "cli/interrupt.h"

#include <atomic>
#include <cstddef>

namespace orrery::cli {
namespace {

constexpr std::array kSignals{SIGINT, SIGTERM};
constexpr int kEndedBySignal = 128;

std::atomic<int> came = 0;  // NOLINT: set by a signal, which has no other way to say so

}  // namespace

Interrupt::Interrupt() {
  came = 0;
  struct sigaction note {};
  note.sa_handler = [](int signal) { came = signal; };
  note.sa_flags = static_cast<int>(SA_RESETHAND | SA_RESTART);
  for (std::size_t i = 0; i < kSignals.size(); ++i) {
    sigaction(kSignals[i], &note, &before_[i]);
  }
}

Interrupt::~Interrupt() {
  for (std::size_t i = 0; i < kSignals.size(); ++i) {
    sigaction(kSignals[i], &before_[i], nullptr);
  }
}

bool Interrupt::going_on() {
  return came == 0;
}

int Interrupt::status(int otherwise) {
  return came == 0 ? otherwise : kEndedBySignal + came;
}

}  // namespace orrery::cli
