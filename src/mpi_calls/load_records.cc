// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <filesystem>

#include "base/file.h"
#include "base/reader.h"
#include "mpi_calls/record.h"

namespace orrery::mpi_calls {
namespace {

namespace fs = std::filesystem;

bool is_c_file(const fs::path& path) {
  const std::string ending = path.extension().string();
  return ending == ".c" || ending == ".cc" || ending == ".cpp" || ending == ".cxx";
}

Result<std::vector<Record>> load_folder(const std::string& folder) {
  std::vector<fs::path> files;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(folder, ignored)) {
    if (is_c_file(entry.path())) {
      files.push_back(entry.path());
    }
  }
  std::sort(files.begin(), files.end());
  if (files.empty()) {
    return fail(Error(Mistake{folder, {}, {}, "no .c file in it: expected one for each program"}));
  }
  std::vector<Record> records;
  Error mistakes;
  for (const fs::path& file : files) {
    if (const auto text = read_file(file.string())) {
      records.push_back(strip(file.filename().string(), *text));
    } else {
      mistakes.add(text.error());
    }
  }
  return mistakes.empty() ? Result<std::vector<Record>>(std::move(records))
                          : fail(std::move(mistakes));
}

/// Objects one a line: the second line begins with a brace.
bool has_object_per_line(const std::string& text) {
  const std::size_t second = text.find("\n{");
  return text.starts_with('{') && second != std::string::npos;
}

/// Returns the documents of a file of records, each with the number of its line.
Result<std::vector<ConfigNode>> documents_of(const std::string& text, const std::string& path) {
  std::vector<ConfigNode> nodes;
  Error mistakes;
  if (!has_object_per_line(text)) {
    auto node = parse_config(text, path, ConfigSyntax::json);
    if (!node) {
      return fail(std::move(node.error()));
    }
    if (node->kind == ConfigNode::Kind::sequence) {
      return std::move(node->items);
    }
    nodes.push_back(std::move(*node));
    return nodes;
  }
  int number = 0;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    const std::string line = text.substr(at, end - at);
    at = end + 1;
    ++number;
    if (line.find_first_not_of(" \t\r") == std::string::npos) {
      continue;
    }
    auto node = parse_config(line, path + ":" + std::to_string(number), ConfigSyntax::json);
    if (node) {
      nodes.push_back(std::move(*node));
    } else {
      mistakes.add(std::move(node.error()));
    }
  }
  return mistakes.empty() ? Result<std::vector<ConfigNode>>(std::move(nodes))
                          : fail(std::move(mistakes));
}

Place read_place(const ConfigNode& node, Error& mistakes) {
  Reader read(node);
  Place place;
  place.line = read.required<std::int64_t>("line");
  place.column = read.required<std::int64_t>("column");
  place.whole = read.required<bool>("whole");
  place.text = read.required<std::string>("text");
  read.require(place.line >= 0, "line", "0 or more");
  read.require(place.column >= 0, "column", "0 or more");
  if (auto well = read.finish(0); !well) {
    mistakes.add(std::move(well.error()));
  }
  return place;
}

}  // namespace

Result<Record> read_record(const ConfigNode& node, RecordUse use) {
  Reader read(node);
  Record record;
  record.program = read.optional<std::string>("program", "");
  const bool needs_code = use == RecordUse::code;
  record.code =
      needs_code ? read.required<std::string>("code") : read.optional<std::string>("code", "");
  bool labelled = false;
  const bool predicted = use == RecordUse::prediction;
  for (const char* const field :
       {"mpi_labels", predicted ? "pred" : "label", predicted ? "label" : "pred"}) {
    if (const auto text = read.maybe<std::string>(field); text && !labelled) {
      record.mpi_labels = *text;
      labelled = true;
    }
  }
  Error mistakes;
  for (const ConfigNode* place : read.take_items("places", false)) {
    record.places.push_back(read_place(*place, mistakes));
  }
  std::vector<std::string> passed;
  read.warn_of_unknown(passed);
  auto well = read.finish(0);
  if (!needs_code && !labelled) {
    mistakes.add({node.where(), "mpi_labels", {}, "missing; expected the calls as text"});
  }
  if (!well || !mistakes.empty()) {
    Error all;
    all.add(well ? Error() : std::move(well.error()));
    all.add(std::move(mistakes));
    return fail(std::move(all));
  }
  return record;
}

Result<std::vector<Record>> load_records(const std::string& path, RecordUse use) {
  std::error_code ignored;
  if (fs::is_directory(path, ignored)) {
    return load_folder(path);
  }
  const auto text = read_file(path);
  if (!text) {
    return fail(text.error());
  }
  if (is_c_file(path)) {
    return std::vector<Record>{strip(fs::path(path).filename().string(), *text)};
  }
  const auto nodes = documents_of(*text, path);
  if (!nodes) {
    return fail(nodes.error());
  }
  std::vector<Record> records;
  Error mistakes;
  for (const ConfigNode& node : *nodes) {
    auto record = read_record(node, use);
    if (record) {
      records.push_back(std::move(*record));
    } else {
      mistakes.add(std::move(record.error()));
    }
  }
  if (nodes->empty()) {
    mistakes.add({path, {}, {}, "no record in it"});
  }
  return mistakes.empty() ? Result<std::vector<Record>>(std::move(records))
                          : fail(std::move(mistakes));
}

}  // namespace orrery::mpi_calls
