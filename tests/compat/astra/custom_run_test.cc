// SPDX-License-Identifier: Apache-2.0
// Custom collectives in a run: beside native algorithms, and against a published figure.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "compat/astra/msccl.h"
#include "compat/astra/run.h"
#include "msccl_text.h"

namespace orrery::astra {
namespace {

using ::testing::HasSubstr;
using testing::msccl_block;
using testing::msccl_gpu;
using testing::msccl_program;
using testing::msccl_ring;
using testing::msccl_step;

constexpr double kGib = 1'073'741'824;

/// Every rank issues one collective of `size` bytes in the world.
RunInput one_collective(std::int64_t ranks, chakra::CollectiveType type, Bytes size) {
  RunInput input;
  chakra::Node node;
  node.type = chakra::NodeType::comm_coll;
  node.collective = type;
  node.size = size;
  node.has_size = true;
  input.traces.programs.resize(1);
  input.traces.programs[0].nodes = {node};
  input.traces.programs[0].names = std::string(1, '\0');
  input.traces.program_of.assign(static_cast<std::size_t>(ranks), 0);
  input.traces.groups.resize(1);
  for (auto& list : input.system.implementation) {
    list = {Implementation{Algorithm::ring}};
  }
  input.system.local_memory_bandwidth = Bandwidth(1600e9);
  input.network = {{Building::ring, ranks, Bandwidth(50 * kGib), Time(500'000)}};
  return input;
}

void use(RunInput& input, Operation operation, CustomCollective custom) {
  input.customs.all = {std::move(custom)};
  input.customs.by_operation[static_cast<std::size_t>(operation)] = 0;
}

CustomCollective msccl(const std::string& text) {
  auto parsed = parse_msccl(text, "test.xml");
  EXPECT_TRUE(parsed) << parsed.error().to_string();
  return parsed ? *parsed : CustomCollective{};
}

Time finish_of(const RunInput& input, Backend backend) {
  RunOptions options;
  options.backend = backend;
  const auto result = run(input, options);
  EXPECT_TRUE(result) << result.error().to_string();
  Time last{0};
  if (result) {
    for (const RunResult::Class& one : result->classes) {
      last = std::max(last, one.finish);
    }
  }
  return last;
}

RC_GTEST_PROP(CustomRun, AnImportedRingTakesExactlyAsLongAsTheNativeRing, ()) {
  const auto ranks = *rc::gen::inRange<std::int64_t>(2, 12);
  const auto size = Bytes(ranks * *rc::gen::inRange<std::int64_t>(1, 1 << 20));
  RunInput input = one_collective(ranks, chakra::CollectiveType::all_reduce, size);
  input.network[0].building =
      *rc::gen::element(Building::ring, Building::fully_connected, Building::switched);
  input.network[0].latency = Time(1000 * *rc::gen::inRange<std::int64_t>(0, 3000));
  input.system.endpoint_delay = Time(1000 * *rc::gen::inRange<std::int64_t>(0, 30));
  input.system.local_memory_bandwidth = Bandwidth(1e9 * *rc::gen::inRange(1, 3000));
  const auto backend = *rc::gen::element(Backend::unaware, Backend::aware);
  const Time native = finish_of(input, backend);
  use(input, Operation::all_reduce, msccl(msccl_ring(static_cast<int>(ranks))));
  RC_ASSERT(finish_of(input, backend) == native);
}

TEST(CustomRun, TheImportedRingOfEightHasTheReferenceTime) {
  // 10 + 14 * (2941 + 10) + 7 * 243 = 43025
  RunInput input = one_collective(8, chakra::CollectiveType::all_reduce, Bytes(1 << 20));
  use(input, Operation::all_reduce, msccl(msccl_ring(8)));
  EXPECT_EQ(finish_of(input, Backend::unaware), Time(43'025'000));
}

/// Returns what ASTRA-sim's converter makes of a ring: 2(p-1) times send and receive, the first p-1
/// receptions each followed by work, all in one chain.
chakra::TraceSet converted_ring(std::int64_t ranks, Bytes message, Time work) {
  chakra::Program program;
  const auto add = [&](chakra::NodeType type) -> chakra::Node& {
    chakra::Node node;
    node.id = program.nodes.size();
    node.type = type;
    if (node.id > 0) {
      node.first_dependency = static_cast<std::uint32_t>(program.dependencies.size());
      node.dependencies = 1;
      program.dependencies.push_back(static_cast<std::uint32_t>(node.id - 1));
    }
    program.nodes.push_back(node);
    return program.nodes.back();
  };
  for (std::int64_t i = 0; i < 2 * (ranks - 1); ++i) {
    chakra::Node& send = add(chakra::NodeType::comm_send);
    send.size = message;
    send.peer = 1;
    chakra::Node& receive = add(chakra::NodeType::comm_recv);
    receive.size = message;
    receive.peer = -1;
    if (i < ranks - 1) {
      add(chakra::NodeType::comp).duration = work;
    }
  }
  // Peers are relative to the rank; the last rank's successor and the first's predecessor wrap.
  chakra::TraceSet traces;
  for (std::int64_t rank = 0; rank < ranks; ++rank) {
    chakra::Program own = program;
    for (chakra::Node& node : own.nodes) {
      if (chakra::communicates(node.type)) {
        node.peer = (rank + node.peer + ranks) % ranks - rank;
      }
    }
    traces.programs.push_back(own);
    traces.program_of.push_back(static_cast<std::uint32_t>(rank));
  }
  traces.groups.resize(1);
  return traces;
}

TEST(CustomRun, TheBundledRingOfEightHasThePublishedTime) {
  // 1 MiB over 8: messages of 131072 B, f(500 + 131072 / 53.687) = 2941 ns; its converter writes
  // int(3 * int(131072 / 50) / 1000) = 7 us per reduction: 14 * 2941 + 7 * 7000 = 90174, no
  // endpoint delay, published as the result of the bundled example (aware, 8 NPUs in a ring).
  RunInput input = one_collective(8, chakra::CollectiveType::all_reduce, Bytes(1 << 20));
  input.system.local_memory_bandwidth = Bandwidth(50e9);
  const auto custom =
      custom_from_traces(converted_ring(8, Bytes(131072), Time(7'000'000)), "custom_allreduce");
  ASSERT_TRUE(custom) << custom.error().to_string();
  use(input, Operation::all_reduce, *custom);
  EXPECT_EQ(finish_of(input, Backend::aware), Time(90'174'000));
  // The sizes are the file's: the workload's size changes nothing.
  input.traces.programs[0].nodes[0].size = Bytes(5);
  EXPECT_EQ(finish_of(input, Backend::aware), Time(90'174'000));
}

TEST(CustomRun, BlocksRunAtOnce) {
  // Two blocks on two channels, each half the buffer: t(512 KiB) = f(500 + 524288 / 53.687) =
  // 10265; 10 + 10265 + 10, not twice.
  std::string first;
  std::string second;
  for (int channel = 0; channel < 2; ++channel) {
    first += msccl_block(channel, 1, -1, msccl_step(0, "s"), channel);
    second += msccl_block(channel, -1, 0, msccl_step(0, "r"), channel);
  }
  RunInput input = one_collective(2, chakra::CollectiveType::all_reduce, Bytes(1 << 20));
  use(input, Operation::all_reduce,
      msccl(msccl_program(2, 2, msccl_gpu(0, first) + msccl_gpu(1, second))));
  EXPECT_EQ(finish_of(input, Backend::unaware), Time(10'285'000));
}

TEST(CustomRun, AllGatherPartsAreThoseOfTheGatheredBuffer) {
  // 2 ranks bring 512 KiB each; the gathered MiB has 2 parts, each sends one: as above.
  const std::string send = msccl_step(0, "s");
  const std::string receive = msccl_step(0, "r");
  const auto gpu = [&](int id) {
    return msccl_gpu(id, msccl_block(0, 1 - id, -1, send) + msccl_block(1, -1, 1 - id, receive));
  };
  RunInput input = one_collective(2, chakra::CollectiveType::all_gather, Bytes(1 << 19));
  use(input, Operation::all_gather, msccl(msccl_program(2, 2, gpu(0) + gpu(1), "allgather")));
  EXPECT_EQ(finish_of(input, Backend::unaware), Time(10'285'000));
}

TEST(CustomRun, PositionsAreMembersOfTheGroup) {
  // Two groups of 4 in a ring of 8, each its own ring: as the native ring of the groups.
  RunInput input = one_collective(8, chakra::CollectiveType::all_reduce, Bytes(1 << 20));
  input.traces.programs[0].nodes[0].group = 1;
  input.traces.groups = {{}, {"1", {0, 2, 4, 6}}, {"2", {1, 3, 5, 7}}};
  for (std::uint32_t rank = 0; rank < 8; ++rank) {
    input.traces.first_slot.push_back(rank);
    input.traces.group_slots.push_back(1 + rank % 2);
  }
  const Time native = finish_of(input, Backend::unaware);
  use(input, Operation::all_reduce, msccl(msccl_ring(4)));
  EXPECT_EQ(finish_of(input, Backend::unaware), native);
}

TEST(CustomRun, AReadyMessageGoesBeforeEachMessage) {
  // t(8192) = f(500 + 8192 / 53.687) = 652, before each of 14 messages: 43025 + 14 * 652 = 52153,
  // as the native ring with rendezvous.
  RunInput input = one_collective(8, chakra::CollectiveType::all_reduce, Bytes(1 << 20));
  use(input, Operation::all_reduce, msccl(msccl_ring(8)));
  RunOptions options;
  options.rendezvous = true;
  const auto result = run(input, options);
  ASSERT_TRUE(result) << result.error().to_string();
  EXPECT_EQ(result->classes.front().finish, Time(52'153'000));
}

TEST(CustomRun, ANativeCollectiveMayFollow) {
  // An all-gather by the user's ring, then a native all-reduce of the same communicator: as long as
  // each alone.
  RunInput gather = one_collective(4, chakra::CollectiveType::all_gather, Bytes(1 << 20));
  use(gather, Operation::all_gather, msccl(msccl_ring(4)));
  const RunInput reduce = one_collective(4, chakra::CollectiveType::all_reduce, Bytes(1 << 20));
  RunInput both = gather;
  chakra::Program& program = both.traces.programs[0];
  program.nodes.push_back(reduce.traces.programs[0].nodes[0]);
  program.nodes[1].id = 1;
  program.nodes[1].dependencies = 1;
  program.dependencies = {0};
  for (const Backend backend : {Backend::unaware, Backend::aware}) {
    EXPECT_EQ(finish_of(both, backend), finish_of(gather, backend) + finish_of(reduce, backend));
  }
}

TEST(CustomRun, ARankThatNeverComesIsADeadlockThatNamesTheOthers) {
  RunInput input = one_collective(2, chakra::CollectiveType::all_reduce, Bytes(1 << 20));
  use(input, Operation::all_reduce, msccl(msccl_ring(2)));
  input.traces.programs.emplace_back();  // rank 1 does nothing
  input.traces.program_of[1] = 1;
  const auto stuck = run(input, {});
  ASSERT_FALSE(stuck);
  EXPECT_THAT(stuck.error().to_string(),
              ::testing::AllOf(HasSubstr("deadlock"), HasSubstr("rank 0: node 0")));
}

TEST(CustomRun, PositionsMustBeAsManyAsMembers) {
  RunInput input = one_collective(8, chakra::CollectiveType::all_reduce, Bytes(1 << 20));
  use(input, Operation::all_reduce, msccl(msccl_ring(4)));
  const auto refused = run(input, {});
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().to_string(),
              ::testing::AllOf(HasSubstr("test.xml"), HasSubstr("4"), HasSubstr("8")));
}

}  // namespace
}  // namespace orrery::astra
