// SPDX-License-Identifier: Apache-2.0
/// Kernels of a device that multiplies inside its DRAM banks (PIM-GPT, AiM).
///
/// A vector of `inputs` elements goes to the buffers of all channels, every bank multiplies its
/// equal part of `macs` weights, row by row, and the sums come back over the interfaces:
///
///   part    = ceil(macs / (channels banks))                 weights of one bank
///   columns = ceil(part / lanes),  rows = ceil(part e / row)
///   time    = inputs e / io + rows (dram.h, row_time) + (outputs / channels) e / io
///   io      = memory bandwidth / channels,  t_ccd = 2 lanes banks channels / peak,  e = bytes
///
/// A product of m rows is m of these: nothing is shared by tokens of a batch. Attention of a query
/// is two, keys from banks by rows and values by columns: batch head_dim inputs and batch keys
/// outputs, then the reverse, with a softmax on the chip between. Norms, softmax and elementwise
/// kernels take bytes / (2 e) elements / vector_lanes times their cycles; what is written to or
/// gathered from memory its bytes / 2 over all interfaces, t_rcd and t_rp. Everything waits for
/// refresh: times 1 / (1 - t_rfc / t_refi).
///
///   energy = macs mac_energy + rows of all banks activate_energy + weights' bytes array_energy
///          + bytes over the interfaces memory energy_per_byte + time vector_power
///
/// Ignores:  a row that begins in a product and ends in the next; conversion of layouts as the
///           cache grows; commands' time on the bus; the backward's extra passes (2.5 times the
///           forward's time).
/// Source:   PIM-GPT (arXiv 2310.09385); its reference model has one output per key and query
///           instead of one per head, which is 4 to 5 % faster.
#pragma once

#include <cstdint>

#include "graph/operator.h"
#include "machine/compute/device.h"
#include "machine/compute/rates.h"

namespace orrery::compute {

/// PimCost counts what one kernel does on the device.
struct PimCost {
  double activates = 0;  ///< rows, of every bank
  double columns = 0;    ///< multiply commands, of every bank
  double macs = 0;
  double io_bytes = 0;        ///< over all interfaces
  double row_seconds = 0;     ///< in rows: activate, multiply, precharge
  double io_seconds = 0;      ///< to and from the banks
  double vector_seconds = 0;  ///< on the chip beside
  double refresh = 1;         ///< times all of it

  void add(const PimCost& other, double times);
  double seconds() const { return (row_seconds + io_seconds + vector_seconds) * refresh; }
};

/// A vector times a matrix of `macs` elements.
struct PimProduct {
  double inputs = 0;
  double outputs = 0;
  double macs = 0;
};
/// Returns the cost of a product. `bytes`: of an element.
PimCost pim_product(const PimProduct& product, double bytes, const Rates& rates,
                    const PimDevice& device);

PimCost pim_cost(const graph::Operator& op, const Rates& rates, const Device& device);

/// Returns the energy by the energies of the device's file; those not known count 0. `bytes`: of an
/// element.
Energy pim_energy(const PimCost& cost, double bytes, const Device& device);

struct PimKernel {
  PimCost cost;
  Energy energy{0};
};
PimKernel pim_kernel(const graph::Operator& op, const Device& device);

}  // namespace orrery::compute
