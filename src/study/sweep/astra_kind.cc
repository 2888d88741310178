// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>

#include "base/file.h"
#include "base/reader.h"
#include "compat/astra/load.h"
#include "compat/astra/parse.h"
#include "compat/astra/run.h"
#include "study/sweep/config_path.h"
#include "study/sweep/input_hash.h"
#include "study/sweep/kind.h"
#include "workload/chakra/trace_files.h"

namespace orrery::sweep {
namespace {

constexpr std::int64_t kMostQueues = 1024;
constexpr double kGreatestScale = 1e6;

/// Traces are what a point runs.
struct Traces {
  astra::Documents documents;
  astra::RunOptions options;
  std::int64_t ranks = 1;
};

/// `quirks_off`: a list of quirks, or all.
void read_quirks(Reader& read, astra::Quirks& quirks) {
  const ConfigNode* node = read.child("quirks_off", false);
  if (node == nullptr) {
    return;
  }
  std::vector<std::string> names;
  if (node->kind == ConfigNode::Kind::scalar) {
    names.push_back(read.required<std::string>("quirks_off"));
  } else {
    names = read.list<std::string>("quirks_off", true);
  }
  for (const std::string& name : names) {
    const auto quirk = value_of<astra::Quirk>(name);
    read.require(
        quirk || name == "all", "quirks_off",
        "all, or names of `orrery list quirks`" + did_you_mean(name, names_of<astra::Quirk>()));
    if (quirk) {
      quirks.set(*quirk, false);
    } else if (name == "all") {
      quirks = astra::Quirks::none();
    }
  }
}

void read_options(Reader& read, astra::RunOptions& options) {
  options.backend = read.optional("backend", options.backend);
  options.queues_per_dimension = read.optional("queues", options.queues_per_dimension);
  read.require(options.queues_per_dimension >= 1 && options.queues_per_dimension <= kMostQueues,
               "queues", fmt::format("1 to {}", kMostQueues));
  options.injection_scale = read.optional("injection_scale", options.injection_scale);
  read.require(options.injection_scale >= 0 && options.injection_scale <= kGreatestScale,
               "injection_scale", "a number from 0 to 1e6");
  options.rendezvous = read.optional("rendezvous", options.rendezvous);
  read_quirks(read, options.quirks);
}

/// All but the traces, which are as many as the network has ranks.
Result<Traces> read_traces(const ConfigNode& description) {
  Reader read(description);
  Traces traces;
  traces.documents.workload = read.required<std::string>("workload");
  traces.documents.groups = read.maybe<std::string>("groups");
  read_options(read, traces.options);
  std::vector<std::string> warnings;
  if (const ConfigNode* node = read.child("network", true)) {
    for (const auto& dimension : read.absorb(astra::parse_network(*node, traces.options.quirks))) {
      traces.ranks *= dimension.size;
    }
    traces.documents.network = *node;
  }
  if (const ConfigNode* node = read.child("system", true)) {
    const astra::System system = read.absorb(astra::parse_system(*node, warnings));
    const bool custom =
        system.custom_by_node || std::any_of(system.custom.begin(), system.custom.end(),
                                             [](const auto& prefix) { return prefix.has_value(); });
    read.require(!custom, "system",
                 "no custom collectives: a change of their files would go unnoticed");
    traces.documents.system = *node;
  }
  if (const ConfigNode* node = read.child("memory", true)) {
    read.absorb(astra::parse_memory(*node));
    traces.documents.memory = *node;
  }
  return read.finish(std::move(traces));
}

std::string content_of(const std::string& file) {
  const auto text = read_file(file);
  return file + " " + (text ? input_hash(*text) : "missing");
}

/// Returns what the files of the traces say, since they may change under their names.
std::string trace_inputs(const Traces& traces) {
  std::string text = "\ngroups " + content_of(traces.documents.groups.value_or(""));
  const auto files = chakra::find_trace_files(traces.documents.workload);
  if (!files) {
    return text;
  }
  const std::int64_t count = files->one.empty() ? traces.ranks : 1;
  for (std::int64_t rank = 0; rank < count; ++rank) {
    text += "\n" + content_of(files->of(rank));
  }
  return text;
}

std::string inputs_of(const Traces& traces, const ConfigNode& description) {
  return "astra\n" + canonical_text(description) + trace_inputs(traces);
}

Outcome run_traces(const Traces& traces) {
  const auto loaded = astra::load_documents(traces.documents, traces.options.quirks);
  if (!loaded) {
    return refused(kAstraFigures.size(), loaded.error());
  }
  const auto result = astra::run(loaded->input, traces.options);
  if (!result) {
    return refused(kAstraFigures.size(), result.error());
  }
  const auto last =
      std::max_element(result->classes.begin(), result->classes.end(),
                       [](const auto& a, const auto& b) { return a.finish < b.finish; });
  return {{loaded->input.traces.ranks(), to_seconds(last->finish), to_seconds(last->exposed),
           static_cast<std::int64_t>(result->messages)},
          ""};
}

}  // namespace

Prepared prepare_astra(const ConfigNode& description) {
  auto read = read_traces(description);
  if (!read) {
    return {.inputs = "unread " + canonical_text(description), .mistakes = read.error(), .run = {}};
  }
  const auto traces = std::make_shared<Traces>(std::move(*read));
  return {.inputs = inputs_of(*traces, description), .mistakes = {}, .run = [traces](Shared&) {
            return run_traces(*traces);
          }};
}

}  // namespace orrery::sweep
