// SPDX-License-Identifier: Apache-2.0
/// A device that multiplies inside its DRAM banks, as its machine file states it.
#pragma once

#include <cstdint>

#include "base/units.h"

namespace orrery::compute {

/// `channels` channels of `banks` banks, each bank with `lanes` multiply-accumulate units at its
/// row buffer that take one column (`lanes` elements) every t_ccd; a chip beside them for
/// everything else. What follows from other fields of the device: t_ccd = 2 lanes banks channels /
/// peak, and the interface of a channel has memory bandwidth / channels.
struct PimDevice {
  std::int64_t channels = 0;
  std::int64_t banks = 0;
  std::int64_t lanes = 0;
  Bytes row{0};  ///< of one bank
  Time t_rcd{0};
  Time t_rp{0};
  Time t_ras{0};
  Time t_rrd{0};
  Time t_faw{0};
  Time t_rfc{0};
  Time t_refi{0};
  bool banks_in_turn = false;  ///< else one command opens a row of every bank, exempt from t_faw
  std::int64_t vector_lanes = 0;
  Time vector_cycle{0};
  double norm_cycles = 0;
  double softmax_cycles = 0;
  double elementwise_cycles = 0;
  Energy mac_energy{0};
  Energy activate_energy{0};
  EnergyPerByte array_energy{0};
  Power vector_power{0};

  template <class V>
  static void fields(V&& visit) {
    using P = PimDevice;
    visit("channels", &P::channels, "of one device, which work in parallel");
    visit("banks", &P::banks, "of a channel, which multiply in parallel");
    visit("lanes", &P::lanes, "multiply-accumulate units of a bank: elements of a column");
    visit("row", &P::row, "of one bank");
    visit("t_rcd", &P::t_rcd, "from activate to the first column");
    visit("t_rp", &P::t_rp, "from precharge to activate");
    visit("t_ras", &P::t_ras, "from activate to precharge, at least");
    visit("t_rrd", &P::t_rrd, "between activates of two banks");
    visit("t_faw", &P::t_faw, "in which at most four banks are activated");
    visit("t_rfc", &P::t_rfc, "of one refresh");
    visit("t_refi", &P::t_refi, "between refreshes");
    visit("banks_in_turn", &P::banks_in_turn, "activate obeys t_rrd and t_faw; else all at once");
    visit("vector_lanes", &P::vector_lanes, "of the chip beside: elements at once");
    visit("vector_cycle", &P::vector_cycle, "its cycle");
    visit("norm_cycles", &P::norm_cycles, "of an element of a norm");
    visit("softmax_cycles", &P::softmax_cycles, "of an element of a softmax");
    visit("elementwise_cycles", &P::elementwise_cycles, "of an element of others");
    visit("mac_energy", &P::mac_energy, "of one multiply-accumulate; 0 = not known");
    visit("activate_energy", &P::activate_energy, "of one row of one bank; 0 = not known");
    visit("array_energy", &P::array_energy, "from the row to the units; 0 = not known");
    visit("vector_power", &P::vector_power, "of the chip beside; 0 = not known");
  }

  friend bool operator==(const PimDevice&, const PimDevice&) = default;
};

}  // namespace orrery::compute
