// SPDX-License-Identifier: Apache-2.0
/// Keys that no row of a framework's table has.
#include <algorithm>
#include <array>
#include <vector>

#include "base/lists.h"
#include "base/names.h"
#include "base/split.h"
#include "base/words.h"
#include "workload/interop/framework_tables.h"

namespace orrery::interop {
namespace {

/// Lists the words of keys that say how work and memory are spread.
constexpr auto kWeightyWords = std::to_array<std::string_view>(
    {"parallel", "parallelism", "tp",        "pp",         "dp",           "cp",
     "ep",       "degree",      "shard",     "sharding",   "shards",       "zero",
     "stage",    "stages",      "batch",     "microbatch", "microbatches", "accumulation",
     "sequence", "seq",         "offload",   "recompute",  "remat",        "checkpointing",
     "fp8",      "fp4",         "int8",      "quant",      "quantization", "precision",
     "dtype",    "fsdp",        "deepspeed", "overlap",    "pipeline",     "devices",
     "nodes",    "gpus",        "processes", "length",     "attention",    "optimizer"});

/// Says whether two names are alike but for one place of two letters at most.
bool one_slip(std::string_view found, std::string_view name) {
  constexpr std::size_t kMost = 2;
  const std::size_t least = std::min(found.size(), name.size());
  const std::size_t most = std::max(found.size(), name.size());
  std::size_t before = 0;
  while (before < least && found[before] == name[before]) {
    ++before;
  }
  std::size_t after = 0;
  while (before + after < least &&
         found[found.size() - 1 - after] == name[name.size() - 1 - after]) {
    ++after;
  }
  return before + after + kMost >= most;
}

/// Says whether a path is one that a row reads, but for one of its names, which is misspelt:
/// model.attn_config.atn_impl.
bool misspells_a_row(const FrameworkTable& table, std::string_view path) {
  const std::vector<std::string_view> found = split_at(path, '.');
  return found.size() > 1 && std::ranges::any_of(table.keys, [&](const FrameworkKey& row) {
           const std::vector<std::string_view> names = split_at(row.name, '.');
           std::size_t slips = 0;
           bool close = names.size() == found.size();
           for (std::size_t i = 0; close && i < names.size(); ++i) {
             slips += found[i] == names[i] ? 0 : 1;
             close = found[i] == names[i] || (names[i].size() > 3 && one_slip(found[i], names[i]));
           }
           return close && slips == 1;
         });
}

}  // namespace

bool is_key(std::string_view path, std::string_view key) {
  return path.starts_with(key) && (path.size() == key.size() || path[key.size()] == '.');
}

bool is_without_weight(const FrameworkTable& table, std::string_view path) {
  if (misspells_a_row(table, path)) {
    return false;
  }
  for (const std::string_view list : {table.ignored, table.also}) {
    for (const std::string_view name : words_of(list, " ")) {
      if (name.ends_with('*')     ? path.starts_with(name.substr(0, name.size() - 1))
          : name.starts_with('*') ? path.ends_with(name.substr(1))
                                  : is_key(path, name)) {
        return true;
      }
    }
  }
  return false;
}

std::optional<std::string> mistaken_key(const FrameworkTable& table, std::string_view path) {
  std::vector<std::string> names = mapped<std::string>(table.keys, &FrameworkKey::name);
  for (const std::string_view list : {table.ignored, table.also}) {
    for (const std::string_view name : words_of(list, " ")) {
      names.emplace_back(name.substr(0, name.find_last_not_of("_*") + 1));
    }
  }
  std::string guess = did_you_mean(path, names);
  const bool weighty = std::ranges::any_of(words_of(path, "._"), [](const std::string_view word) {
    return std::ranges::find(kWeightyWords, word) != kWeightyWords.end();
  });
  return guess.empty() && !weighty ? std::nullopt : std::optional(std::move(guess));
}

}  // namespace orrery::interop
