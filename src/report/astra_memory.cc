// SPDX-License-Identifier: Apache-2.0
#include "report/astra_memory.h"

#include <fmt/format.h>

#include <map>

#include "report/astra.h"
#include "report/json_writer.h"

namespace orrery::report {
namespace {

constexpr double kPicosecondsOfMicrosecond = 1e6;

double in_microseconds(Time time) {
  return static_cast<double>(time.value()) / kPicosecondsOfMicrosecond;
}

void write_slice(JsonWriter& json, const astra::LocalMemory& memory, std::size_t tensor) {
  const chakra::TensorLifetime& life = memory.footprint.lifetimes[tensor];
  json.begin_object();
  json.key("name").value(memory.tensors.tensors[tensor].name);
  json.key("cat").value("tensorLifetime");
  json.key("ph").value("X");
  json.key("ts").value(in_microseconds(life.from));
  json.key("dur").value(in_microseconds(life.until - life.from));
  json.key("pid").value(memory.rank);
  json.key("tid").value(tensor);
  json.key("args").begin_object();
  json.key("size").value(memory.tensors.tensors[tensor].size.value());
  json.end_object().end_object();
}

/// Bytes that live from each moment on at which they change.
std::map<Time, Bytes> levels(const astra::LocalMemory& memory) {
  std::map<Time, Bytes> changes;
  for (std::size_t t = 0; t < memory.tensors.tensors.size(); ++t) {
    const chakra::TensorLifetime& life = memory.footprint.lifetimes[t];
    changes[life.from] += memory.tensors.tensors[t].size;
    changes[life.until] -= memory.tensors.tensors[t].size;
  }
  Bytes now{0};
  for (auto& [at, change] : changes) {
    now += change;
    change = now;
  }
  return changes;
}

}  // namespace

std::string local_memory_lines(std::span<const astra::LocalMemory> memory,
                               const astra::RunResult& result) {
  std::string text;
  for (std::size_t rank = 0; rank < result.class_of.size(); ++rank) {
    const chakra::Footprint& one = memory[result.class_of[rank]].footprint;
    text += fmt::format("[workload] [info] sys[{}] peak local memory, {} bytes at {} cycles.\n",
                        rank, one.peak.value(), cycles(one.peak_at));
  }
  return text;
}

std::string local_memory_trace(const astra::LocalMemory& memory) {
  return json_text([&](JsonWriter& json) {
    json.begin_object().key("traceEvents").begin_array();
    for (std::size_t t = 0; t < memory.tensors.tensors.size(); ++t) {
      write_slice(json, memory, t);
    }
    for (const auto& [at, bytes] : levels(memory)) {
      json.begin_object();
      json.key("name").value("local memory");
      json.key("ph").value("C");
      json.key("ts").value(in_microseconds(at));
      json.key("pid").value(memory.rank);
      json.key("args").begin_object().key("bytes").value(bytes.value()).end_object();
      json.end_object();
    }
    json.end_array().end_object();
  });
}

}  // namespace orrery::report
