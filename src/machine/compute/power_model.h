// SPDX-License-Identifier: Apache-2.0
/// The power model of a device says what its kernels draw, by kind and load: constants of clock.h.
#pragma once

#include "base/units.h"

namespace orrery::compute {

/// Watts are those at full clock and above the device's idle power. A model without `gemm_power` is
/// not known: the device then keeps its clock and draws its design power while it is busy.
struct PowerModel {
  Power busy_power{0};               ///< any kernel running
  Power gemm_power{0};               ///< products that fill the matrix units
  Power attention_power{0};          ///< fused attention that fills them; 0: as products
  Power decode_power{0};             ///< attention of few queries that takes all of the bandwidth
  Power decode_flash2_power{0};      ///< the same by FlashAttention-2, which packs no heads
  EnergyPerByte memory_energy{0};    ///< of a byte of the first memory tier, at any clock
  double full_clock_rate = 1;        ///< peak rate at full clock over Device::peak
  double table_clock = 0.897;        ///< share of full clock at which the kernel tables were taken
  double attention_table_clock = 0;  ///< the same of attention's tables; 0: table_clock
  double power_exponent = 1.8;       ///< of power over clock
  double regulated = 0.986;          ///< share of the cap at which the regulator holds the power

  bool known() const { return gemm_power > Power(0); }

  template <class V>
  static void fields(V&& visit) {
    using P = PowerModel;
    visit("busy_power", &P::busy_power, "of any kernel, above idle power, at full clock");
    visit("gemm_power", &P::gemm_power, "of products that fill the matrix units; 0 = not known");
    visit("attention_power", &P::attention_power, "of fused attention that fills them");
    visit("decode_power", &P::decode_power, "of decode attention that takes all of the bandwidth");
    visit("decode_flash2_power", &P::decode_flash2_power, "the same by FlashAttention-2");
    visit("memory_energy", &P::memory_energy, "of a byte of the first memory tier");
    visit("full_clock_rate", &P::full_clock_rate, "peak rate at full clock over `peak`");
    visit("table_clock", &P::table_clock, "share of full clock at which kernels were measured");
    visit("attention_table_clock", &P::attention_table_clock,
          "the same of the tables of attention; 0: table_clock");
    visit("power_exponent", &P::power_exponent, "of power over clock");
    visit("regulated", &P::regulated, "share of the cap at which power is held");
  }

  friend bool operator==(const PowerModel&, const PowerModel&) = default;
};

}  // namespace orrery::compute
