// SPDX-License-Identifier: Apache-2.0
#include "report/trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <tuple>
#include <utility>
#include <vector>

#include "machine/compute/compute_model.h"
#include "machine/device_groups.h"
#include "study/memory_over_time.h"

namespace orrery::report {
namespace {

constexpr int kLanesPerStream = 1000;         // thread numbers: stream * this + lane
constexpr std::size_t kProgressEvery = 4096;  // spans
constexpr std::int64_t kPicosecondsPerMicrosecond = 1'000'000;

constexpr std::int64_t kPicosecondsPerNanosecond = 1'000;

std::string microseconds(Time time) {
  return fmt::format("{}.{:06}", time.value() / kPicosecondsPerMicrosecond,
                     time.value() % kPicosecondsPerMicrosecond);
}

/// First and last layer of a node, of the model's numbers.
struct LayerRange {
  std::int64_t first = INT64_MAX;
  std::int64_t last = -1;

  LayerRange(const graph::Role& role, const graph::Node& node) {
    add(role, node.layer);
    for (const graph::Operator& op : node.operators) {
      add(role, op.layer);
    }
  }
  bool any() const { return last >= 0; }
  bool one() const { return first == last; }

 private:
  void add(const graph::Role& role, int layer) {
    if (layer >= 0) {
      const std::int64_t number = role.layers[static_cast<std::size_t>(layer)];
      first = std::min(first, number);
      last = std::max(last, number);
    }
  }
};

/// A span cut into parts that every viewer nests: they begin and end at whole nanoseconds, to which
/// viewers cut the span's own begin and duration.
class SpanParts {
 public:
  SpanParts(const simulate::Span& span, Time whole)
      : begin_(up(span.begin)),
        end_(down(span.begin) + down(span.end - span.begin)),
        length_(span.end - span.begin),
        scale_(static_cast<double>(length_.value()) / static_cast<double>(whole.value())) {}

  /// Returns where `done` of the whole is done.
  Time at(Time done) const {
    const Time offset = Time::from_double(static_cast<double>(done.value()) * scale_);
    return std::min(begin_ + down(offset), std::max(begin_, end_));
  }

 private:
  static Time down(Time time) { return time - Time(time.value() % kPicosecondsPerNanosecond); }
  static Time up(Time time) { return down(time + Time(kPicosecondsPerNanosecond - 1)); }

  Time begin_;
  Time end_;
  Time length_;
  double scale_;
};

class TraceWriter {
 public:
  TraceWriter(const study::WorkloadRun& run, JsonWriter& json,
              const std::function<void(double)>& progress)
      : run_(run), json_(json), progress_(progress) {}

  void write() {
    json_.begin_object();
    json_.key("displayTimeUnit").value("ns");
    json_.key("otherData").begin_object();
    json_.key("name").value(run_.name);
    json_.key("machine").value(run_.machine.name);
    json_.key("devices").value(run_.devices);
    json_.key("step_time_ps").value(run_.timeline.step_time.value());
    json_.key("critical_rank").value(run_.timeline.critical_rank);
    json_.end_object();
    json_.key("traceEvents").begin_array();
    for (const std::int64_t rank : run_.timeline.ranks) {
      name_process(rank);
    }
    write_spans();
    const study::MemoryOverTime memory(run_.workload, run_.timeline);
    for (const std::int64_t rank : run_.timeline.ranks) {
      write_memory(rank, memory.of(rank));
    }
    json_.end_array();
    json_.end_object();
  }

 private:
  void name_process(std::int64_t rank) {
    metadata("process_name", rank, 0);
    json_.key("name").value(
        fmt::format("rank {} ({})", rank, run_.workload.role(run_.workload.role_of(rank)).name));
    json_.end_object().end_object();
    metadata("process_sort_index", rank, 0);
    json_.key("sort_index").value(rank);
    json_.end_object().end_object();
  }

  /// Begins a metadata event up to inside its args.
  void metadata(std::string_view what, std::int64_t rank, int thread) {
    json_.begin_object();
    json_.key("name").value(what);
    json_.key("ph").value("M");
    json_.key("pid").value(rank);
    json_.key("tid").value(thread);
    json_.key("args").begin_object();
  }

  /// Writes spans by rank, stream and begin, each into its stream's first free lane.
  void write_spans() {
    const std::vector<simulate::Span>& spans = run_.timeline.spans;
    std::vector<std::uint32_t> order(spans.size());
    std::iota(order.begin(), order.end(), 0U);
    const auto place = [&](std::uint32_t i) {
      return std::tuple(spans[i].rank, spans[i].stream, spans[i].begin, spans[i].end, i);
    };
    std::sort(order.begin(), order.end(),
              [&](std::uint32_t a, std::uint32_t b) { return place(a) < place(b); });
    std::vector<Time> lanes;  // when each lane of the stream becomes free
    const simulate::Span* previous = nullptr;
    std::size_t written = 0;
    for (const std::uint32_t i : order) {
      const simulate::Span& span = spans[i];
      if (previous == nullptr || previous->rank != span.rank || previous->stream != span.stream) {
        lanes.clear();
      }
      previous = &span;
      const int thread = choose_lane(lanes, span);
      write_span(span, thread);
      write_kernels(span, thread);
      write_arrow(i, thread);
      if (++written % kProgressEvery == 0 && progress_) {
        progress_(static_cast<double>(written) / static_cast<double>(spans.size()));
      }
    }
  }

  int choose_lane(std::vector<Time>& lanes, const simulate::Span& span) {
    const auto free =
        std::find_if(lanes.begin(), lanes.end(), [&](Time end) { return end <= span.begin; });
    const auto lane = static_cast<int>(free - lanes.begin());
    if (free == lanes.end()) {
      lanes.push_back(span.end);
      name_thread(span, lane);
    } else {
      *free = span.end;
    }
    return thread_of(span.stream, lane);
  }

  static int thread_of(graph::StreamIndex stream, int lane) {
    return static_cast<int>(*stream) * kLanesPerStream + lane;
  }

  void name_thread(const simulate::Span& span, int lane) {
    const int thread = thread_of(span.stream, lane);
    metadata("thread_name", span.rank, thread);
    const std::string& name = run_.workload.streams[*span.stream].name;
    json_.key("name").value(lane == 0 ? name : fmt::format("{} {}", name, lane + 1));
    json_.end_object().end_object();
    metadata("thread_sort_index", span.rank, thread);
    json_.key("sort_index").value(thread);
    json_.end_object().end_object();
  }

  /// Returns the span whose program says what it is: a receive is the sender's message seen from
  /// the receiver.
  const simulate::Span& own_span(const simulate::Span& span) const {
    return span.kind == graph::Node::Kind::receive ? run_.timeline.spans[span.cause] : span;
  }

  const graph::Role& role_of(const simulate::Span& span) const {
    return run_.workload.role(run_.workload.role_of(span.rank));
  }

  const graph::Node& node_of(const simulate::Span& span) const {
    const simulate::Span& own = own_span(span);
    return run_.workload.programs[role_of(own).program]
        .templates[static_cast<std::size_t>(own.template_index)]
        .nodes[static_cast<std::size_t>(own.node)];
  }

  std::string name_of_span(const simulate::Span& span) const {
    const std::string& name = node_of(span).name;
    return span.kind == graph::Node::Kind::receive
               ? fmt::format("{} from rank {}", name, own_span(span).rank)
               : name;
  }

  /// Begins an event up to its time.
  void begin_event(std::string_view name, std::string_view category, const char* kind,
                   std::int64_t rank, int thread, Time at) {
    json_.begin_object();
    json_.key("name").value(name);
    json_.key("cat").value(category);
    json_.key("ph").value(kind);
    json_.key("pid").value(rank);
    json_.key("tid").value(thread);
    json_.key("ts").number_text(microseconds(at));
  }

  void write_span(const simulate::Span& span, int thread) {
    const bool computes = span.kind == graph::Node::Kind::compute;
    const std::string& phase = run_.workload.phases[*span.phase].name;
    begin_event(name_of_span(span), computes ? phase : run_.workload.group(span.group).name, "X",
                span.rank, thread, span.begin);
    json_.key("dur").number_text(microseconds(span.end - span.begin));
    json_.key("args").begin_object();
    json_.key("stream").value(run_.workload.streams[*span.stream].name);
    json_.key("phase").value(phase);
    if (!computes) {
      json_.key("group").value(run_.workload.group(span.group).name);
      if (node_of(span).bytes > Bytes(0)) {
        json_.key("bytes").value(node_of(span).bytes.value());
      }
    }
    if (const LayerRange layers(role_of(own_span(span)), node_of(span)); layers.one()) {
      json_.key("layer").value(layers.first);
    } else if (layers.any()) {
      json_.key("layers").value(fmt::format("{}-{}", layers.first, layers.last));
    }
    json_.key("microbatch").value(span.microbatch);
    if (run_.timeline.step_ends.size() > 1) {
      json_.key("step").value(span.step);
    }
    json_.key("chunk").value(span.chunk);
    json_.key("begin_ps").value(span.begin.value());
    json_.key("end_ps").value(span.end.value());
    json_.key("host_stall_ps").value(span.host_stall.value());
    json_.end_object().end_object();
  }

  /// The operators of a node that has several, as slices within its span.
  void write_kernels(const simulate::Span& span, int thread) {
    const std::vector<graph::Operator>& operators = node_of(span).operators;
    if (span.kind != graph::Node::Kind::compute || operators.size() < 2) {
      return;
    }
    std::vector<Time> ends;
    ends.reserve(operators.size());
    Time done{0};
    const machine::Machine& machine = run_.machine;
    const compute::Device& device =
        machine.parts.empty() ? machine.device
                              : machine.parts[machine::device_group_of(machine, span.rank)].device;
    for (const graph::Operator& op : operators) {
      ends.push_back(done += compute::kernel_time(op, device).alone);
    }
    if (done == Time(0)) {
      return;
    }
    const SpanParts parts(span, done);
    Time begin = parts.at(Time(0));
    for (std::size_t i = 0; i < operators.size(); ++i) {
      const Time end = parts.at(ends[i]);
      if (end > begin) {
        write_kernel(span, thread, operators[i], {begin, end});
      }
      begin = end;
    }
  }

  void write_kernel(const simulate::Span& span, int thread, const graph::Operator& op,
                    std::pair<Time, Time> when) {
    begin_event(op.name, "kernel", "X", span.rank, thread, when.first);
    json_.key("dur").number_text(microseconds(when.second - when.first));
    if (op.layer >= 0) {
      json_.key("args").begin_object();
      json_.key("layer").value(role_of(span).layers[static_cast<std::size_t>(op.layer)]);
      json_.end_object();
    }
    json_.end_object();
  }

  /// Writes an arrow from the begin of a message's send to just before the end of its receive.
  void write_arrow(std::uint32_t index, int thread) {
    const std::vector<simulate::Span>& spans = run_.timeline.spans;
    const simulate::Span& span = spans[index];
    if (span.kind == graph::Node::Kind::receive) {
      const Time inside = std::min(Time(kPicosecondsPerNanosecond), span.end - span.begin);
      begin_event("message", "message", "f", span.rank, thread, span.end - inside);
      json_.key("bp").value("e");
      json_.key("id").value(span.cause);
    } else if (span.kind == graph::Node::Kind::send && index + 1 < spans.size() &&
               spans[index + 1].kind == graph::Node::Kind::receive) {
      begin_event("message", "message", "s", span.rank, thread, span.begin);
      json_.key("id").value(index);
    } else {
      return;
    }
    json_.end_object();
  }

  void write_memory(std::int64_t rank, const std::vector<study::MemorySample>& samples) {
    const std::vector<graph::MemoryKind>& kinds = run_.workload.memory;
    for (const study::MemorySample& sample : samples) {
      json_.begin_object();
      json_.key("name").value("memory");
      json_.key("ph").value("C");
      json_.key("pid").value(rank);
      json_.key("ts").number_text(microseconds(sample.at));
      json_.key("args").begin_object();
      for (std::size_t kind = 0; kind < kinds.size(); ++kind) {
        json_.key(kinds[kind].name).value(sample.bytes[graph::MemoryIndex(kind)].value());
      }
      json_.end_object().end_object();
    }
  }

  const study::WorkloadRun& run_;
  JsonWriter& json_;
  const std::function<void(double)>& progress_;
};

Error cannot_write(const std::string& path) {
  return Error(Mistake{
      path, {}, {}, "cannot be written; expected a file in a folder that exists, with room"});
}

/// Streams the trace into `path` itself.
bool stream_to(const study::WorkloadRun& run, const std::string& path,
               const std::function<void(double)>& progress) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  {
    JsonWriter json([&](std::string_view piece) {
      file.write(piece.data(), static_cast<std::streamsize>(piece.size()));
    });
    write_trace(run, json, progress);
  }
  file.put('\n');
  file.close();
  return file.good();
}

}  // namespace

void write_trace(const study::WorkloadRun& run, JsonWriter& json,
                 const std::function<void(double)>& progress) {
  TraceWriter(run, json, progress).write();
}

Bytes trace_size(const study::WorkloadRun& run) {
  Bytes size{1};  // the new line at the end
  {
    JsonWriter json(
        [&](std::string_view piece) { size += Bytes(static_cast<std::int64_t>(piece.size())); });
    write_trace(run, json);
  }
  return size;
}

Result<void> write_trace_file(const study::WorkloadRun& run, const std::string& path,
                              const std::function<void(double)>& progress) {
  namespace fs = std::filesystem;
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (fs::exists(status) && !fs::is_regular_file(status)) {  // a device or pipe: never replaced
    if (fs::is_directory(status) || !stream_to(run, path, progress)) {
      return fail(cannot_write(path));
    }
    return {};
  }
  const std::string beside = path + ".partial";
  const bool written = stream_to(run, beside, progress);
  if (written) {
    fs::rename(beside, path, error);
  }
  if (!written || error) {
    std::error_code ignored;
    fs::remove(beside, ignored);
    return fail(cannot_write(path));
  }
  return {};
}

}  // namespace orrery::report
