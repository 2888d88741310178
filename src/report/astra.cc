// SPDX-License-Identifier: Apache-2.0
#include "report/astra.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <numeric>

#include "report/json_writer.h"

namespace orrery::report {
namespace {

using astra::RunResult;

struct Extremes {
  RunResult::Class first;  ///< of least finish
  RunResult::Class last;   ///< of greatest finish; the lowest rank of those
  Time exposed{0};         ///< greatest
};

Extremes extremes(const RunResult& result) {
  Extremes found;
  if (result.classes.empty()) {
    return found;
  }
  found = {result.classes.front(), result.classes.front(), result.classes.front().exposed};
  for (const RunResult::Class& one : result.classes) {
    if (one.finish < found.first.finish) {
      found.first = one;
    }
    if (one.finish > found.last.finish) {
      found.last = one;
    }
    found.exposed = std::max(found.exposed, one.exposed);
  }
  return found;
}

/// Returns the part of a class' lines that all its ranks share.
std::vector<std::string> line_ends(const RunResult& result) {
  std::vector<std::string> ends;
  ends.reserve(result.classes.size());
  for (const RunResult::Class& one : result.classes) {
    ends.push_back(fmt::format("] finished, {} cycles, exposed communication {} cycles.\n",
                               cycles(one.finish), cycles(one.exposed)));
  }
  return ends;
}

void write_statistics(JsonWriter& json, const astra::Statistics& found,
                      const std::vector<Bytes>& sent) {
  json.key("statistics").begin_object();
  json.key("sent_bytes").values(sent, [&](const Bytes bytes) { return bytes.value(); });
  json.key("wall_cycles").value(cycles(found.wall));
  json.key("cpu_cycles").value(cycles(found.cpu));
  json.key("gpu_cycles").value(cycles(found.gpu));
  json.key("communication_cycles").value(cycles(found.communication));
  json.key("remote_memory_cycles").value(cycles(found.remote_memory));
  json.key("overlap_cycles").value(cycles(found.overlap));
  if (found.roofline) {
    json.key("compute_bound").value(found.roofline->compute_bound);
    json.key("compute_utilisation").value(found.roofline->compute_utilisation);
    json.key("memory_utilisation").value(found.roofline->memory_utilisation);
    json.key("operations_per_byte").value(found.roofline->intensity);
  }
  json.end_object();
}

/// Returns the sentences of statistics_lines on a class, without the rank.
std::vector<std::string> sentences(const astra::Statistics& found, const std::vector<Bytes>& sent) {
  std::vector<std::string> all{fmt::format("Wall time: {}", cycles(found.wall))};
  for (const auto& [name, time] : {std::pair{"CPU time", found.cpu},
                                   {"GPU time", found.gpu},
                                   {"Comm time", found.communication},
                                   {"Remote mem time", found.remote_memory},
                                   {"Total compute-communication overlap", found.overlap}}) {
    if (time > Time(0)) {
      all.push_back(fmt::format("{}: {}", name, cycles(time)));
    }
  }
  if (found.roofline) {
    const auto& [bound, compute, memory, intensity] = *found.roofline;
    all.push_back(fmt::format("Compute bound percentage: {:.3f}%", bound * 100));
    all.push_back(fmt::format("Average compute utilization: {:.3f}%", compute * 100));
    all.push_back(fmt::format("Average memory utilization: {:.3f}%", memory * 100));
    all.push_back(fmt::format("Average operation intensity: {:.3f}", intensity));
  }
  for (std::size_t d = 0; d < sent.size(); ++d) {
    all.push_back(fmt::format("Bytes sent into dimension {}: {}", d, sent[d].value()));
  }
  return all;
}

/// Ranks by finish time; a stable counting of classes, as a million ranks have few.
std::vector<std::uint32_t> finishing_order(const RunResult& result) {
  const auto finish = [&](std::uint32_t one) { return result.classes[one].finish; };
  std::vector<std::uint32_t> ranks(result.class_of.size());
  std::iota(ranks.begin(), ranks.end(), 0U);
  const bool in_order = std::adjacent_find(result.class_of.begin(), result.class_of.end(),
                                           [&](std::uint32_t a, std::uint32_t b) {
                                             return finish(a) > finish(b);
                                           }) == result.class_of.end();
  if (!in_order) {
    std::stable_sort(ranks.begin(), ranks.end(), [&](std::uint32_t a, std::uint32_t b) {
      return finish(result.class_of[a]) < finish(result.class_of[b]);
    });
  }
  return ranks;
}

}  // namespace

std::string astra_lines(const RunResult& result) {
  constexpr std::size_t kUsualLine = 96;
  const std::vector<std::string> ends = line_ends(result);
  std::string text;
  text.reserve(result.class_of.size() * kUsualLine);
  for (const std::uint32_t rank : finishing_order(result)) {
    text += "[workload] [info] sys[";
    text += fmt::format_int(rank).c_str();
    text += ends[result.class_of[rank]];
  }
  return text;
}

std::string statistics_lines(std::span<const astra::Statistics> statistics,
                             const RunResult& result) {
  std::vector<std::vector<std::string>> of_class;
  of_class.reserve(statistics.size());
  for (std::size_t i = 0; i < statistics.size(); ++i) {
    of_class.push_back(sentences(statistics[i], result.sent[i]));
  }
  std::string text;
  for (const std::uint32_t rank : finishing_order(result)) {
    for (const std::string& sentence : of_class[result.class_of[rank]]) {
      text += fmt::format("[statistics] [info] sys[{}], {}\n", rank, sentence);
    }
  }
  for (const RunResult::Link& link : result.links) {
    text += fmt::format("[statistics] [info] link {} -> {}, {} bytes\n", link.from, link.to,
                        link.carried.value());
  }
  return text;
}

namespace {

void write_rank(JsonWriter& json, const AstraReport& report, std::size_t rank) {
  const RunResult& result = report.result;
  const std::uint32_t number = result.class_of[rank];
  const RunResult::Class& one = result.classes[number];
  json.begin_object().key("rank").value(rank);
  json.key("cycles").value(cycles(one.finish));
  json.key("exposed_cycles").value(cycles(one.exposed));
  if (!report.memory.empty()) {
    json.key("peak_memory_bytes").value(report.memory[number].footprint.peak.value());
  }
  if (!report.statistics.empty()) {
    write_statistics(json, report.statistics[number], result.sent[number]);
  }
  json.end_object();
}

void write_links(JsonWriter& json, const std::vector<RunResult::Link>& links) {
  if (links.empty()) {
    return;
  }
  json.key("links").objects(links, [&](const RunResult::Link& link) {
    json.key("from").value(link.from).key("to").value(link.to);
    json.key("bytes").value(link.carried.value());
  });
}

}  // namespace

std::string astra_json(const AstraReport& report) {
  const RunResult& result = report.result;
  const Extremes found = extremes(result);
  std::string text;  // compact: a million ranks have many lines
  {
    JsonWriter json([&](std::string_view piece) { text += piece; });
    json.begin_object().key("ranks").begin_array();
    for (std::size_t rank = 0; rank < result.class_of.size(); ++rank) {
      write_rank(json, report, rank);
    }
    json.end_array();
    write_links(json, result.links);
    json.key("npus").value(result.class_of.size());
    json.key("cycles").value(cycles(found.last.finish));
    json.key("cycles_min").value(cycles(found.first.finish));
    json.key("exposed_cycles").value(cycles(found.exposed));
    json.key("backend").value(name_of(report.options.backend));
    json.key("quirks").begin_object();
    for (const auto& quirk : kNames<astra::Quirk>) {
      json.key(quirk.name).value(report.options.quirks[quirk.value]);
    }
    json.end_object();
    json.key("classes").value(result.classes.size());
    json.key("unfolded").values(result.unfolded);
    json.key("events").value(result.events);
    json.key("messages").value(result.messages);
    json.key("traces").begin_object();
    json.key("programs").value(report.traces.programs);
    json.key("nodes").value(report.traces.nodes);
    json.key("stored_nodes").value(report.traces.stored_nodes);
    json.key("bytes").value(report.traces.memory.value());
    json.key("bytes_per_node").value(chakra::bytes_per_node(report.traces)).end_object();
    json.key("warnings").values(report.warnings).end_object();
  }
  return text + "\n";
}

std::string astra_summary(const RunResult& result) {
  const Extremes found = extremes(result);
  std::string text = fmt::format(
      "{} ranks finished: {} cycles (1 cycle = 1 ns)", result.class_of.size(),
      found.first.finish == found.last.finish
          ? fmt::format("{}", cycles(found.last.finish))
          : fmt::format("{} to {}", cycles(found.first.finish), cycles(found.last.finish)));
  if (found.first.finish != found.last.finish) {
    text += fmt::format(", rank {} last", found.last.rank);
  }
  text += fmt::format("; {} {} of ranks and {} messages simulated\n", result.classes.size(),
                      result.classes.size() == 1 ? "class" : "classes", result.messages);
  for (const std::string& reason : result.unfolded) {
    text += "not folded: " + reason + "\n";
  }
  return text;
}

}  // namespace orrery::report
