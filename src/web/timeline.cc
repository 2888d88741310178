// SPDX-License-Identifier: Apache-2.0
#include "web/timeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "base/format.h"

namespace orrery::web {
namespace {

constexpr std::int64_t kPicosecondsPerNanosecond = 1000;
constexpr std::uint64_t kFnvPrime = 0x100000001B3;  // Fowler, Noll, Vo: FNV-1a of 64 bits
constexpr std::uint64_t kFnvBasis = 0xCBF29CE484222325;

struct DrawnSpan {
  std::int64_t begin = 0;  ///< picoseconds
  std::int64_t end = 0;
  std::int64_t longest = 0;  ///< of those put together
  std::size_t name = 0;
  std::size_t category = 0;
  std::int64_t count = 1;
};

struct Lane {
  std::int64_t rank = 0;
  std::size_t like = 1;
  graph::StreamIndex stream = graph::kComputeStream;
  std::vector<DrawnSpan> spans;  ///< by begin
  std::size_t of = 0;
};

/// Numbers names in the order in which they come.
class Numbers {
 public:
  std::size_t of(const std::string& name) {
    const auto [place, is_new] = numbers_.emplace(name, names_.size());
    if (is_new) {
      names_.push_back(name);
    }
    return place->second;
  }
  const std::vector<std::string>& names() const { return names_; }

 private:
  std::map<std::string, std::size_t> numbers_;
  std::vector<std::string> names_;
};

class TimelineWriter {
 public:
  TimelineWriter(const study::WorkloadRun& run, const TimelineLimits& limits)
      : run_(run), limits_(limits) {
    for (const graph::Phase& phase : run.workload.phases) {
      categories_.of(phase.name);
    }
  }

  void write(report::JsonWriter& json) {
    choose_ranks();
    collect();
    thin_out();
    json.begin_object();
    json.key("end").value(end_ / kPicosecondsPerNanosecond + 1);
    json.key("lanes").objects(lanes_, [&](const Lane& lane) {
      json.key("rank").value(lane.rank).key("like").value(lane.like);
      json.key("stream").value(run_.workload.streams[*lane.stream].name);
      json.key("of").value(lane.of);
    });
    write_names(json, "categories", categories_);
    write_names(json, "names", names_);
    write_spans(json);
    json.key("note").value(note());
    json.end_object();
  }

 private:
  /// Returns a sum over all that a rank does when.
  std::map<std::int64_t, std::uint64_t> sums() const {
    std::map<std::int64_t, std::uint64_t> sums;
    for (const simulate::Span& span : run_.timeline.spans) {
      std::uint64_t& sum = sums.try_emplace(span.rank, kFnvBasis).first->second;
      for (const std::int64_t part :
           {span.begin.value(), span.end.value(), static_cast<std::int64_t>(*span.stream),
            static_cast<std::int64_t>(span.node), static_cast<std::int64_t>(span.template_index)}) {
        sum = (sum ^ static_cast<std::uint64_t>(part)) * kFnvPrime;
      }
    }
    return sums;
  }

  void choose_ranks() {
    std::map<std::uint64_t, std::int64_t> first_of;  // the first rank with a sum
    std::vector<std::int64_t> firsts;
    for (const auto& [rank, sum] : sums()) {
      const auto [place, is_new] = first_of.emplace(sum, rank);
      if (is_new) {
        firsts.push_back(rank);
      }
      ++like_[place->second];
      critical_ = rank == run_.timeline.critical_rank ? place->second : critical_;
    }
    classes_ = firsts.size();
    for (std::size_t i = 0; i < firsts.size(); ++i) {
      const std::size_t every = (firsts.size() + limits_.ranks - 1) / limits_.ranks;
      const bool shown = i % every == 0;
      if (shown || firsts[i] == critical_) {
        shown_.emplace(firsts[i], std::map<std::size_t, Lane>{});
      }
    }
  }

  const graph::Node& node_of(const simulate::Span& span) const {
    const simulate::Span& own =
        span.kind == graph::Node::Kind::receive ? run_.timeline.spans[span.cause] : span;
    const graph::Role& role = run_.workload.role(run_.workload.role_of(own.rank));
    return run_.workload.programs[role.program]
        .templates[static_cast<std::size_t>(own.template_index)]
        .nodes[static_cast<std::size_t>(own.node)];
  }

  void collect() {
    for (const simulate::Span& span : run_.timeline.spans) {
      const auto rank = shown_.find(span.rank);
      if (rank == shown_.end()) {
        continue;
      }
      Lane& lane = rank->second[*span.stream];
      lane.rank = span.rank;
      lane.stream = span.stream;
      const bool computes = span.kind == graph::Node::Kind::compute;
      const std::int64_t end =
          std::min(span.end, std::max(run_.timeline.run_time, span.begin)).value();
      lane.spans.push_back(
          {.begin = span.begin.value(),
           .end = end,
           .longest = end - span.begin.value(),
           .name = names_.of(node_of(span).name),
           .category = categories_.of(computes ? run_.workload.phases[*span.phase].name
                                               : run_.workload.group(span.group).name)});
      end_ = std::max(end_, end);
    }
    for (auto& [rank, streams] : shown_) {
      for (auto& [stream, lane] : streams) {
        std::ranges::stable_sort(lane.spans, {}, &DrawnSpan::begin);
        lane.like = like_[rank];
        lane.of = lane.spans.size();
        total_ += lane.of;
        lanes_.push_back(std::move(lane));
      }
    }
  }

  void thin_out() {
    if (total_ <= limits_.spans || lanes_.empty()) {
      return;
    }
    const auto parts =
        static_cast<std::int64_t>(std::max<std::size_t>(1, limits_.spans / lanes_.size()));
    const std::int64_t part = std::max<std::int64_t>(1, end_ / parts + 1);
    for (Lane& lane : lanes_) {
      std::vector<DrawnSpan> fewer;
      std::int64_t last = -1;
      for (const DrawnSpan& span : lane.spans) {
        if (span.begin / part != last) {
          fewer.push_back(span);
          last = span.begin / part;
          continue;
        }
        DrawnSpan& into = fewer.back();
        into.end = std::max(into.end, span.end);
        ++into.count;
        if (span.longest > into.longest) {
          std::tie(into.longest, into.name, into.category) =
              std::tie(span.longest, span.name, span.category);
        }
      }
      lane.spans = std::move(fewer);
    }
    coarse_ = part;
  }

  static void write_names(report::JsonWriter& json, std::string_view key, const Numbers& numbers) {
    json.key(key).values(numbers.names());
  }

  void write_spans(report::JsonWriter& json) const {
    json.key("spans").begin_array();
    for (std::size_t lane = 0; lane < lanes_.size(); ++lane) {
      for (const DrawnSpan& span : lanes_[lane].spans) {
        const std::int64_t begin = span.begin / kPicosecondsPerNanosecond;
        json.begin_array();
        json.value(lane).value(begin).value(span.end / kPicosecondsPerNanosecond - begin);
        json.value(span.name).value(span.category).value(span.count);
        json.end_array();
      }
    }
    json.end_array();
  }

  std::string note() const {
    std::string text = fmt::format(
        "{} of {} ranks are simulated, in {} {} of ranks that do the "
        "same at the same times.",
        run_.timeline.fold.simulated, run_.timeline.fold.ranks, classes_,
        classes_ == 1 ? "class" : "classes");
    if (shown_.size() < classes_) {
      text += fmt::format(" {} of the classes are shown.", shown_.size());
    }
    if (coarse_ > 0) {
      text += fmt::format(
          " {} spans are put together where they begin within the same {} of a lane; --trace has "
          "each of them.",
          total_, to_string(Time(coarse_)));
    }
    return text;
  }

  const study::WorkloadRun& run_;
  TimelineLimits limits_;
  Numbers categories_;
  Numbers names_;
  std::map<std::int64_t, std::size_t> like_;  ///< ranks of a class, by its first
  std::map<std::int64_t, std::map<std::size_t, Lane>> shown_;
  std::vector<Lane> lanes_;
  std::size_t classes_ = 0;
  std::size_t total_ = 0;
  std::int64_t critical_ = -1;
  std::int64_t end_ = 0;
  std::int64_t coarse_ = 0;
};

}  // namespace

void write_timeline(const study::WorkloadRun& run, report::JsonWriter& json,
                    const TimelineLimits& limits) {
  TimelineWriter(run, limits).write(json);
}

}  // namespace orrery::web
