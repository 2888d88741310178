// SPDX-License-Identifier: Apache-2.0
#include "diagnose/flight_recorder.h"

#include <fmt/format.h>

#include <array>
#include <cctype>
#include <cmath>
#include <utility>

#include "base/reader.h"
#include "diagnose/pickle.h"
#include "diagnose/syndromes.h"

namespace orrery::diagnose {
namespace {

constexpr char kPickle = '\x80';

/// Returns the bytes of types that c10 names; others count as a byte, which is enough to compare
/// ranks.
double bytes_of(const std::string& type) {
  constexpr auto kSizes = std::to_array<std::pair<std::string_view, double>>({{"Double", 8},
                                                                              {"Long", 8},
                                                                              {"ComplexFloat", 8},
                                                                              {"ComplexDouble", 16},
                                                                              {"Float", 4},
                                                                              {"Int", 4},
                                                                              {"Half", 2},
                                                                              {"BFloat16", 2},
                                                                              {"Short", 2}});
  const auto* const found = std::ranges::find(kSizes, std::string_view(type),
                                              &std::pair<std::string_view, double>::first);
  return found == kSizes.end() ? 1 : found->second;
}

/// "nccl_trace_rank_3", "dump.3.json": the last digits of the name before a last extension.
std::optional<std::int64_t> rank_of(const std::string& file) {
  std::string name = file.substr(file.find_last_of('/') + 1);
  const std::size_t point = name.find_last_of('.');
  if (point != std::string::npos &&
      name.find_first_not_of("0123456789", point + 1) != std::string::npos) {
    name.resize(point);
  }
  const std::size_t end = name.find_last_of("0123456789");
  if (end == std::string::npos) {
    return std::nullopt;
  }
  const std::size_t before = name.find_last_not_of("0123456789", end);
  const std::size_t begin = before == std::string::npos ? 0 : before + 1;
  const auto number = parse_integer(name.substr(begin, end + 1 - begin));
  return number ? std::optional(*number) : std::nullopt;
}

class Dump {
 public:
  Dump(std::int64_t rank, Collector& collector) : rank_(rank), collector_(collector) {}

  Result<void> read(const ConfigNode& root) {
    Reader read(root);
    const ConfigNode* groups = read.child("pg_config", true);
    const auto entries = read.take_items("entries", true);
    if (groups != nullptr) {
      for (const ConfigField& group : groups->fields) {
        read.absorb(read_group(group));
      }
    }
    for (const ConfigNode* entry : entries) {
      if (entry == entries.front()) {
        const ConfigNode* record = entry->find("record_id");
        whole_ = record == nullptr || record->text == "0";
      }
      read.absorb(read_entry(*entry));
    }
    for (const ConfigField& field : root.fields) {
      read.ignore(field.name);
    }
    return read.finish(0).map([](int) {});
  }

 private:
  /// ranks: a list, or (since version 2.2) one as text.
  Result<int> read_group(const ConfigField& group) {
    Reader read(group.value);
    const auto description = read.optional<std::string>("desc", "");
    std::vector<std::int64_t> ranks;
    const ConfigNode* list = group.value.find("ranks");
    if (list != nullptr && list->kind == ConfigNode::Kind::scalar) {
      const auto parsed =
          parse_config(fmt::format("{{\"ranks\": {}}}", list->text), "", ConfigSyntax::json);
      if (parsed) {
        Reader inner(*parsed);
        ranks = inner.list<std::int64_t>("ranks");
      }
    } else {
      ranks = read.list<std::int64_t>("ranks", true);
    }
    read.ignore("ranks");
    read.require(!ranks.empty(), "ranks",
                 "the ranks of the process group, as a list or as its text");
    if (read.ok()) {
      std::string name = description.empty() || description == "undefined"
                             ? "group " + group.name
                             : fmt::format("{} ({})", description, group.name);
      if (!collector_.add_communicator(name, ranks)) {
        name += " of " + ranks_text(ranks);
        collector_.add_communicator(name, ranks);
      }
      names_[group.name] = {*collector_.communicator(name), std::move(ranks)};
    }
    for (const ConfigField& field : group.value.fields) {
      read.ignore(field.name);
    }
    return read.finish(0);
  }

  Result<int> read_entry(const ConfigNode& entry) {
    Reader read(entry);
    for (const ConfigField& field : entry.fields) {
      read.ignore(field.name);
    }
    const auto group = read.list<std::string>("process_group", true);
    const auto name = read.required<std::string>("profiling_name");
    const bool message = read.optional("is_p2p", false);
    Collector::Call call;
    call.operation.sequence = read.required<std::int64_t>("collective_seq_id");
    const auto created = read.required<std::int64_t>("time_created_ns");
    const auto started = read.optional<std::int64_t>("time_discovered_started_ns", created);
    const auto ended = read.maybe<std::int64_t>("time_discovered_completed_ns");
    const auto lasted = read.maybe<double>("duration_ms");
    const auto state = read.optional<std::string>("state", "");
    const auto known = names_.find(group.empty() ? "" : group.front());
    read.require(known != names_.end(), "process_group", "one of pg_config");
    if (!read.ok()) {
      return read.finish(0);
    }
    call.operation.communicator = known->second.communicator;
    call.operation.rank = rank_;
    call.operation.kind = name.substr(name.find(':') + 1);
    call.operation.bytes = size_of(read, "input");
    call.operation.begun = state != "scheduled";
    call.entered = {started};
    if (lasted && std::isfinite(*lasted) && *lasted >= 0 && *lasted < 1e9) {
      call.ended = Moment{started + std::llround(*lasted * 1e6)};
    } else if (ended || state == "completed") {
      call.ended = Moment{std::max(started, ended.value_or(started))};
    }
    if (message) {
      add_end(std::move(call), known->second.ranks, read);
    } else {
      collector_.add(std::move(call));  // operations of one coalesced group have one number
    }
    return read.finish(0);
  }

  /// "send 0->1" or "recv 1<-0", by places in the group. Coalesced messages name no peer.
  void add_end(Collector::Call call, const std::vector<std::int64_t>& ranks, Reader& read) {
    const std::string kind = call.operation.kind;
    const std::size_t arrow = std::min(kind.find("->"), kind.find("<-"));
    const bool sends = kind.starts_with("send ");
    const auto member = [&](std::string_view number) -> std::optional<std::int64_t> {
      const auto place = parse_integer(number);
      return place && *place >= 0 && *place < std::ssize(ranks)
                 ? std::optional(ranks[static_cast<std::size_t>(*place)])
                 : std::nullopt;
    };
    const auto self = arrow == std::string::npos ? std::nullopt : member(kind.substr(5, arrow - 5));
    const auto peer = arrow == std::string::npos ? std::nullopt : member(kind.substr(arrow + 2));
    if ((!sends && !kind.starts_with("recv ")) || self != rank_ || !peer || *peer == rank_) {
      collector_.skip(kind);
      return;
    }
    if (call.operation.bytes == Bytes(0)) {
      call.operation.bytes = size_of(read, "output");
    }
    call.operation.kind = "message";
    const Collector::Ends ends{call.operation.communicator, sends ? rank_ : *peer,
                               sends ? *peer : rank_};
    collector_.add_end(ends, std::move(call), whole_);
  }

  /// Returns the bytes of its "input" or "output" tensors.
  static Bytes size_of(Reader& read, const std::string& side) {
    const auto types = read.list<std::string>(side + "_dtypes");
    double bytes = 0;
    std::size_t index = 0;
    for (const ConfigNode* shape : read.take_items(side + "_sizes", false)) {
      double elements = 1;
      for (const ConfigNode& extent : shape->items) {
        elements *= parse_number(extent.text).value_or(1);
      }
      bytes += elements * (index < types.size() ? bytes_of(types[index]) : 1);
      ++index;
    }
    constexpr double kMost = 1e18;
    return Bytes(bytes >= 0 && bytes < kMost ? static_cast<std::int64_t>(bytes) : 0);
  }

  std::int64_t rank_;
  Collector& collector_;
  struct Group {
    std::size_t communicator = 0;
    std::vector<std::int64_t> ranks;  ///< in the group's order
  };
  std::map<std::string, Group> names_;  ///< by the dump's names
  bool whole_ = true;                   ///< the dump goes back to the rank's first entry
};

}  // namespace

bool is_flight_record(std::string_view text) {
  return text.starts_with(kPickle) || (text.find("\"pg_config\"") != std::string_view::npos &&
                                       text.find("\"entries\"") != std::string_view::npos);
}

Result<void> read_flight_record(const std::string& text, const std::string& file,
                                Collector& collector) {
  const auto rank = rank_of(file);
  if (!rank) {
    return fail(Error(Mistake{file,
                              {},
                              {},
                              "a flight recorder's dump needs its rank at the end of "
                              "its name, as in nccl_trace_rank_3"}));
  }
  const auto root = text.starts_with(kPickle) ? parse_pickle(text, file)
                                              : parse_config(text, file, ConfigSyntax::json);
  if (!root) {
    return fail(root.error());
  }
  collector.after_timeout();
  return Dump(*rank, collector).read(*root);
}

}  // namespace orrery::diagnose
