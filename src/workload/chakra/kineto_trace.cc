// SPDX-License-Identifier: Apache-2.0
#include "workload/chakra/kineto_trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/lists.h"
#include "base/names.h"
#include "base/reader.h"
#include "workload/chakra/json_value.h"
#include "workload/chakra/process_groups.h"

namespace orrery::chakra {
namespace {

struct KnownCollective {
  std::string_view name;
  CollectiveType type;
};
// Names that ProcessGroupNCCL gives to its collectives.
constexpr std::array kCollectives{
    KnownCollective{"allreduce", CollectiveType::all_reduce},
    KnownCollective{"allreduce_coalesced", CollectiveType::all_reduce},
    KnownCollective{"all_reduce", CollectiveType::all_reduce},
    KnownCollective{"reduce", CollectiveType::reduce},
    KnownCollective{"allgather", CollectiveType::all_gather},
    KnownCollective{"all_gather", CollectiveType::all_gather},
    KnownCollective{"_allgather_base", CollectiveType::all_gather},
    KnownCollective{"allgather_into_tensor_coalesced", CollectiveType::all_gather},
    KnownCollective{"gather", CollectiveType::gather},
    KnownCollective{"scatter", CollectiveType::scatter},
    KnownCollective{"broadcast", CollectiveType::broadcast},
    KnownCollective{"all_to_all", CollectiveType::all_to_all},
    KnownCollective{"all_to_allv", CollectiveType::all_to_all},
    KnownCollective{"reduce_scatter", CollectiveType::reduce_scatter},
    KnownCollective{"_reduce_scatter_base", CollectiveType::reduce_scatter},
    KnownCollective{"reduce_scatter_tensor_coalesced", CollectiveType::reduce_scatter},
    KnownCollective{"barrier", CollectiveType::barrier},
};

struct KnownType {
  std::string_view name;
  std::uint64_t bytes;
};
// c10::ScalarType.
constexpr std::array kTypes{
    KnownType{"Byte", 1},          KnownType{"Char", 1},           KnownType{"Bool", 1},
    KnownType{"Float8_e4m3fn", 1}, KnownType{"Float8_e5m2", 1},    KnownType{"Short", 2},
    KnownType{"Half", 2},          KnownType{"BFloat16", 2},       KnownType{"Int", 4},
    KnownType{"Float", 4},         KnownType{"Long", 8},           KnownType{"Double", 8},
    KnownType{"ComplexFloat", 8},  KnownType{"ComplexDouble", 16},
};

constexpr const char* kRemedy =
    ", which PyTorch 2.4 and later write; or a Chakra trace, which chakra_trace_link and "
    "chakra_converter make of this one and that of an ExecutionTraceObserver";

std::string_view text(const ConfigNode& node, std::string_view field) {
  const ConfigNode* value = node.find(field);
  return value == nullptr ? std::string_view() : std::string_view(value->text);
}

/// The number of a name, which is a new one when it was not met before.
std::uint32_t number_of(std::map<std::string, std::uint32_t, std::less<>>& numbers,
                        std::string_view name) {
  const auto known = numbers.find(name);
  return known != numbers.end()
             ? known->second
             : numbers.emplace(name, static_cast<std::uint32_t>(numbers.size())).first->second;
}

}  // namespace

void KinetoReader::wrong(std::string_view field, std::string found, std::string expected) {
  good_ = false;
  mistakes_.add(fmt::format("line {}: {}", line_, field), std::move(found), std::move(expected));
}

void KinetoReader::collect(const ConfigNode& event, std::int64_t line) {
  // The second names are those of PyTorch before 1.13.
  static constexpr std::array<std::string_view, 6> kOfDevice{"kernel", "gpu_memcpy", "gpu_memset",
                                                             "Kernel", "Memcpy",     "Memset"};
  if (std::ranges::find(kOfDevice, text(event, "cat")) == kOfDevice.end()) {
    return;
  }
  line_ = line;
  const std::string_view name = text(event, "name");
  const auto start = parse_number(text(event, "ts"));
  const auto duration = parse_number(text(event, "dur"));
  constexpr double kLongest = 1e12;  // 11 days
  if (!start || !duration || !(*duration >= 0 && *duration < kLongest)) {
    wrong(name, "no ts or dur", "when it began and how long it took, in us");
    return;
  }
  Activity activity{.start = *start, .duration = *duration, .line = line};
  activity.name = number_of(name_of_, name);
  activity.stream =
      number_of(stream_of_, fmt::format("{}/{}", text(event, "pid"), text(event, "tid")));
  const ConfigNode* args = event.find("args");
  if (args != nullptr && args->find("Collective name") != nullptr) {
    activity.args = static_cast<std::int32_t>(transfers_.size());
    transfers_.push_back(*args);
  }
  activities_.push_back(activity);
}

bool KinetoReader::finish(std::int64_t line) {
  line_ = line;
  if (activities_.empty()) {
    wrong("traceEvents", "no activities of a device",
          "events of category kernel: profile with ProfilerActivity.CUDA");
  }
  names_.resize(name_of_.size());
  for (const auto& [name, number] : name_of_) {
    names_[number] = &name;
  }
  streams_.resize(stream_of_.size());
  std::stable_sort(activities_.begin(), activities_.end(),
                   [](const Activity& a, const Activity& b) { return a.start < b.start; });
  for (std::size_t i = 0; i < activities_.size(); ++i) {
    add(i);
  }
  return good_;
}

void KinetoReader::add(std::size_t number) {
  const Activity& activity = activities_[number];
  line_ = activity.line;
  record_.clear();
  record_.id = number;
  record_.name = *names_[activity.name];
  record_.type = static_cast<std::int64_t>(NodeType::comp);
  depend(number);
  if (activity.args >= 0) {
    const ConfigNode& args = transfers_[static_cast<std::size_t>(activity.args)];
    read_communication(args, *args.find("Collective name"));
  } else if (record_.name.starts_with("nccl")) {
    wrong(record_.name, "an NCCL kernel without 'Collective name'",
          std::string("its name, dtype, 'In msg nelems' and 'Process Group Ranks'") + kRemedy);
  } else {
    const double due = activity.duration + rounding_;
    const double whole = std::max(0.0, std::round(due));
    rounding_ = due - whole;
    record_.duration_micros = static_cast<std::uint64_t>(whole);
  }
  builder_.add(record_);
}

/// Lets an activity depend on the node before it in its stream, and on the last of every other
/// stream that had ended.
void KinetoReader::depend(std::size_t number) {
  const Activity& own = activities_[number];
  for (std::uint32_t stream = 0; stream < streams_.size(); ++stream) {
    const auto& nodes = streams_[stream];
    auto last = nodes.size();
    while (stream != own.stream && last > 0 && end_of(nodes[last - 1]) > own.start) {
      --last;
    }
    // What the stream has waited for before, its later nodes need not wait for again.
    auto& waited = waited_[{own.stream, stream}];
    if (last > 0 && nodes[last - 1] + 1 > waited) {
      waited = nodes[last - 1] + 1;
      record_.dependencies.push_back(nodes[last - 1]);
    }
  }
  streams_[own.stream].push_back(number);
}

double KinetoReader::end_of(std::uint64_t number) const {
  return activities_[number].start + activities_[number].duration;
}

void KinetoReader::read_communication(const ConfigNode& args, const ConfigNode& collective) {
  const bool sends = collective.text == "send";
  const bool receives = collective.text == "recv";
  record_.set(Attribute::comm_size, Value::natural(size_of(args)));
  if (sends || receives) {
    const char* field = sends ? "Dst Rank" : "Src Rank";
    record_.type = static_cast<std::int64_t>(sends ? NodeType::comm_send : NodeType::comm_recv);
    record_.set(sends ? Attribute::comm_dst : Attribute::comm_src,
                Value::natural(number(args, field)));
    return;
  }
  record_.type = static_cast<std::int64_t>(NodeType::comm_coll);
  const auto known =
      std::find_if(kCollectives.begin(), kCollectives.end(),
                   [&](const KnownCollective& each) { return each.name == collective.text; });
  if (known == kCollectives.end()) {
    const std::vector<std::string> names =
        mapped<std::string>(kCollectives, &KnownCollective::name);
    wrong("Collective name", collective.text,
          "a collective of c10d" + did_you_mean(collective.text, names));
    return;
  }
  record_.set(Attribute::comm_type, Value::natural(static_cast<std::uint64_t>(known->type)));
  const std::string_view group = text(args, "Process Group Name");
  record_.set(Attribute::pg_name, Value::string(group));
  define(args, group);
}

std::uint64_t KinetoReader::number(const ConfigNode& args, std::string_view field) {
  const auto value = natural(text(args, field));
  if (!value) {
    wrong(field, std::string(text(args, field)),
          std::string("a whole number") + (args.find(field) == nullptr ? kRemedy : ""));
  }
  return value.value_or(0);
}

/// Bytes that the rank puts in.
std::uint64_t KinetoReader::size_of(const ConfigNode& args) {
  const std::string_view name = text(args, "dtype");
  const auto type = std::find_if(kTypes.begin(), kTypes.end(),
                                 [&](const KnownType& each) { return each.name == name; });
  const std::uint64_t elements = number(args, "In msg nelems");
  if (type == kTypes.end()) {
    wrong("dtype", std::string(name), "a type of PyTorch such as BFloat16");
    return 0;
  }
  // What overflows is refused as a size.
  return elements > (std::uint64_t{1} << 59) ? ~std::uint64_t{0} : elements * type->bytes;
}

void KinetoReader::define(const ConfigNode& args, std::string_view name) {
  const std::string_view ranks = text(args, "Process Group Ranks");
  const auto [known, fresh] = defined_.try_emplace(std::string(name), std::string(ranks));
  if (!fresh && known->second == ranks) {
    return;
  }
  GroupDefinition definition;
  definition.name = canonical_group_name(name);
  if (ranks.ends_with("...]")) {  // PyTorch lists 30
    const std::uint64_t start = number(args, "Global rank start");
    const std::uint64_t stride = number(args, "Global rank stride");
    const std::uint64_t size = number(args, "Group size");
    constexpr std::uint64_t kMost = std::uint64_t{1} << 24;  // in all groups of a file
    if (size > kMost - listed_) {
      wrong("Group size", std::to_string(size),
            fmt::format("at most {} ranks in all groups", kMost));
      return;
    }
    listed_ += size;
    for (std::uint64_t i = 0; good_ && i < size; ++i) {
      definition.ranks.push_back(static_cast<std::int64_t>(start + i * stride));
    }
  } else {
    const auto list = parse_config(ranks, "", ConfigSyntax::json);
    for (std::size_t i = 0; list && i < list->items.size(); ++i) {
      definition.ranks.push_back(
          static_cast<std::int64_t>(natural(list->items[i].text).value_or(~0U)));
    }
  }
  if (definition.ranks.empty()) {
    wrong("Process Group Ranks", std::string(ranks), std::string("a list of ranks") + kRemedy);
    return;
  }
  builder_.define(std::move(definition));
}

}  // namespace orrery::chakra
