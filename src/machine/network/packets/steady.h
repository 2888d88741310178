// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "machine/network/packets/fabric.h"
#include "machine/network/packets/paced.h"

namespace orrery::packets {

/// SteadyPhases watches the flows under way, and skips packets while their rates stay the same
/// (packet.h). Private to the folder.
class SteadyPhases {
 public:
  /// `fabric` and `paced` must outlive it.
  SteadyPhases(Fabric& fabric, const Paced& paced) : fabric_(fabric), paced_(paced) {}

  /// The time of the run: the queue's clock stands still while packets are skipped.
  Time now() const { return fabric_.now() + skipped_; }
  Time skipped() const { return skipped_; }

  /// Starts afresh: nothing is under way and nothing is skipped.
  void restart();
  /// A flow begins; watch_anew() follows.
  void add(std::uint32_t f) { flows_.push_back(f); }
  /// A flow has ended.
  void remove(std::uint32_t f);
  /// Begins a new window: flows have begun or ended.
  void watch_anew();
  /// Returns whether an event of watch is of the window that is under way.
  bool is_current(std::uint32_t generation) const { return generation == turn_; }
  /// A window has ended: whether packets are skipped. `start` is when the next flow begins.
  bool end_window(Time start);
  /// Begins the next window.
  void watch();

 private:
  /// Mark is what is known of a flow's rate.
  struct Mark {
    std::uint32_t received = 0;  ///< at the beginning of the window
    Time heard{0};
    double first = 0;         ///< packets per second, in the first window of those that are alike
    double sum = 0;           ///< in all of them
    std::uint32_t since = 0;  ///< received before the first of them
    std::int64_t in_flight = 0;  ///< then
  };

  bool is_on() const { return fabric_.rules().options().steady > 0; }
  void mark(int windows);
  /// Every flow has sent enough to be judged.
  bool is_full() const;
  /// Counts the window; whether all rates are those of the first.
  bool is_alike();
  /// Returns the number of packets sent that have not come.
  std::int64_t in_flight(std::uint32_t f) const;
  /// Returns the most of the flow's packets, which come at `rate`, that may be skipped.
  std::int64_t to_skip(std::uint32_t f, double rate) const;
  bool skip(Time start);
  void take_out(std::uint32_t f, std::int64_t packets);

  Fabric& fabric_;
  const Paced& paced_;
  Time skipped_{0};
  std::vector<std::uint32_t> flows_;  ///< in flight
  std::vector<Mark> marks_;           ///< of these
  Time window_{0};
  Time since_{0};           ///< beginning of the windows that are alike
  int windows_ = 0;         ///< that are alike
  std::uint32_t turn_ = 0;  ///< generation of the end of the window
};

}  // namespace orrery::packets
