// SPDX-License-Identifier: Apache-2.0
// `orrery astra` on the reference cases of tests/compat/astra, as a user of ASTRA-sim would run it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <regex>
#include <sstream>
#include <vector>

#include "../compat/astra/msccl_text.h"
#include "command.h"

namespace orrery::testing {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

const std::string kCases = ORRERY_SOURCE_DIR "/tests/compat/astra/cases/";

/// Files are what a run needs; replace one entry to change a file.
using Files = std::map<std::string, std::string>;

Files files_of(const std::string& name) {
  const std::string folder = kCases + name + "/";
  Files files{{"workload-configuration", folder + "trace"},
              {"system-configuration", folder + "system.json"},
              {"network-configuration", folder + "network.yml"},
              {"remote-memory-configuration", folder + "memory.json"}};
  if (std::filesystem::exists(folder + "groups.json")) {
    files["comm-group-configuration"] = folder + "groups.json";
  }
  return files;
}

Outcome ran(const Files& files, const std::string& options = "") {
  std::string arguments = "astra";
  for (const auto& [name, path] : files) {
    arguments.append(" --").append(name).append("=").append(path);
  }
  return orrery(arguments + " " + options);
}

json run_json(const std::string& name, const std::string& options = "") {
  const Outcome outcome = ran(files_of(name), options + " --json");
  EXPECT_EQ(outcome.status, 0) << name << "\n" << outcome.err;
  return outcome.status == 0 ? json::parse(outcome.out) : json{};
}

struct Line {
  std::int64_t rank;
  std::int64_t cycles;
  std::int64_t exposed;
};

/// The lines as the tools that people have find them in ASTRA-sim's log.
std::vector<Line> lines_in(const std::string& text) {
  static const std::regex line(
      R"(\[workload\] \[info\] sys\[(\d+)\] finished, (\d+) cycles, exposed communication (\d+) cycles\.)");
  std::vector<Line> lines;
  for (std::sregex_iterator at(text.begin(), text.end(), line), end; at != end; ++at) {
    lines.push_back({std::stoll((*at)[1]), std::stoll((*at)[2]), std::stoll((*at)[3])});
  }
  return lines;
}

void expect_as_in_astra_sim(const std::string& name) {
  const json expected = json::parse(content(kCases + name + "/expected.json"));
  std::string options = "--network-backend=" + expected["backend"].get<std::string>();
  if (expected.contains("options")) {
    for (const auto& [option, value] : expected["options"].items()) {
      options += " --" + option + "=" + value.dump();
    }
  }
  const Outcome outcome = ran(files_of(name), options);
  ASSERT_EQ(outcome.status, 0) << name << "\n" << outcome.err;
  const std::vector<Line> lines = lines_in(outcome.out);
  ASSERT_EQ(lines.size(), expected["npus"].get<std::size_t>()) << name;
  EXPECT_EQ(static_cast<std::size_t>(std::count(outcome.out.begin(), outcome.out.end(), '\n')),
            lines.size())
      << name << ": nothing but lines";
  EXPECT_EQ(lines.front().cycles, expected["cycles_ns_min"]) << name;
  EXPECT_EQ(lines.back().cycles, expected["cycles_ns_max"]) << name;
  for (const Line& line : lines) {
    if (line.rank == 0) {
      EXPECT_EQ(line.exposed, expected["exposed_rank0"]) << name;
    }
    if (expected.contains("cycles_per_rank")) {
      EXPECT_EQ(line.cycles, expected["cycles_per_rank"][static_cast<std::size_t>(line.rank)])
          << name << ", rank " << line.rank;
    }
  }
}

TEST(AstraCommand, PrintsTheCyclesOfAstraSim) {
  for (const char* const name :
       {"ring8_all_reduce_1MiB_ring_unaware", "ring8_all_reduce_1MiB_ring_splits4_active4_aware",
        "ring8_all_reduce_1MiB_rendezvous_unaware", "groups_2x4_all_reduce_1MiB_unaware",
        "p2p_3ring_hops_1MiB_unaware", "pipeline_4stages_p2p_unaware", "remote_memory_per_node_2x4",
        "overlap_compute_and_all_reduce", "compute_roofline_compute_bound",
        "fc8_all_reduce_1MiB_direct_window2_unaware",
        "switch8_all_reduce_1MiB_double_binary_tree_aware",
        "ring2_fc8_switch4_all_reduce_64MiB_splits16_themis_scf",
        "transformer_4layers_tp4_dp8_active1"}) {
    expect_as_in_astra_sim(name);
  }
}

TEST(AstraCommand, JsonHasEveryRankAndTotals) {
  const json result = run_json("remote_memory_per_node_2x4");
  const json expected = json::parse(content(kCases + "remote_memory_per_node_2x4/expected.json"));
  ASSERT_EQ(result["ranks"].size(), 8U);
  for (std::size_t rank = 0; rank < 8; ++rank) {
    EXPECT_EQ(result["ranks"][rank]["rank"], rank);
    EXPECT_EQ(result["ranks"][rank]["cycles"], expected["cycles_per_rank"][rank]);
    EXPECT_TRUE(result["ranks"][rank]["exposed_cycles"].is_number_integer());
  }
  EXPECT_EQ(result["cycles"], expected["cycles_ns_max"]);
  EXPECT_EQ(result["cycles_min"], expected["cycles_ns_min"]);
  EXPECT_EQ(result["npus"], 8);
  EXPECT_EQ(result["backend"], "unaware");
  EXPECT_TRUE(result["quirks"]["gib-bandwidth"]);
  for (const char* const key : {"classes", "events", "messages", "exposed_cycles"}) {
    EXPECT_TRUE(result[key].is_number_integer()) << key;
  }
  EXPECT_TRUE(result["unfolded"].is_array());
  EXPECT_THAT(result["warnings"][0].get<std::string>(), HasSubstr("system.json:20: boost-mode"));
}

TEST(AstraCommand, ValuesMayFollowABlankOrAnEqualsSignAndEmptyMeansNoGroups) {
  const std::string folder = kCases + "ring8_all_reduce_1MiB_ring_unaware/";
  const Outcome outcome =
      orrery("astra --workload-configuration " + folder + "trace --system-configuration " + folder +
             "system.json --network-configuration=" + folder +
             "network.yml --remote_memory_configuration " + folder +
             "memory.json --comm-group-configuration empty --num-queues-per-dim 1 "
             "--injection-scale=1.0 --rendezvous-protocol false");
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_EQ(lines_in(outcome.out).size(), 8U);
  EXPECT_EQ(lines_in(outcome.out).front().cycles, 43025);
}

TEST(AstraCommand, QuirksSwitchByName) {
  // 131072 B at 50e9 B/s: 2621.44 + 500 ns; 10 + 14 * (3121 + 10) + 7 * 243 = 45545.
  const std::string ring = "ring8_all_reduce_1MiB_ring_unaware";
  EXPECT_EQ(run_json(ring, "--quirk gib-bandwidth=off")["cycles"], 45545);
  EXPECT_EQ(run_json(ring, "--quirk all=off --quirk gib-bandwidth=on")["cycles"], 43025);
  const Outcome wrong = ran(files_of(ring), "--quirk gib-bandwith=off --quirk group-ring=maybe");
  EXPECT_EQ(wrong.status, 2);
  EXPECT_THAT(wrong.err, AllOf(HasSubstr("did you mean 'gib-bandwidth'?"),
                               HasSubstr("expected group-ring=on or group-ring=off")));
  EXPECT_THAT(orrery("list quirks").out, HasSubstr("themis-link-bandwidth     Themis weighs"));
  EXPECT_THAT(orrery("astra --help").out, HasSubstr("themis-link-bandwidth"));
}

TEST(AstraCommand, FoldedAndUnfoldedAgree) {
  for (const char* const name :
       {"ring2_fc8_switch4_all_reduce_64MiB_splits16", "transformer_4layers_tp4_dp8_active1",
        "remote_memory_per_node_2x4"}) {
    const json folded = run_json(name);
    const json all = run_json(name, "--no-fold");
    EXPECT_EQ(folded["ranks"], all["ranks"]) << name;
    EXPECT_LE(folded["classes"], all["classes"]) << name;
  }
}

TEST(AstraCommand, WhatChangesNoTimeSaysSo) {
  const Outcome outcome = ran(files_of("ring8_all_reduce_1MiB_ring_unaware"),
                              "--comm-scale=2 --compute-scale=1 --logging-configuration=log.toml");
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_EQ(lines_in(outcome.out).front().cycles, 43025);
  EXPECT_THAT(outcome.err,
              AllOf(HasSubstr("warning: --comm-scale: no effect"),
                    HasSubstr("warning: --logging-configuration: no effect"),
                    Not(HasSubstr("compute-scale")), HasSubstr("8 ranks finished: 43025 cycles")));
}

TEST(AstraCommand, CopiesGoToFiles) {
  const Folder folder;
  const Outcome outcome =
      ran(files_of("ring8_all_reduce_1MiB_ring_unaware"),
          "--logging-folder=" + (folder / "log") + " --json --output=" + (folder / "out.json"));
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_THAT(outcome.out, ::testing::EndsWith(content(folder / "out.json").substr(1)));
  EXPECT_EQ(lines_in(content(folder / "log/log.log")).size(), 8U);
}

/// The system file of a reference case with further fields.
std::string system_with(const std::string& name, const std::string& fields) {
  std::string text = content(kCases + name + "/system.json");
  return text.substr(0, text.find_last_of('}')) + ", " + fields + "}";
}

TEST(AstraCommand, CustomCollectivesComeFromFilesBesideTheSystemFile) {
  // The ring of 8 as an MSCCL program takes as long as the native one.
  const std::string ring = "ring8_all_reduce_1MiB_ring_unaware";
  const Folder folder;
  folder.write("ring.xml", astra::testing::msccl_ring(8));
  Files files = files_of(ring);
  files["system-configuration"] = folder.write(
      "system.json", system_with(ring, R"("all-reduce-implementation-custom": ["ring.xml"])"));
  EXPECT_EQ(lines_in(ran(files).out).at(0).cycles, 43025);
  folder.write("node.yml", "0: ring.xml\n");
  files["system-configuration"] = folder.write(
      "system.json", system_with(ring, R"("per-node-custom-implementation": "node.yml")"));
  EXPECT_EQ(lines_in(ran(files).out).at(7).cycles, 43025);
  files["system-configuration"] = folder.write(
      "system.json", system_with(ring, R"("all-gather-implementation-custom": "ring.xml",
                           "all-reduce-implementation-custom": "none")"));
  const Outcome wrong = ran(files);
  EXPECT_EQ(wrong.status, 2);
  EXPECT_THAT(wrong.err, AllOf(HasSubstr("algo.coll: found 'all-reduce', expected all-gather"),
                               HasSubstr("none.0.et: missing")));
}

TEST(AstraCommand, CustomCollectivesComeFromTraces) {
  // The messages and the work of the pipeline of 4 stages as what an all-reduce does: nothing else
  // happens, so it takes as long as the pipeline itself.
  const std::string pipeline = "pipeline_4stages_p2p_unaware";
  const Folder folder;
  Files files = files_of(pipeline);
  files["workload-configuration"] =
      files_of("ring8_all_reduce_1MiB_ring_unaware").at("workload-configuration");
  files["system-configuration"] =
      folder.write("system.json", system_with(pipeline, R"("all-reduce-implementation-custom": ")" +
                                                            kCases + pipeline + R"(/trace")"));
  const Outcome outcome = ran(files);
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  const json expected = json::parse(content(kCases + pipeline + "/expected.json"));
  EXPECT_EQ(lines_in(outcome.out).back().cycles, expected["cycles_ns_max"]);
}

TEST(AstraCommand, TheQuickstartPrintsWhatItsReadmeSays) {
  const Folder folder;
  const std::string command = "ORRERY=" + std::string(ORRERY_BINARY) + " " + ORRERY_SOURCE_DIR +
                              "/examples/astra_quickstart/run.sh >" + (folder / "out");
  ASSERT_EQ(std::system(command.c_str()), 0);
  std::map<std::string, double> cycles;
  std::istringstream lines(content(folder / "out"));
  for (std::string line; std::getline(lines, line);) {
    const std::size_t blank = line.find_last_of(' ');
    if (line.size() > 34 && line[0] != '[' && line[0] != '#') {
      cycles[line.substr(0, line.find("  "))] = std::stod(line.substr(blank));
    }
  }
  ASSERT_EQ(cycles.size(), 4U);
  EXPECT_EQ(cycles["all quirks"], 6'314'000);
  EXPECT_NEAR(cycles["gib-bandwidth=off"] / 6'314'000, 1.05, 0.005);
  EXPECT_NEAR(cycles["one-communication=off"] / 6'314'000, 0.98, 0.005);
  EXPECT_LT(cycles["all=off"], cycles["gib-bandwidth=off"]);
}

// quirks.tsv: the right behaviour, not ASTRA-sim's.

TEST(AstraQuirks, AnUnknownKeyIsNamed) {
  const Outcome outcome = ran(files_of("quirk_unknown_system_key"));
  EXPECT_EQ(outcome.status, 2);
  EXPECT_THAT(outcome.out, IsEmpty());
  EXPECT_THAT(outcome.err, HasSubstr("system.json:21: endpoint-dely: unknown field (did you mean "
                                     "'endpoint-delay'?)"));
}

TEST(AstraQuirks, RightTimesWhereAstraSimIsWrongOrStops) {
  // 14 * 2941 + 7 * 243 = 42875 without endpoint delay; without memory bandwidth no reductions:
  // 10 + 14 * (2941 + 10) = 41324; all five dimensions 44919; operations at peak 1000000 + 100000.
  EXPECT_EQ(run_json("quirk_endpoint_delay_zero")["cycles"], 42875);
  EXPECT_EQ(run_json("quirk_local_mem_bw_missing")["cycles"], 41324);
  EXPECT_EQ(run_json("quirk_five_dims_involved_dim_absent")["cycles"], 44919);
  EXPECT_EQ(run_json("quirk_five_dims_involved_dim_given")["cycles"], 44919);
  EXPECT_EQ(run_json("quirk_message_8GiB")["cycles"], 336107157);
  EXPECT_EQ(run_json("quirk_groups_on_both_halves_then_world")["cycles"], 86854);
  EXPECT_EQ(run_json("quirk_roofline_zero_bytes")["cycles"], 1100000);
  EXPECT_EQ(run_json("quirk_p2p_peer_differs_in_two_dims", "--quirk first-dimension=off")["cycles"],
            107756);
}

TEST(AstraQuirks, MissingSplitsAreOneChunkAndWarn) {
  const json result = run_json("quirk_splits_missing");
  EXPECT_EQ(result["cycles"], 43025);
  EXPECT_THAT(result["warnings"].dump(), HasSubstr("preferred-dataset-splits: missing"));
}

TEST(AstraQuirks, CollectivesMatchWithinTheirGroup) {
  for (const char* const name : {"quirk_subset_group_then_world_deadlock",
                                 "quirk_subset_group_then_world_delayed_deadlock"}) {
    const json result = run_json(name);
    EXPECT_EQ(result["ranks"].size(), 8U);
    EXPECT_GT(result["cycles_min"], 43025) << name;  // the world waits for the group
  }
}

TEST(AstraQuirks, AlgorithmsThatNeedPowersOfTwoSucceedOrSayWhyNot) {
  for (const char* const name :
       {"quirk_double_binary_tree_6_npus", "quirk_halving_doubling_6_npus"}) {
    const Outcome outcome = ran(files_of(name));
    if (outcome.status == 0) {
      EXPECT_EQ(lines_in(outcome.out).size(), 6U) << name;
    } else {
      EXPECT_EQ(outcome.status, 2) << name;
      EXPECT_THAT(outcome.out, IsEmpty()) << name;
      EXPECT_THAT(outcome.err, HasSubstr("6")) << name;
    }
  }
}

TEST(AstraQuirks, ADeadlockNamesWhoWaitsAndFails) {
  // Rank 5 computes only; the others' all-reduce waits for it.
  const std::string ring = "ring8_all_reduce_1MiB_ring_unaware";
  const Folder folder;
  for (int rank = 0; rank < 8; ++rank) {
    folder.write("trace." + std::to_string(rank) + ".et",
                 content(kCases + (rank == 5 ? "compute_replay_chain" : ring) + "/trace.all.et"));
  }
  Files files = files_of(ring);
  files["workload-configuration"] = folder / "trace";
  const Outcome outcome = ran(files);
  EXPECT_EQ(outcome.status, 2);
  EXPECT_THAT(outcome.out, IsEmpty());
  EXPECT_THAT(outcome.err, AllOf(HasSubstr("deadlock: 7 of 8 ranks"), HasSubstr("rank 0: node 0"),
                                 Not(HasSubstr("rank 5"))));
}

// Mistakes of users.

TEST(AstraMistakes, MissingFilesAreAllNamed) {
  const Outcome none = orrery("astra");
  EXPECT_EQ(none.status, 2);
  for (const char* const name : {"workload", "system", "network", "remote-memory"}) {
    EXPECT_THAT(none.err,
                HasSubstr("--" + std::string(name) + "-configuration: required, but missing"));
  }
  Files files = files_of("ring8_all_reduce_1MiB_ring_unaware");
  files["system-configuration"] = "/nonexistent/system.json";
  files["remote-memory-configuration"] = "/nonexistent/memory.json";
  files["workload-configuration"] = "/nonexistent/trace";
  const Outcome wrong = ran(files);
  EXPECT_EQ(wrong.status, 2);
  EXPECT_THAT(wrong.out, IsEmpty());
  EXPECT_THAT(wrong.err,
              AllOf(HasSubstr("/nonexistent/system.json"), HasSubstr("/nonexistent/memory.json"),
                    HasSubstr("/nonexistent/trace")));
}

TEST(AstraMistakes, OptionsSayWhatTheyTake) {
  const Outcome outcome =
      ran(files_of("ring8_all_reduce_1MiB_ring_unaware"),
          "--network-backend=awere --num-queues-per-dim=0 --injection-scale=fast "
          "--rendezvous-protocol=perhaps --network-backnd=x");
  EXPECT_EQ(outcome.status, 2);
  for (const char* const part :
       {"--network-backend: found 'awere', expected one of unaware, aware",
        "--num-queues-per-dim: found '0', expected 1 to 1024", "--injection-scale: found 'fast'",
        "--rendezvous-protocol: found 'perhaps'",
        "unknown option --network-backnd (did you mean '--network-backend'?)"}) {
    EXPECT_THAT(outcome.err, HasSubstr(part));
  }
}

TEST(AstraMistakes, ListsMustFitTheNetworkAndTheTraces) {
  const Folder folder;
  Files files = files_of("ring8_all_reduce_1MiB_ring_unaware");
  files["system-configuration"] =
      folder.write("system.json", R"({"all-reduce-implementation": ["ring", "direct"]})");
  EXPECT_THAT(ran(files).err,
              HasSubstr("all-reduce-implementation: found '2 entries', expected one for each of "
                        "the network's 1 dimensions"));
  files["system-configuration"] = folder.write("system.json", "{}");
  const Outcome missing = ran(files);
  EXPECT_EQ(missing.status, 2);
  EXPECT_THAT(missing.err, HasSubstr("all-reduce-implementation: missing, and the traces have "
                                     "all-reduce collectives"));
}

TEST(AstraMistakes, DamagedFilesAreRefused) {
  const Folder folder;
  const std::string whole = "ring8_all_reduce_1MiB_ring_unaware";
  Files files = files_of(whole);
  files["system-configuration"] = folder.write("system.json", "{\"endpoint-delay\": 10,\n}");
  EXPECT_THAT(ran(files).err, HasSubstr("system.json:2"));
  files = files_of(whole);
  files["network-configuration"] = folder.write("network.yml", "topology: [ Ring\n");
  EXPECT_EQ(ran(files).status, 2);
  files = files_of(whole);
  const std::string trace = content(kCases + whole + "/trace.all.et");
  folder.write("trace.all.et", trace.substr(0, trace.size() - 3));
  files["workload-configuration"] = folder / "trace";
  const Outcome truncated = ran(files);
  EXPECT_EQ(truncated.status, 2);
  EXPECT_THAT(truncated.out, IsEmpty());
  EXPECT_THAT(truncated.err, HasSubstr("trace.all.et"));
}

}  // namespace
}  // namespace orrery::testing
