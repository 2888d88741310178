// SPDX-License-Identifier: Apache-2.0
#include "diagnose/telemetry.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "base/file.h"
#include "diagnose/diagnose.h"
#include "diagnose/pickle.h"

namespace orrery::diagnose {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string written(const std::string& name, const std::string& text) {
  const std::string path = ::testing::TempDir() + name;
  EXPECT_TRUE(write_file(path, text));
  return path;
}

TEST(Telemetry, LinesAreReadExactly) {
  const auto read =
      load_telemetry({written("telemetry.jsonl",
                              R"({"type": "communicator", "name": "tp0", "ranks": [1, 0]}

{"type": "collective", "communicator": "tp0", "rank": 0, "sequence": 1, "operation": "all_reduce", "bytes": 8, "entered_s": 1724779239.000000001, "ended_s": 1724779239.000000004, "sent": 2, "computed_s": 0.25}
{"type": "collective", "communicator": "tp0", "rank": 1, "sequence": 1, "operation": "all_reduce", "bytes": 8, "entered_s": 1724779238.5}
{"type": "message", "source": 0, "target": 1, "bytes": 64, "begin_s": 1, "end_s": 1.5e0, "resolution_s": 0.001, "path": "leaf"}
{"type": "snapshot", "rank": 1, "time_s": 1724779240}
)")});
  ASSERT_TRUE(read) << read.error().to_string();
  EXPECT_THAT(read->ranks(), ElementsAre(0, 1));
  ASSERT_EQ(read->operations.size(), 2u);
  EXPECT_EQ(read->operations[0].rank, 1) << "it entered first";
  EXPECT_EQ(read->operations[0].entered, 0_s);
  EXPECT_FALSE(read->operations[0].ended);
  EXPECT_EQ(read->operations[1].entered, 500_ms + 1_ns);
  EXPECT_EQ(read->operations[1].ended, 500_ms + 4_ns);
  EXPECT_EQ(read->operations[1].sent, 2);
  EXPECT_EQ(read->operations[1].computed, 250_ms);
  EXPECT_FALSE(read->operations[0].computed);
  EXPECT_EQ(read->messages[0].duration, 500_ms);
  EXPECT_EQ(read->messages[0].resolution, 1_ms);
  EXPECT_EQ(read->paths[0], "leaf");
  EXPECT_EQ(read->recorded_until.at(1), 1500_ms);
}

// A rank writes what it waits for, and later that it is over.
TEST(Telemetry, ACallThatWasOpenMayEndInALaterLine) {
  const std::string open =
      R"({"type": "communicator", "name": "dp", "ranks": [0, 1]}
{"type": "collective", "communicator": "dp", "rank": 0, "sequence": 1, "operation": "all_reduce", "bytes": 8, "entered_s": 1)";
  const auto read = parse_telemetry(
      open + "}" + open.substr(open.find('\n')) + R"(, "ended_s": 3, "computed_s": -1})",
      "run.0.jsonl");
  ASSERT_FALSE(read);
  EXPECT_THAT(read.error().to_string(), HasSubstr("computed_s"));
  const auto ended = parse_telemetry(
      open + "}" + open.substr(open.find('\n')) + R"(, "ended_s": 3})", "run.0.jsonl");
  ASSERT_TRUE(ended) << ended.error().to_string();
  ASSERT_EQ(ended->operations.size(), 1u);
  EXPECT_EQ(ended->operations[0].ended, 2_s);
}

TEST(Telemetry, EveryMistakeIsNamedWithItsLine) {
  const auto read =
      load_telemetry({written("wrong.jsonl",
                              R"({"type": "communicator", "name": "tp0", "ranks": [0, 1]}
{"type": "collectiv", "rank": 0}
{"type": "collective", "communicator": "tp1", "rank": 0, "sequence": 1, "operation": "all_reduce", "bytes": 8, "entered_s": 1}
{"type": "collective", "communicator": "tp0", "rank": 2, "sequence": 1, "operation": "all_reduce", "bytes": 8, "entered_s": 1}
{"type": "collective", "communicator": "tp0", "rank": 1, "sequence": 1, "operation": "all_reduce", "bytes": 0, "entered_s": 2, "ended_s": 1, "endde_s": 3}
{"type": "message", "source": 0, "target": 0, "bytes": 64, "begin_s": "soon", "end_s": 2}
not json
{"rank": 0}
)")});
  ASSERT_FALSE(read);
  EXPECT_THAT(
      read.error().to_string(),
      AllOf(HasSubstr("wrong.jsonl:2: type: found 'collectiv'"),
            HasSubstr("did you mean 'collective'"),
            HasSubstr("wrong.jsonl:3: communicator: found 'tp1'"),
            HasSubstr("wrong.jsonl:4: rank: found '2', expected a rank of the communicator"),
            HasSubstr("wrong.jsonl:5: bytes: found '0'"),
            HasSubstr("wrong.jsonl:5: ended_s: found '1'"), HasSubstr("did you mean 'ended_s'"),
            HasSubstr("wrong.jsonl:6: target"), HasSubstr("wrong.jsonl:6: begin_s: found 'soon'"),
            HasSubstr("wrong.jsonl:7"),
            HasSubstr("wrong.jsonl:8: type: missing; expected one of communicator,")));
}

TEST(Telemetry, AnEmptyFileIsNoHealthyJob) {
  const auto read = load_telemetry({written("empty.jsonl", "\n")});
  ASSERT_FALSE(read);
  EXPECT_THAT(read.error().to_string(), HasSubstr("empty: expected telemetry"));
}

/// A dump of rank `rank` of two, in which rank 1 has not called collective 2.
std::string dump(int rank) {
  const std::string end = rank == 0 ? R"(, {"record_id": 1, "process_group": ["0", "default_pg"],
      "collective_seq_id": 2, "p2p_seq_id": 0, "op_id": 2, "profiling_name": "nccl:all_reduce",
      "time_created_ns": 1724779240936775119, "input_sizes": [[3, 4]], "input_dtypes": ["Float"],
      "state": "started", "time_discovered_started_ns": null, "time_discovered_completed_ns": null,
      "retired": false, "is_p2p": false})"
                                    : "";
  return R"({"version": "2.5", "nccl_version": "2.21.5",
    "pg_config": {"0": {"name": "0", "desc": "default_pg", "ranks": "[0, 1]"}},
    "pg_status": {"0": {"last_enqueued_collective": 2}},
    "entries": [{"record_id": 0, "process_group": ["0", "default_pg"], "collective_seq_id": 1,
      "p2p_seq_id": 0, "op_id": 1, "profiling_name": "nccl:all_reduce",
      "time_created_ns": 1724779239936775119, "input_sizes": [[3, 4]], "input_dtypes": ["Float"],
      "state": "completed", "time_discovered_started_ns": null,
      "time_discovered_completed_ns": 1724779239975811724, "retired": true, "is_p2p": false})" +
         end + "]}";
}

TEST(FlightRecorder, DumpsOfAHangNameTheMissingRank) {
  const auto read = load_telemetry(
      {written("nccl_trace_rank_0.json", dump(0)), written("nccl_trace_rank_1.json", dump(1))});
  ASSERT_TRUE(read) << read.error().to_string();
  EXPECT_EQ(read->communicators[0].name, "default_pg (0)");
  ASSERT_EQ(read->operations.size(), 3u);
  EXPECT_EQ(read->operations[0].kind, "all_reduce");
  EXPECT_EQ(read->operations[0].bytes, Bytes(48));
  EXPECT_EQ(*read->operations[0].ended - read->operations[0].entered, 39036605_ns);
  const Diagnosis found = diagnose(*read, {});
  ASSERT_EQ(found.findings.size(), 1u);
  EXPECT_EQ(found.findings[0].syndrome, Syndrome::missing_rank);
  EXPECT_THAT(found.findings[0].ranks, ElementsAre(1));
}

/// An entry of a dump of PyTorch 2.5 and later, of the group of ranks 4 to 7.
std::string entry(int record, const std::string& name, const std::string& state, bool message) {
  return R"({"record_id": )" + std::to_string(record) +
         R"(, "process_group": ["0", "pp"], "collective_seq_id": 1, "p2p_seq_id": 1,
      "op_id": 1, "profiling_name": "nccl:)" +
         name +
         R"(", "time_created_ns": 1724779239936775119, "input_sizes": [[3, 4]],
      "input_dtypes": ["Float"], "output_sizes": [[3, 4]], "output_dtypes": ["Float"],
      "state": ")" +
         state + R"(", "time_discovered_started_ns": null,
      "time_discovered_completed_ns": null, "retired": false, "is_p2p": )" +
         (message ? "true" : "false") + "}";
}

/// Diagnoses the entries, by rank from 4 on.
Diagnosis diagnosed(const std::vector<std::vector<std::string>>& entries) {
  std::vector<std::string> files;
  for (std::size_t r = 0; r < entries.size(); ++r) {
    std::string text =
        R"({"pg_config": {"0": {"desc": "pp", "ranks": "[4, 5, 6, 7]"}}, "entries": [)";
    for (std::size_t e = 0; e < entries[r].size(); ++e) {
      text += (e > 0 ? ", " : "") + entries[r][e];
    }
    files.push_back(written("trace_" + std::to_string(r + 4), text + "]}"));
  }
  const auto read = load_telemetry(files);
  EXPECT_TRUE(read) << read.error().to_string();
  return diagnose(*read, {});
}

std::string done(int record, const std::string& name) {
  return entry(record, name, "completed", true);
}
std::string open(int record, const std::string& name) {
  return entry(record, name, "started", true);
}

TEST(FlightRecorder, ASendWithoutItsReceiveIsMissingAtTheReceiver) {
  // Rank 4 (place 0 of the group) sends twice to rank 5, which has received once. Ranks 6 and 7
  // have done with each other.
  const Diagnosis found = diagnosed({{done(0, "send 0->1"), open(1, "send 0->1")},
                                     {done(0, "recv 1<-0")},
                                     {done(0, "send 2->3")},
                                     {done(0, "recv 3<-2")}});
  ASSERT_EQ(found.findings.size(), 1u);
  EXPECT_EQ(found.findings[0].syndrome, Syndrome::missing_rank);
  EXPECT_THAT(found.findings[0].ranks, ElementsAre(5));
  EXPECT_THAT(found.findings[0].because, HasSubstr("a send to rank 5, number 2"));
  EXPECT_TRUE(found.skipped.empty());
}

TEST(FlightRecorder, AReceiveWithoutItsSendIsMissingAtTheSender) {
  // Rank 5 waits for rank 4, which waits for rank 6, which has sent nothing.
  const Diagnosis found = diagnosed({{open(0, "recv 0<-2")},
                                     {open(0, "recv 1<-0")},
                                     {done(0, "send 2->3")},
                                     {done(0, "recv 3<-2")}});
  ASSERT_EQ(found.findings.size(), 1u);
  EXPECT_THAT(found.findings[0].ranks, ElementsAre(6));
  EXPECT_THAT(found.findings[0].because, HasSubstr("which has no send there"));
}

TEST(FlightRecorder, EntriesThatAreGoneDoNotShiftWhatMatches) {
  // The recorder of rank 4 has dropped its first entries: its open send matches the open receive.
  const Diagnosis both =
      diagnosed({{done(90, "send 0->1"), open(91, "send 0->1")},
                 {done(0, "recv 1<-0"), done(1, "recv 1<-0"), open(2, "recv 1<-0")},
                 {done(0, "recv 2<-3")},
                 {done(0, "send 3->2")}});
  EXPECT_TRUE(both.findings.empty());
  EXPECT_EQ(both.undecided.size(), 1u);
  const Diagnosis one = diagnosed({{done(90, "send 0->1"), open(91, "send 0->1")},
                                   {done(0, "recv 1<-0"), done(1, "recv 1<-0")},
                                   {done(0, "recv 2<-3")},
                                   {done(0, "send 3->2")}});
  ASSERT_EQ(one.findings.size(), 1u);
  EXPECT_THAT(one.findings[0].ranks, ElementsAre(5));
}

TEST(FlightRecorder, EndsOfAMessageOfOtherSizesAreAMismatch) {
  std::string larger = done(0, "recv 1<-0");
  larger.replace(larger.find("[[3, 4]]"), 8, "[[6, 4]]");
  const Diagnosis found =
      diagnosed({{done(0, "send 0->1")}, {larger}, {done(0, "recv 2<-3")}, {done(0, "send 3->2")}});
  ASSERT_EQ(found.findings.size(), 1u);
  EXPECT_EQ(found.findings[0].syndrome, Syndrome::mismatch);
}

TEST(FlightRecorder, WhoHasOnlyScheduledWhatOthersRunIsNamed) {
  const auto call = [](const std::string& state) {
    return std::vector{entry(0, "all_reduce", state, false)};
  };
  const Diagnosis found =
      diagnosed({call("started"), call("started"), call("scheduled"), call("started")});
  ASSERT_EQ(found.findings.size(), 1u);
  EXPECT_EQ(found.findings[0].syndrome, Syndrome::missing_rank);
  EXPECT_THAT(found.findings[0].ranks, ElementsAre(6));
  // All scheduled: nobody differs.
  const std::vector<std::string> waits = call("scheduled");
  EXPECT_TRUE(diagnosed({waits, waits, waits, waits}).findings.empty());
}

TEST(FlightRecorder, WhatIsNotLookedAtStandsInTheVerdict) {
  const Diagnosis found = diagnosed(
      {{entry(0, "coalesced", "completed", true)}, {entry(0, "coalesced", "completed", true)}});
  EXPECT_TRUE(found.findings.empty());
  ASSERT_EQ(found.skipped.size(), 2u);
  EXPECT_THAT(found.skipped[0], HasSubstr("ranks 4, 5, 6, 7"));
  EXPECT_THAT(found.skipped[1], HasSubstr("2 entries 'coalesced'"));
}

TEST(FlightRecorder, ADumpNeedsItsRankAndItsFields) {
  const auto nameless = load_telemetry({written("dump.json", dump(0))});
  ASSERT_FALSE(nameless);
  EXPECT_THAT(nameless.error().to_string(), HasSubstr("needs its rank at the end of its name"));
  const auto wrong = load_telemetry({written("trace_7", R"({"pg_config": {"0": {"ranks": "none"}},
    "entries": [{"process_group": ["9"], "time_created_ns": "then"}]})")});
  ASSERT_FALSE(wrong);
  EXPECT_THAT(wrong.error().to_string(),
              AllOf(HasSubstr("pg_config.0.ranks"), HasSubstr("profiling_name"),
                    HasSubstr("time_created_ns: found 'then'")));
}

// pickle.dumps({"a": [1, -2, 70000, None, True], "b": ("x", 2.5), "c": 5_000_000_000}, 2 and 4)
const std::string kProtocol2(
    "\x80\x02}q\x00(X\x01\x00\x00\x00"
    "aq\x01]q\x02(K\x01J\xfe\xff\xff\xffJp\x11\x01\x00N\x88"
    "eX\x01\x00\x00\x00"
    "bq\x03X\x01\x00\x00\x00xq\x04G@\x04\x00\x00\x00\x00\x00\x00\x86q\x05X\x01\x00\x00\x00"
    "cq\x06\x8a\x05\x00\xf2\x05*\x01u.",
    78);
const std::string kProtocol4(
    "\x80\x04\x95"
    "9\x00\x00\x00\x00\x00\x00\x00}\x94(\x8c\x01"
    "a\x94]\x94(K\x01J\xfe\xff\xff\xffJp\x11\x01\x00N\x88"
    "e\x8c\x01"
    "b\x94\x8c\x01x\x94G@\x04\x00\x00\x00\x00\x00\x00\x86\x94\x8c\x01"
    "c\x94\x8a\x05\x00\xf2\x05*\x01u.",
    68);

TEST(Pickle, IsReadAsTheSameDocumentInJson) {
  for (const std::string& bytes : {kProtocol2, kProtocol4}) {
    const auto read = parse_pickle(bytes, "p");
    ASSERT_TRUE(read) << read.error().to_string();
    ASSERT_EQ(read->fields.size(), 3u);
    const ConfigNode& list = read->fields[0].value;
    ASSERT_EQ(list.items.size(), 5u);
    EXPECT_EQ(list.items[1].text, "-2");
    EXPECT_EQ(list.items[2].text, "70000");
    EXPECT_EQ(list.items[3].kind, ConfigNode::Kind::null);
    EXPECT_EQ(list.items[4].text, "true");
    EXPECT_EQ(read->fields[1].value.items[0].text, "x");
    EXPECT_EQ(read->fields[1].value.items[1].text, "2.5");
    EXPECT_EQ(read->fields[2].value.text, "5000000000");
  }
}

TEST(Pickle, WhatWouldRunCodeIsRefused) {
  // pickle.dumps(os.system, 2): GLOBAL 'posix system'
  const auto read = parse_pickle(
      "\x80\x02"
      "cposix\nsystem\nq\x01.",
      "p");
  ASSERT_FALSE(read);
  EXPECT_THAT(read.error().to_string(),
              HasSubstr("opcode 0x63 at byte 2: only plain data are read"));
}

TEST(Pickle, EveryTruncatedFileIsRefused) {
  for (std::size_t size = 0; size < kProtocol2.size(); ++size) {
    EXPECT_FALSE(parse_pickle(kProtocol2.substr(0, size), "p")) << size;
  }
}

TEST(Pickle, ListsThatHoldThemselvesAreRefused) {
  EXPECT_FALSE(parse_pickle(std::string("\x80\x02]q\x00h\x00"
                                        "a.",
                                        8),
                            "p"));            // l.append(l)
  std::string doubling("\x80\x02]q\x00", 5);  // 2^60 values
  for (char level = 1; level < 60; ++level) {
    const char before = static_cast<char>(level - 1);
    doubling += std::string("]q") + level + "(h" + before + "h" + before + "e";
  }
  EXPECT_FALSE(parse_pickle(doubling + ".", "p"));
}

}  // namespace
}  // namespace orrery::diagnose
