// SPDX-License-Identifier: Apache-2.0
#include "serving/kv_transfers.h"

#include <gtest/gtest.h>

#include <array>
#include <utility>
#include <vector>

namespace orrery::serving {
namespace {

machine::Machine transfer_machine() {
  return machine::with_devices(machine::load_machine("dgx-h100").value(), 8).value();
}

TEST(KvTransfers, ShareTheLinksOfTheirEnds) {
  const machine::Machine machine = transfer_machine();
  const auto took = [&](std::vector<std::pair<Placement, Placement>> ways) {
    KvTransfers transfers(machine, {});
    for (const auto& [source, destination] : ways) {
      transfers.begin(1_ms, source, destination, Bytes(4'500'000'000));
    }
    Time last{0};
    while (!transfers.next(Time::max()).is_overflow()) {
      last = transfers.next(Time::max());
      transfers.advance(last);
    }
    return to_seconds(last - 1_ms);
  };
  const double alone = took({{{0, 1}, {1, 1}}});
  // Two from one device halve its link, two of their own do not.
  EXPECT_NEAR(took({{{0, 1}, {1, 1}}, {{0, 1}, {2, 1}}}) / alone, 2, 0.01);
  EXPECT_NEAR(took({{{0, 1}, {1, 1}}, {{2, 1}, {3, 1}}}) / alone, 1, 1e-6);
  // Two ranks that get the same from one: twice the bytes leave it. One rank from two: half each.
  EXPECT_NEAR(took({{{0, 1}, {2, 2}}}) / alone, 2, 0.01);
  EXPECT_NEAR(took({{{0, 2}, {2, 1}}}) / alone, 1, 0.01);
  EXPECT_NEAR(took({{{0, 2}, {2, 2}}}) / alone, 1, 0.01);
}

TEST(KvTransfers, FirstComeFirstServedWithFifo) {
  // Two from one port: max-min both end after twice the time, in order the first after once.
  const machine::Machine machine = transfer_machine();
  const auto ends = [&](simulate::NetworkModel network) {
    KvTransfers transfers(machine, network);
    transfers.begin(Time(0), {0, 1}, {1, 1}, Bytes(4'500'000'000));
    transfers.begin(Time(0), {0, 1}, {2, 1}, Bytes(4'500'000'000));
    std::vector<double> times;
    while (!transfers.next(Time::max()).is_overflow()) {
      const Time now = transfers.next(Time::max());
      times.insert(times.end(), transfers.advance(now).ended.size(), to_seconds(now));
    }
    return times;
  };
  const std::vector<double> shared = ends(simulate::NetworkModel::flow);
  const std::vector<double> in_order = ends(simulate::NetworkModel::fifo);
  ASSERT_EQ(shared.size(), 2U);
  ASSERT_EQ(in_order.size(), 2U);
  EXPECT_EQ(shared[0], shared[1]);
  EXPECT_NEAR(in_order[0] / shared[0], 0.5, 0.001);
  EXPECT_NEAR(in_order[1] / shared[1], 1, 1e-6);
}

TEST(KvTransfers, RanksOfTokensAndStagesSendTheirParts) {
  const machine::Machine machine = transfer_machine();
  const auto took = [&](const Placement& source, const Placement& destination) {
    KvTransfers transfers(machine, {});
    transfers.begin(Time(0), source, destination, Bytes(4'500'000'000));
    Time last{0};
    for (Time next = transfers.next(Time::max()); !next.is_overflow();
         next = transfers.next(Time::max())) {
      transfers.advance(next);
      last = next;
    }
    return to_seconds(last);
  };
  const double alone = took({.first = 0}, {.first = 4});
  // One rank gets half from each of two: its own link is full. Two of one sender: twice the bytes.
  EXPECT_NEAR(took({.first = 0, .tokens = 2}, {.first = 4}) / alone, 1, 0.01);
  EXPECT_NEAR(took({.first = 0, .layers = 2}, {.first = 4}) / alone, 1, 0.01);
  EXPECT_NEAR(took({.first = 0}, {.first = 4, .tokens = 2}) / alone, 2, 0.01);
  EXPECT_NEAR(took({.first = 0, .layers = 2}, {.first = 4, .layers = 2}) / alone, 1, 0.01);
  // Ranks 0 to 3 have halves of heads in two stages, 4 to 7 quarters of heads of all layers: each
  // gets half of its bytes from either stage, each sender serves two.
  EXPECT_NEAR(took({.first = 0, .heads = 2, .layers = 2}, {.first = 4, .heads = 4}) / alone, 1,
              0.01);
  // Two senders of halves of heads serve two quarters each.
  EXPECT_NEAR(took({.first = 0, .heads = 2}, {.first = 4, .heads = 4}) / alone, 2, 0.01);
}

constexpr Time kSecondBegins = 5_us;

/// Ends of two transfers from one device, the second begun at kSecondBegins, looked at in steps of
/// `period`, which divides that.
std::array<double, 2> ends_at_one_port(simulate::NetworkModel model, Time period) {
  const machine::Machine machine = transfer_machine();
  constexpr Bytes kBytes{4'500'000};
  KvTransfers transfers(machine, model);
  EXPECT_TRUE(transfers.check().has_value());
  transfers.begin(Time(0), {.first = 0}, {.first = 1}, kBytes);
  std::array<double, 2> ends{};
  for (Time bound{0}; bound < 100_us; bound += period) {
    for (Time next = transfers.next(bound); next <= bound; next = transfers.next(bound)) {
      for (const std::size_t ended : transfers.advance(next).ended) {
        ends[ended] = to_seconds(next);
      }
    }
    if (bound == kSecondBegins) {
      transfers.begin(bound, {.first = 0}, {.first = 2}, kBytes);
    }
  }
  EXPECT_FALSE(transfers.looks_ahead());
  return ends;
}

TEST(KvTransfers, PacketsAndFlitsShareAsFlowsDoWhateverTheBoundsAre) {
  // Fluid flows take t alone: the first has half the rate from the second's begin s on, so it ends
  // at 2 t - s, and all bytes have left at 2 t. Headers and latencies come on top.
  const std::array<double, 2> flows = ends_at_one_port(simulate::NetworkModel::flow, 1_us);
  EXPECT_NEAR(flows[1] - flows[0], to_seconds(kSecondBegins), 0.1e-6);
  const std::array<double, 2> packets = ends_at_one_port(simulate::NetworkModel::packet, 1_us);
  EXPECT_NEAR(packets[0] / flows[0], 1, 0.1);
  EXPECT_NEAR(packets[1] / flows[1], 1, 0.1);
  EXPECT_EQ(packets, ends_at_one_port(simulate::NetworkModel::packet, 5_us));
  // Flits of a port leave message after message.
  const std::array<double, 2> flits = ends_at_one_port(simulate::NetworkModel::flit, 1_us);
  EXPECT_NEAR(flits[1] / flows[1], 1, 0.1);
  EXPECT_EQ(flits, ends_at_one_port(simulate::NetworkModel::flit, 5_us));
}

}  // namespace
}  // namespace orrery::serving
