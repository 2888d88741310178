// SPDX-License-Identifier: Apache-2.0
#include "machine/memory/remote_memory.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "fifo_server.h"

namespace orrery::memory {
namespace {

/// 4 nodes of 4 devices and 8 groups of 100 GB/s; links of 2 switches of 100 GB/s to every node;
/// 50 GB/s to every device. One chunk is larger than any transfer here unless a test says so.
RemoteMemory hierarchy() {
  return {.kind = RemoteKind::hierarchical,
          .capacity = 1024_GiB,
          .bandwidth = Bandwidth(100e9),
          .latency = 2_us,
          .node_devices = 4,
          .groups = 8,
          .switches = 2,
          .switch_bandwidth = Bandwidth(100e9),
          .fabric_bandwidth = Bandwidth(50e9),
          .in_switch = true,
          .chunk = Bytes(1'000'000'000'000)};
}

RemoteMemory flat(RemoteKind kind) {
  return {.kind = kind,
          .capacity = 1024_GiB,
          .bandwidth = Bandwidth(100e9),
          .latency = 2_us,
          .node_devices = 4};
}

TEST(RemoteMemory, ThoseWhoShareAServerWaitForOneAnother) {
  // 1 MB at 100 GB/s is 10 us; 4 devices of a node 40 us, all 16 of them 160 us; and 2 us once.
  const RemoteAccess access{.bytes = Bytes(1'000'000), .devices = 16};
  EXPECT_EQ(access_time(flat(RemoteKind::per_device), access), 12_us);
  EXPECT_EQ(access_time(flat(RemoteKind::per_node), access), 42_us);
  EXPECT_EQ(access_time(flat(RemoteKind::pool), access), 162_us);
}

TEST(RemoteMemory, TheSharedTimeIsThatOfTheLastInTheQueue) {
  testing::FifoServer server;
  Time last{0};
  for (int device = 0; device < 16; ++device) {
    last = server.serve(0_us, Bytes(1'000'000) / Bandwidth(100e9));
  }
  const RemoteAccess access{.bytes = Bytes(1'000'000), .devices = 16};
  EXPECT_EQ(access_time(flat(RemoteKind::pool), access), 2_us + last);
}

TEST(RemoteMemory, ANodeSmallerThanItsPlacesSharesAmongThoseThere) {
  // Two devices: 2 x 10 us.
  const RemoteAccess access{.bytes = Bytes(1'000'000), .devices = 2};
  EXPECT_EQ(access_time(flat(RemoteKind::per_node), access), 22_us);
}

TEST(RemoteMemory, EveryDeviceLoadsItsOwnBytesThroughThreeStages) {
  // 1 MB each: a group sends 16/8 MB at 100 GB/s = 20 us, a node receives 4 MB at 200 GB/s = 20 us,
  // a device 1 MB at 50 GB/s = 20 us. As one chunk one after the other, and 2 us.
  const RemoteAccess access{.bytes = Bytes(1'000'000), .devices = 16};
  EXPECT_EQ(access_time(hierarchy(), access), 62_us);
  // In 10 chunks: 20 us and a tenth of the other two.
  RemoteMemory chunked = hierarchy();
  chunked.chunk = Bytes(100'000);
  EXPECT_EQ(access_time(chunked, access), 26_us);
}

TEST(RemoteMemory, SwitchesCarrySharedBytesOncePerGroupAndOncePerNode) {
  // All 16 want the same 8 MB: a group sends 1 MB = 10 us, a node receives 8 MB at 200 GB/s = 40
  // us, a device 8 MB at 50 GB/s = 160 us.
  const RemoteAccess access{.bytes = Bytes(8'000'000), .devices = 16, .sharers = 16, .in_node = 4};
  const std::vector<TransferStage> stages = stages_of(hierarchy(), access);
  ASSERT_EQ(stages.size(), 3U);
  EXPECT_EQ(stages[0].time(), 10_us);
  EXPECT_EQ(stages[1].time(), 40_us);
  EXPECT_EQ(stages[2].time(), 160_us);
  EXPECT_EQ(slowest(stages).name, "fabric");
  EXPECT_EQ(access_time(hierarchy(), access), 212_us);
}

TEST(RemoteMemory, SharersThatAreSpreadOverNodesEachNeedALink) {
  // Four groups of four sharers, one in each node: a node receives 4 different buffers of 1 MB, the
  // groups send 4 of them, 0.5 MB each.
  const RemoteAccess access{.bytes = Bytes(1'000'000), .devices = 16, .sharers = 4, .in_node = 1};
  const std::vector<TransferStage> stages = stages_of(hierarchy(), access);
  EXPECT_EQ(stages[0].bytes, Bytes(500'000));
  EXPECT_EQ(stages[1].bytes, Bytes(4'000'000));
  EXPECT_EQ(stages[2].bytes, Bytes(1'000'000));
}

TEST(RemoteMemory, ADevicesShareIsThatOfAllServersOverAllDevices) {
  EXPECT_EQ(capacity_per_device(hierarchy(), 16), Bytes((1024_GiB).value() / 2));
  EXPECT_EQ(capacity_per_device(flat(RemoteKind::per_device), 16), 1024_GiB);
  EXPECT_EQ(capacity_per_device(flat(RemoteKind::per_node), 16), Bytes((1024_GiB).value() / 4));
  EXPECT_EQ(capacity_per_device(flat(RemoteKind::pool), 16), Bytes((1024_GiB).value() / 16));
}

RemoteMemory any_hierarchy() {
  RemoteMemory memory = hierarchy();
  const auto rate = [] { return Bandwidth(*rc::gen::inRange(1, 1000) * 1e9); };
  memory.bandwidth = rate();
  memory.switch_bandwidth = rate();
  memory.fabric_bandwidth = rate();
  memory.groups = *rc::gen::inRange<std::int64_t>(1, 64);
  memory.switches = *rc::gen::inRange<std::int64_t>(1, 16);
  memory.chunk = Bytes(*rc::gen::inRange<std::int64_t>(1'000, 10'000'000));
  return memory;
}

RemoteAccess any_access() {
  const auto nodes = *rc::gen::inRange<std::int64_t>(1, 20);
  const auto in_node = *rc::gen::element<std::int64_t>(1, 2, 4);
  return {.bytes = Bytes(*rc::gen::inRange<std::int64_t>(1, 1 << 30)),
          .devices = 4 * nodes,
          .sharers = in_node * *rc::gen::inRange<std::int64_t>(1, nodes + 1),
          .in_node = in_node};
}

RC_GTEST_PROP(RemoteMemory, NoAccessIsFasterThanAnyLinkAllows, ()) {
  const RemoteMemory memory = any_hierarchy();
  const RemoteAccess access = any_access();
  const Time time = access_time(memory, access);
  for (const TransferStage& stage : stages_of(memory, access)) {
    RC_ASSERT(time >= memory.latency + stage.time());
  }
}

RC_GTEST_PROP(RemoteMemory, MoreBandwidthAnywhereIsNeverSlower, ()) {
  const RemoteMemory memory = any_hierarchy();
  const RemoteAccess access = any_access();
  const Time time = access_time(memory, access);
  for (auto bandwidth : {&RemoteMemory::bandwidth, &RemoteMemory::switch_bandwidth,
                         &RemoteMemory::fabric_bandwidth}) {
    RemoteMemory faster = memory;
    faster.*bandwidth = faster.*bandwidth * 2.0;
    RC_ASSERT(access_time(faster, access) <= time);
  }
  RemoteMemory wider = memory;
  wider.groups *= 2;
  RC_ASSERT(access_time(wider, access) <= time);
}

RC_GTEST_PROP(RemoteMemory, SharingInTheSwitchesIsNeverSlowerThanEveryoneForThemselves, ()) {
  const RemoteMemory memory = any_hierarchy();
  const RemoteAccess shared = any_access();
  RemoteAccess alone = shared;
  alone.sharers = alone.in_node = 1;
  RC_ASSERT(access_time(memory, shared) <= access_time(memory, alone));
}

RC_GTEST_PROP(RemoteMemory, AGatherInTheSwitchesIsNeverSlowerThanOneOverTheSameLinks, ()) {
  // Without it every one of m devices loads 1/m of the bytes and sends its part to the others. Over
  // the same fabric a device then receives x (m - 1) / m more, and a node with k of them, of d / k
  // such groups, what the m - k outside have: nothing is saved on either link.
  const RemoteMemory memory = any_hierarchy();
  const RemoteAccess shared = any_access();
  const std::int64_t m = shared.sharers;
  const std::int64_t k = shared.in_node;
  RemoteAccess part = shared;
  part.bytes = shared.bytes / m;
  part.sharers = part.in_node = 1;
  const std::int64_t groups_in_node = memory.node_devices / k;
  const std::vector<TransferStage> exchange{
      {"fabric", shared.bytes / m * (m - 1), memory.fabric_bandwidth},
      {"uplink", shared.bytes / m * (m - k) * groups_in_node,
       memory.switch_bandwidth * static_cast<double>(memory.switches)}};
  const Time apart =
      access_time(memory, part) +
      pipelined_time(exchange,
                     std::max<std::int64_t>(1, (shared.bytes / memory.chunk.value()).value()));
  const Time rounding = 1_ns;  // of shares to whole bytes
  // The parts are smaller than the whole and so are cut into fewer chunks, not more.
  RC_ASSERT(access_time(memory, shared) <= apart + rounding);
}

}  // namespace
}  // namespace orrery::memory
