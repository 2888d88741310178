// SPDX-License-Identifier: Apache-2.0
/// Any bytes as each of ASTRA-sim's files and as an MSCCL program: refused with a reason, or values
/// in range.
#include <sys/mman.h>
#include <unistd.h>

#include <set>

#include "compat/astra/msccl.h"
#include "compat/astra/parse.h"
#include "tests/fuzz/fuzz.h"
#include "workload/chakra/process_groups.h"

namespace orrery::astra {
namespace {

void hold_system(const ConfigNode& node) {
  std::vector<std::string> warnings;
  const auto system = parse_system(node, warnings);
  if (!system) {
    fuzz::hold_error(system.error());
    return;
  }
  fuzz::hold(system->splits >= 1 && system->active_chunks >= 1, "chunks are counted from 1");
  fuzz::hold(system->endpoint_delay >= Time(0), "no delay is negative");
  fuzz::hold(!system->roofline || (system->peak && system->local_memory_bandwidth),
             "a roofline has its slope and its top");
  for (const std::string& warning : warnings) {
    fuzz::hold(warning.find(':') != std::string::npos, "a warning names its place");
  }
  if (const auto fits = check_lists(node, *system, 2); !fits) {
    fuzz::hold_error(fits.error());
  }
}

void hold_network(const ConfigNode& node) {
  const auto network = parse_network(node, Quirks::all());
  if (!network) {
    fuzz::hold_error(network.error());
    return;
  }
  std::int64_t npus = 1;
  for (const Dimension& dimension : *network) {
    fuzz::hold(dimension.size >= 2 && dimension.bandwidth > Bandwidth(0), "dimensions are sound");
    fuzz::hold(dimension.latency >= Time(0), "no latency is negative");
    npus *= dimension.size;
  }
  fuzz::hold(!network->empty() && npus <= kMostNpus, "the NPUs can be counted");
}

void hold_memory(const ConfigNode& node) {
  const auto memory = parse_memory(node);
  if (!memory) {
    fuzz::hold_error(memory.error());
    return;
  }
  fuzz::hold(memory->kind == RemoteMemoryKind::none || memory->bandwidth > Bandwidth(0),
             "remote memory moves bytes");
}

void hold_msccl(std::string_view text) {
  const auto collective = parse_msccl(text, "input");
  if (!collective) {
    fuzz::hold_error(collective.error());
    return;
  }
  for (const CustomProgram& program : collective->programs) {
    for (std::uint32_t i = 0; i < program.steps.size(); ++i) {
      const CustomStep& step = program.steps[i];
      fuzz::hold(step.parts >= 0 && step.parts <= collective->parts, "a step moves parts");
      for (std::uint32_t j = 0; j < step.dependencies; ++j) {
        fuzz::hold(program.dependencies[step.first_dependency + j] < i,
                   "a step comes after what it needs");
      }
    }
  }
  fuzz::hold(check_messages(*collective).has_value(), "every message has both ends");
}

/// Group files are read by path: the bytes stand in a file without a name.
void hold_groups(std::string_view text) {
  constexpr std::int64_t kRanks = 8;
  const int file = memfd_create("groups", 0);
  const bool written =
      file >= 0 && write(file, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  fuzz::hold(written, "memory holds a file");
  chakra::GroupTable table(kRanks);
  const auto read = table.read_file("/proc/self/fd/" + std::to_string(file));
  close(file);
  if (!read) {
    fuzz::hold_error(read.error());
    return;
  }
  const std::vector<chakra::Group> groups = table.take();
  for (std::size_t i = 1; i < groups.size(); ++i) {
    const std::set<std::int64_t> ranks(groups[i].ranks.begin(), groups[i].ranks.end());
    fuzz::hold(!ranks.empty() && ranks.size() == groups[i].ranks.size(), "a group has ranks, once");
    fuzz::hold(*ranks.begin() >= 0 && *ranks.rbegin() < kRanks, "ranks exist");
  }
}

}  // namespace
}  // namespace orrery::astra

ORRERY_FUZZ(astra) {
  using orrery::ConfigSyntax;
  orrery::fuzz::with_node(bytes, size, ConfigSyntax::json, [](const orrery::ConfigNode& node) {
    orrery::astra::hold_system(node);
    orrery::astra::hold_memory(node);
  });
  orrery::fuzz::with_node(bytes, size, ConfigSyntax::yaml, orrery::astra::hold_network);
  const std::string_view text(reinterpret_cast<const char*>(bytes), size);
  orrery::astra::hold_msccl(text);
  orrery::astra::hold_groups(text);
  return 0;
}
