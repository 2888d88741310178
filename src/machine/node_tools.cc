// SPDX-License-Identifier: Apache-2.0
#include "machine/node_tools.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string_view>

#include "base/config_node.h"
#include "base/reader.h"
#include "base/split.h"
#include "base/words.h"

namespace orrery::machine {
namespace {

/// Calls use(line, number) for every line that is not blank.
template <class Use>
void for_lines(const std::string& text, const Use& use) {
  int number = 0;
  for (const std::string_view line : split_at(text, '\n')) {
    ++number;
    if (!trimmed(line).empty()) {
      use(trimmed(line), number);
    }
  }
}

/// Returns what stands after "Key:" or "Key=", if the line begins with it.
std::optional<std::string_view> after(std::string_view line, std::string_view key) {
  if (!line.starts_with(key)) {
    return std::nullopt;
  }
  return trimmed(line.substr(key.size()));
}

constexpr double kMostMebibytes = 1e9;
constexpr double kMostWatts = 1e6;

/// Returns a figure of a tool within (0, most]; a mistake else.
double figure(std::string_view text, double most, const Mistake& wrong, Error& mistakes) {
  const auto number = parse_number(text);
  if (number && *number > 0 && *number <= most) {
    return *number;
  }
  mistakes.add(wrong);
  return 0;
}

}  // namespace

Result<std::vector<NodeDevice>> read_nvidia_smi(const std::string& text, const std::string& file) {
  std::vector<NodeDevice> devices;
  Error mistakes;
  for_lines(text, [&](std::string_view line, int number) {
    const std::string where = fmt::format("{}:{}", file, number);
    const std::vector<std::string_view> cells = split_at(line, ',');
    if (cells.size() != 3) {
      mistakes.add({where, {}, std::string(line), "name, memory.total and power.limit of a GPU"});
      return;
    }
    NodeDevice device{std::string(trimmed(cells[0])), Bytes(0), std::nullopt};
    const std::string memory(trimmed(cells[1]));
    device.memory = Bytes(static_cast<std::int64_t>(
        figure(memory, kMostMebibytes, {where, "memory.total", memory, "a number of MiB"},
               mistakes) *
        1048576));
    const std::string power(trimmed(cells[2]));
    if (!power.starts_with('[')) {  // [N/A], [Not Supported]
      device.power = Power(
          figure(power, kMostWatts, {where, "power.limit", power, "a number of W"}, mistakes));
    }
    devices.push_back(std::move(device));
  });
  if (!mistakes.empty()) {
    return fail(std::move(mistakes));
  }
  return devices;
}

Result<std::vector<NodeDevice>> read_rocm_smi(const std::string& text, const std::string& file) {
  const std::size_t brace = text.find('{');  // warnings may stand before
  if (brace == std::string::npos) {
    return std::vector<NodeDevice>();
  }
  const auto document =
      parse_config(std::string_view(text).substr(brace), file, ConfigSyntax::json);
  if (!document) {
    return fail(document.error());
  }
  std::vector<NodeDevice> devices;
  Error mistakes;
  for (const auto& [card, fields] : document->fields) {
    const ConfigNode* name = fields.find("Card Series");
    name = name != nullptr ? name : fields.find("Card series");
    const ConfigNode* memory = fields.find("VRAM Total Memory (B)");
    if (!card.starts_with("card")) {
      continue;  // "system"
    }
    if (name == nullptr || memory == nullptr) {
      mistakes.add({fields.where(), card, {}, "lacks Card Series or VRAM Total Memory (B)"});
      continue;
    }
    NodeDevice device{name->text, Bytes(0), std::nullopt};
    device.memory = Bytes(static_cast<std::int64_t>(
        figure(memory->text, kMostMebibytes * 1048576,
               {memory->where(), memory->path, memory->text, "a number of bytes"}, mistakes)));
    const ConfigNode* power = fields.find("Max Graphics Package Power (W)");
    if (power != nullptr && parse_number(power->text)) {
      device.power =
          Power(figure(power->text, kMostWatts,
                       {power->where(), power->path, power->text, "a number of W"}, mistakes));
    }
    devices.push_back(std::move(device));
  }
  if (!mistakes.empty()) {
    return fail(std::move(mistakes));
  }
  return devices;
}

std::vector<NodeLinks> read_nvlink(const std::string& text) {
  std::vector<NodeLinks> devices;
  for_lines(text, [&](std::string_view line, int) {
    if (line.starts_with("GPU ")) {
      devices.emplace_back();
      return;
    }
    const std::vector<std::string> words = words_of<std::string>(line);  // Link 0: 26.562 GB/s
    if (devices.empty() || words.size() < 3 || words[0] != "Link") {
      return;
    }
    ++devices.back().all;
    const auto rate = parse_number(words[2]);
    if (rate && *rate > 0 && words.size() > 3 && words[3] == "GB/s") {
      ++devices.back().up;
      devices.back().rate = *rate;
    }
  });
  return devices;
}

namespace {

bool is_adapter(const std::string& column) {
  return column.starts_with("NIC") || column.starts_with("mlx5_") ||
         column.starts_with("bnxt_re") || column.starts_with("irdma");
}

/// Adds the adapters to which the GPU of a row has a path over PCIe switches alone.
void add_near(const std::vector<std::string>& columns, const std::vector<std::string>& row,
              std::set<std::string>& near) {
  for (std::size_t i = 0; i < columns.size() && i + 1 < row.size(); ++i) {
    if (is_adapter(columns[i]) && (row[i + 1] == "PIX" || row[i + 1] == "PXB")) {
      near.insert(columns[i]);
    }
  }
}

bool is_usable(std::string_view state) {
  return state.find("DOWN") == state.npos && state.find("DRAIN") == state.npos &&
         state.find("FAIL") == state.npos;
}

/// Reads "gpu:h100:8(S:0-1),tmpdisk:1" or "gpu:8".
void read_gres(std::string_view gres, SlurmNode& node) {
  for (const std::string_view one : split_at(gres, ',')) {
    const std::vector<std::string_view> parts = split_at(one.substr(0, one.find('(')), ':');
    const auto count = parse_value<std::int64_t>(std::string(parts.back()));
    if (parts.front() == "gpu" && parts.size() > 1 && count && *count > 0) {
      node.type = parts.size() > 2 ? std::string(parts[1]) : "";
      node.devices = *count;
    }
  }
}

}  // namespace

std::set<std::string> read_near_adapters(const std::string& text) {
  std::vector<std::string> columns;
  std::set<std::string> near;
  std::map<std::string, std::string> names;  // NIC0 -> mlx5_0
  for_lines(text, [&](std::string_view line, int) {
    const std::vector<std::string> words = words_of<std::string>(line);
    if (columns.empty()) {
      columns = words;  // GPU0 GPU1 ... NIC0 ... CPU Affinity ...
      return;
    }
    if (words[0].starts_with("GPU")) {
      add_near(columns, words, near);
    } else if (words.size() == 2 && words[0].ends_with(':') && is_adapter(words[0])) {
      names[words[0].substr(0, words[0].size() - 1)] = words[1];
    }
  });
  std::set<std::string> named;
  for (const std::string& column : near) {
    named.insert(names.contains(column) ? names[column] : column);
  }
  return named;
}

Result<std::vector<NodePort>> read_ibstat(const std::string& text, const std::string& file) {
  std::vector<NodePort> ports;
  Error mistakes;
  NodePort port;
  bool active = false;
  for_lines(text, [&](std::string_view line, int number) {
    if (const auto adapter = after(line, "CA '")) {
      port.adapter = adapter->substr(0, adapter->find('\''));
    } else if (line.starts_with("Port ") && line.ends_with(':') && !line.starts_with("Port GUID")) {
      active = false;
    } else if (const auto state = after(line, "State:")) {
      active = *state == "Active";
    } else if (const auto rate = after(line, "Rate:"); rate && active) {
      constexpr double kMostGigabits = 1e5;
      port.rate = figure(
          *rate, kMostGigabits,
          {fmt::format("{}:{}", file, number), "Rate", std::string(*rate), "a number of Gbit/s"},
          mistakes);
    } else if (const auto layer = after(line, "Link layer:"); layer && active) {
      port.layer = *layer;
      ports.push_back(port);
    }
  });
  if (!mistakes.empty()) {
    return fail(std::move(mistakes));
  }
  return ports;
}

std::vector<SlurmNode> read_slurm(const std::string& text) {
  std::vector<SlurmNode> nodes;
  for_lines(text, [&](std::string_view line, int) {
    SlurmNode node;
    for (const std::string_view word : words_of(line)) {
      if (const auto state = after(word, "State=")) {
        node.usable = node.usable && is_usable(*state);
      } else if (const auto gres = after(word, "Gres=")) {
        read_gres(*gres, node);
      }
    }
    if (node.devices > 0) {
      nodes.push_back(std::move(node));
    }
  });
  return nodes;
}

}  // namespace orrery::machine
