// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>

#include "base/collect.h"
#include "base/file.h"
#include "base/reader.h"
#include "compat/astra/custom.h"
#include "compat/astra/msccl.h"
#include "workload/chakra/load.h"

namespace orrery::astra {
namespace {

namespace fs = std::filesystem;

bool exists(const std::string& path) {
  std::error_code ignored;
  return fs::exists(path, ignored);
}

/// Returns how many files PREFIX.0.et, PREFIX.1.et ... there are without a gap.
std::int64_t count_positions(const std::string& prefix) {
  std::int64_t positions = 0;
  while (exists(fmt::format("{}.{}.et", prefix, positions))) {
    ++positions;
  }
  return positions;
}

class CustomLoader {
 public:
  explicit CustomLoader(std::string folder) : folder_(std::move(folder)) {}

  Result<CustomCollectives> load(const System& system) {
    for (const auto& operation : kNames<Operation>) {
      const auto index = static_cast<std::size_t>(operation.value);
      if (system.custom[index]) {
        loaded_.by_operation[index] = index_of(*system.custom[index]);
        check_operation(operation.value, loaded_.by_operation[index]);
      }
    }
    if (system.custom_by_node) {
      load_by_node(*system.custom_by_node);
    }
    return or_mistakes(std::move(loaded_), std::move(mistakes_));
  }

 private:
  /// Returns the path where ASTRA-sim finds the file, or else beside the file that names it.
  std::string resolve(const std::string& path) const {
    const auto found = [](const std::string& at) { return exists(at) || exists(at + ".0.et"); };
    const std::string beside = (fs::path(folder_) / path).string();
    return !found(path) && found(beside) ? beside : path;
  }

  std::optional<std::uint32_t> index_of(const std::string& name) {
    const auto [known, is_new] = by_name_.emplace(name, std::nullopt);
    if (is_new) {
      if (auto collective = kept(read(resolve(name)), mistakes_)) {
        known->second = static_cast<std::uint32_t>(loaded_.all.size());
        loaded_.all.push_back(std::move(*collective));
      }
    }
    return known->second;
  }

  static Result<CustomCollective> read(const std::string& path) {
    if (path.ends_with(".xml")) {
      return read_file(path).and_then(
          [&](const std::string& text) { return parse_msccl(text, path); });
    }
    const std::int64_t positions = count_positions(path);
    if (positions == 0) {
      return fail(Error(Mistake{path + ".0.et",
                                {},
                                {},
                                "missing; expected a trace per position of the custom collective, "
                                "or an MSCCL program that ends in .xml"}));
    }
    chakra::LoadOptions options;
    options.prefix = path;
    options.ranks = positions;
    return chakra::load(options).and_then(
        [&](const chakra::TraceSet& traces) { return custom_from_traces(traces, path); });
  }

  void check_operation(Operation operation, std::optional<std::uint32_t> index) {
    if (!index) {
      return;
    }
    const CustomCollective& collective = loaded_.all[*index];
    const Operation said = collective.operation.value_or(operation);
    if (said == operation) {
      return;
    }
    mistakes_.add({collective.name, "algo.coll", std::string(name_of(said)),
                   fmt::format("{}, as {}-implementation-custom names it", name_of(operation),
                               name_of(operation))});
  }

  void load_by_node(const std::string& file) {
    const auto node = load_config(resolve(file));
    if (!node) {
      mistakes_.add(node.error());
      return;
    }
    Reader read(*node);
    for (const auto& [name, value] : node->fields) {
      const auto id = parse_integer(name);
      const auto prefix = read.required<std::string>(name);
      if (!id || *id < 0) {
        mistakes_.add({value.where(), name, {}, "expected the id of a node, 0 or more"});
      } else if (!prefix.empty()) {
        if (const auto index = index_of(prefix)) {
          loaded_.by_node.emplace_back(static_cast<std::uint64_t>(*id), *index);
        }
      }
    }
    collect(read.finish(0), mistakes_);
    std::sort(loaded_.by_node.begin(), loaded_.by_node.end());
  }

  std::string folder_;
  std::map<std::string, std::optional<std::uint32_t>> by_name_;
  CustomCollectives loaded_;
  Error mistakes_;
};

}  // namespace

Result<CustomCollectives> load_customs(const System& system, const std::string& folder) {
  return CustomLoader(folder).load(system);
}

}  // namespace orrery::astra
