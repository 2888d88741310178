// SPDX-License-Identifier: Apache-2.0
#include "machine/compute/pim.h"

#include <algorithm>
#include <cmath>

#include "machine/compute/dram.h"

namespace orrery::compute {
namespace {

constexpr double kBackwardPasses = 2.5;  // five products for two

double refresh_factor(const PimDevice& device) {
  return device.t_refi > Time(0) ? 1 / (1 - device.t_rfc / device.t_refi) : 1;
}

/// `elements` on the chip beside.
PimCost on_chip(double elements, double cycles, const PimDevice& device) {
  PimCost cost;
  cost.vector_seconds = elements / static_cast<double>(device.vector_lanes) * cycles *
                        to_seconds(device.vector_cycle);
  return cost;
}

/// Rows that are written or gathered.
PimCost moved(double bytes, const Rates& rates, const PimDevice& device) {
  PimCost cost;
  cost.io_bytes = bytes;
  cost.io_seconds = bytes / rates.bandwidth + to_seconds(device.t_rcd + device.t_rp);
  return cost;
}

PimCost attention_cost(const graph::Operator& op, double bytes, const Rates& rates,
                       const PimDevice& device) {
  const double macs = op.flops.value() / 2;
  if (op.gemm.batch <= 0 || op.gemm.m <= 0 || op.gemm.k <= 0) {
    return pim_product({.inputs = 0, .outputs = 0, .macs = macs}, bytes, rates, device);
  }
  const auto queries = static_cast<double>(op.gemm.m);
  const auto inputs = static_cast<double>(op.gemm.batch) * static_cast<double>(op.gemm.k);
  const double per_product = macs / queries / (op.backward ? 2 * kBackwardPasses : 2);
  const double scores = per_product / static_cast<double>(op.gemm.k);
  PimCost query =
      pim_product({.inputs = inputs, .outputs = scores, .macs = per_product}, bytes, rates, device);
  query.add(
      pim_product({.inputs = scores, .outputs = inputs, .macs = per_product}, bytes, rates, device),
      1);
  query.add(on_chip(scores, device.softmax_cycles, device), 1);
  PimCost cost;
  cost.add(query, queries * (op.backward ? kBackwardPasses : 1));
  return cost;
}

PimCost gemm_cost(const graph::GemmShape& s, double bytes, const Rates& rates,
                  const PimDevice& device) {
  const auto k = static_cast<double>(s.k);
  const auto n = static_cast<double>(s.n);
  PimCost cost;
  if (s.batch > 0 && s.m > 0 && k * n > 0) {
    cost.add(pim_product({.inputs = k, .outputs = n, .macs = k * n}, bytes, rates, device),
             static_cast<double>(s.batch) * static_cast<double>(s.m));
  }
  return cost;
}

PimCost without_refresh(const graph::Operator& op, const Rates& rates, const PimDevice& device) {
  const double bytes = static_cast<double>(graph::bits_of(op.type)) / 8;
  const auto moves = static_cast<double>(op.bytes.value());
  switch (op.kind) {
    case graph::OperatorKind::gemm:
    case graph::OperatorKind::grouped_gemm:
      return gemm_cost(op.gemm, bytes, rates, device);
    case graph::OperatorKind::attention:
      return attention_cost(op, bytes, rates, device);
    case graph::OperatorKind::norm:
      return on_chip(moves / (2 * bytes), device.norm_cycles, device);
    case graph::OperatorKind::softmax:
      return on_chip(moves / (2 * bytes), device.softmax_cycles, device);
    case graph::OperatorKind::embedding:
    case graph::OperatorKind::cache_write:
    case graph::OperatorKind::permute:
      return moved(moves / 2, rates, device);
    case graph::OperatorKind::scan:
    case graph::OperatorKind::opaque:
      if (op.flops > Flops(0)) {
        return pim_product({.inputs = 0, .outputs = 0, .macs = op.flops.value() / 2}, bytes, rates,
                           device);
      }
      [[fallthrough]];
    default:
      return on_chip(moves / (2 * bytes), device.elementwise_cycles, device);
  }
}

}  // namespace

void PimCost::add(const PimCost& other, double times) {
  activates += other.activates * times;
  columns += other.columns * times;
  macs += other.macs * times;
  io_bytes += other.io_bytes * times;
  row_seconds += other.row_seconds * times;
  io_seconds += other.io_seconds * times;
  vector_seconds += other.vector_seconds * times;
}

PimCost pim_product(const PimProduct& product, double bytes, const Rates& rates,
                    const PimDevice& device) {
  PimCost cost;
  cost.macs = product.macs;
  if (product.macs <= 0) {
    return cost;
  }
  const auto channels = static_cast<double>(device.channels);
  const double banks = channels * static_cast<double>(device.banks);
  const auto lanes = static_cast<double>(device.lanes);
  const double per_row = std::max(
      1.0, std::floor(static_cast<double>(device.row.value()) / (bytes * lanes)));  // columns
  const double part = std::ceil(product.macs / banks);
  cost.columns = std::ceil(part / lanes);
  cost.activates = std::ceil(cost.columns / per_row);
  const double column = 2 * lanes * banks / rates.flops;
  // row_time() in seconds: t_ccd need not be whole picoseconds here.
  const auto open = [&](double columns) {
    return to_seconds(activate_spread(device) + device.t_rp) +
           std::max(to_seconds(device.t_ras), to_seconds(device.t_rcd) + columns * column);
  };
  const double last = cost.columns - (cost.activates - 1) * per_row;
  cost.row_seconds = (cost.activates - 1) * open(per_row) + open(last);
  cost.io_bytes = (product.inputs * channels + product.outputs) * bytes;
  cost.io_seconds = cost.io_bytes / rates.bandwidth;
  return cost;
}

PimCost pim_cost(const graph::Operator& op, const Rates& rates, const Device& device) {
  PimCost cost = without_refresh(op, rates, device.pim);
  cost.refresh = refresh_factor(device.pim);
  return cost;
}

Energy pim_energy(const PimCost& cost, double bytes, const Device& device) {
  const PimDevice& pim = device.pim;
  const double banks = static_cast<double>(pim.channels * pim.banks);
  const double joules = cost.macs * (pim.mac_energy.value() + bytes * pim.array_energy.value()) +
                        cost.activates * banks * pim.activate_energy.value() +
                        cost.io_bytes * device.memory.front().energy_per_byte.value() +
                        cost.seconds() * pim.vector_power.value();
  return Energy(joules);
}

PimKernel pim_kernel(const graph::Operator& op, const Device& device) {
  const PimCost cost = pim_cost(op, rates_of(op, device, clock_of(op, device)), device);
  return {cost, pim_energy(cost, static_cast<double>(graph::bits_of(op.type)) / 8, device)};
}

}  // namespace orrery::compute
