// SPDX-License-Identifier: Apache-2.0
/// Quirks are what ASTRA-sim does otherwise than its papers or its inputs say, where it changes a
/// number. Each can be switched off (`--quirk NAME=off`); then Orrery does what `right` says.
#pragma once

#include <bitset>
#include <cstddef>
#include <cstdint>

#include "base/names.h"

namespace orrery::astra {

enum class Quirk : std::uint8_t {
  gib_bandwidth,
  first_dimension,
  one_communication,
  group_ring,
  full_last_chunk,
  memory_bus,
  halving_reduction,
  tree_reduction,
  tree_phase,
  window_reduction,
  all_reduce_list,
  smallest_chunk_insertion,
  themis_gather_fallback,
  themis_link_bandwidth,
};
inline constexpr std::size_t kQuirkCount = 14;

constexpr auto named_values(Quirk) {
  return std::to_array<Named<Quirk>>({
      {Quirk::gib_bandwidth, "gib-bandwidth",
       "network bandwidth counts 2^30 bytes per GB; off: 10^9, as memory bandwidth does"},
      {Quirk::first_dimension, "first-dimension",
       "a message that crosses several dimensions pays for the first in which its ends differ "
       "only; "
       "off: the latencies of all and the bandwidth of the slowest"},
      {Quirk::one_communication, "one-communication",
       "one collective, send or remote access per NPU at a time; off: the scheduling policy "
       "decides"},
      {Quirk::group_ring, "group-ring",
       "a group smaller than the world runs one logical ring in file order with a delay of 10 ns; "
       "off: its own algorithm in the dimensions that it spans"},
      {Quirk::full_last_chunk, "full-last-chunk",
       "the last chunk is as large as the others; off: it is what is left"},
      {Quirk::memory_bus, "memory-bus",
       "model-shared-bus takes every message over a memory bus too (o four times, L twice), and "
       "what "
       "is reduced there and back once more; off: over the bus alone"},
      {Quirk::halving_reduction, "halving-reduction",
       "halving-doubling charges each reduction at the size of the next message, the last at none, "
       "and doubles what it has halved once too often; off: at the size received, no byte lost"},
      {Quirk::tree_reduction, "tree-reduction",
       "trees charge reductions on the way down too; off: only on the way up"},
      {Quirk::tree_phase, "tree-phase",
       "a tree used for a reduce-scatter or all-gather phase runs a whole all-reduce; off: a "
       "reduce or broadcast"},
      {Quirk::window_reduction, "window-reduction",
       "direct<W> alternates reducing and copying every W receptions (in a group of n: reduces "
       "(n-1) W, copies W), and its second half may start before the first is reduced; off: the "
       "first half reduces, the second waits for that"},
      {Quirk::all_reduce_list, "all-reduce-list",
       "reduce-scatter and all-gather phases of an all-reduce take its own implementation list; "
       "off: theirs"},
      {Quirk::smallest_chunk_insertion, "smallest-chunk-insertion",
       "SCF puts a chunk in its last but one phase at the end of the queue; off: sorts it too"},
      {Quirk::themis_gather_fallback, "themis-gather-fallback",
       "Themis' fallback order for all-gathers is the reduce-scatter order with the sizes of the "
       "wrong dimensions; off: the natural order"},
      {Quirk::themis_link_bandwidth, "themis-link-bandwidth",
       "Themis weighs a dimension by the bandwidth of one link; off: by that of the NPU, and never "
       "takes a schedule predicted to be worse than the natural one"},
  });
}

/// All on is ASTRA-sim, all off is right.
class Quirks {
 public:
  static Quirks all() { return Quirks(true); }
  static Quirks none() { return Quirks(false); }
  bool operator[](Quirk quirk) const { return on_[static_cast<std::size_t>(quirk)]; }
  void set(Quirk quirk, bool on) { on_[static_cast<std::size_t>(quirk)] = on; }

 private:
  explicit Quirks(bool on) {
    if (on) {
      on_.set();
    }
  }
  std::bitset<kQuirkCount> on_;
};

}  // namespace orrery::astra
