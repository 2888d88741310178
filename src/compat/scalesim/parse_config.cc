// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>

#include "base/collect.h"
#include "base/letters.h"
#include "base/lists.h"
#include "base/names.h"
#include "base/printable.h"
#include "base/reader.h"
#include "compat/scalesim/files.h"
#include "compat/scalesim/lines.h"

namespace orrery::scalesim {
namespace {

constexpr std::int64_t kMostCells = 1 << 16;
constexpr std::int64_t kMostKilobytes = std::int64_t{1} << 40;

/// Sections and keys of v2 and v3, in lower case.
struct Section {
  std::string_view name;
  std::vector<std::string_view> keys;
};
const std::vector<Section>& sections() {
  static const std::vector<Section> known{
      {"general", {"run_name"}},
      {"architecture_presets",
       {"arrayheight", "arraywidth", "ifmapsramszkb", "filtersramszkb", "ofmapsramszkb",
        "ifmapoffset", "filteroffset", "ofmapoffset", "dataflow", "bandwidth", "memorybanks",
        "readrequestbuffer", "writerequestbuffer"}},
      {"run_presets",
       {"interfacebandwidth", "sram_row_size", "sram_bank_size", "dram_row_size", "dram_bank_size",
        "useramulatortrace"}},
      {"sparsity",
       {"sparsitysupport", "sparserep", "optimizedmapping", "blocksize",
        "randomnumbergeneratorseed"}},
      {"layout",
       {"ifmapcustomlayout", "ifmapsrambankbandwidth", "ifmapsrambanknum", "ifmapsrambankport",
        "filtercustomlayout", "filtersrambankbandwidth", "filtersrambanknum", "filtersrambankport",
        "ofmapcustomlayout", "ofmapsrambankbandwidth", "ofmapsrambanknum", "ofmapsrambankport"}}};
  return known;
}

class ConfigurationParser {
 public:
  ConfigurationParser(std::string_view text, const std::string& file) : file_(file) {
    int line = 0;
    for (const std::string_view row : parts_of(text, '\n')) {
      ++line;
      if (!row.empty() && row.front() != '#' && row.front() != ';') {
        take(row, line);
      }
    }
  }

  Result<Configuration> finish() {
    Configuration result;
    if (const Entry* name = find("run_name")) {
      result.run_name = printable(name->value);
    }
    compute::SystolicArray& array = result.array;
    array.rows = whole("arrayheight", kMostCells);
    array.cols = whole("arraywidth", kMostCells);
    array.input_sram = Bytes(1024) * whole("ifmapsramszkb", kMostKilobytes);
    array.filter_sram = Bytes(1024) * whole("filtersramszkb", kMostKilobytes);
    array.output_sram = Bytes(1024) * whole("ofmapsramszkb", kMostKilobytes);
    array.dataflow = dataflow();
    feed(result);
    result.sparse = yes("sparsitysupport");
    if (const Entry* format = find("sparserep"); format != nullptr && result.sparse) {
      const auto known = value_of<compute::Sparsity::Format>(lower_case(format->value));
      if (known) {
        result.format = *known;
      } else {
        wrong(*format, "one of " + all_names<compute::Sparsity::Format>());
      }
    }
    warn(result);
    return or_mistakes(std::move(result), std::move(error_));
  }

 private:
  struct Entry {
    std::string name;
    std::string value;
    int line = 0;
  };

  std::string where(int line) const { return fmt::format("{}:{}", file_, line); }
  void wrong(const Entry& entry, std::string expected) {
    error_.add({where(entry.line), entry.name, printable(entry.value), std::move(expected)});
  }

  void take(std::string_view row, int line) {
    if (row.front() == '[') {
      const std::string name = lower_case(trimmed(row.substr(1, row.find(']') - 1)));
      const auto& all = sections();
      section_ = std::find_if(all.begin(), all.end(),
                              [&](const Section& section) { return section.name == name; });
      if (section_ == all.end() || row.back() != ']') {
        const std::vector<std::string> names = mapped<std::string>(all, &Section::name);
        error_.add({where(line),
                    {},
                    printable(row),
                    "a section of SCALE-Sim: [" + fmt::format("{}", fmt::join(names, "], [")) +
                        "]" + did_you_mean(name, names)});
        skip_ = true;
      } else {
        skip_ = false;
        begun_ = true;
      }
      return;
    }
    if (skip_) {
      return;
    }
    const auto split = row.find_first_of(":=");
    if (!begun_ || split == std::string_view::npos) {
      error_.add({where(line),
                  {},
                  printable(row),
                  begun_ ? "'key : value' or a [section]" : "a [section] first"});
      return;
    }
    const std::string name(trimmed(row.substr(0, split)));
    const std::string key = lower_case(name);
    const std::vector<std::string_view>& keys = section_->keys;
    if (std::find(keys.begin(), keys.end(), key) == keys.end()) {
      error_.add({where(line),
                  {},
                  printable(name),
                  fmt::format("a setting of [{}]{}", section_->name,
                              did_you_mean(key, {keys.begin(), keys.end()}))});
      return;
    }
    const Entry entry{printable(name), std::string(trimmed(row.substr(split + 1))), line};
    if (const auto [old, fresh] = entries_.emplace(key, entry); !fresh) {
      error_.add(
          {where(line), entry.name, {}, fmt::format("said in line {} already", old->second.line)});
    }
  }

  const Entry* find(const std::string& key) const {
    const auto found = entries_.find(key);
    return found == entries_.end() ? nullptr : &found->second;
  }
  const Entry* required(const std::string& key) {
    const Entry* entry = find(key);
    if (entry == nullptr) {
      error_.add({file_, key, {}, "missing"});
    }
    return entry;
  }

  std::int64_t whole(const std::string& key, std::int64_t most) {
    const Entry* entry = required(key);
    if (entry == nullptr) {
      return 1;
    }
    const auto value = parse_integer(entry->value);
    if (!value || *value < 1 || *value > most) {
      wrong(*entry, fmt::format("a whole number from 1 to {}", most));
      return 1;
    }
    return *value;
  }

  compute::Dataflow dataflow() {
    const Entry* entry = required("dataflow");
    if (entry == nullptr) {
      return {};
    }
    const auto value = value_of<compute::Dataflow>(lower_case(entry->value));
    if (!value || *value == compute::Dataflow::best) {
      wrong(*entry, "os, ws or is");
      return {};
    }
    return *value;
  }

  bool yes(const std::string& key) {
    const Entry* entry = find(key);
    if (entry == nullptr) {
      return false;
    }
    const auto value = parse_bool(lower_case(entry->value));
    if (!value) {
      wrong(*entry, value.error());
    }
    return value.value_or(false);
  }

  /// One rate for all operands, or three.
  void feed(Configuration& result) {
    const Entry* mode = required("interfacebandwidth");
    if (mode == nullptr) {
      return;
    }
    const std::string name = lower_case(mode->value);
    if (name != "calc" && name != "user") {
      return wrong(*mode, "CALC (what would be needed) or USER (what Bandwidth says)");
    }
    if (name == "calc") {
      return;
    }
    const Entry* entry = required("bandwidth");
    if (entry == nullptr) {
      return;
    }
    std::vector<double> rates;
    for (const std::string_view part : parts_of(entry->value, ',')) {
      const auto value = parse_number(part);
      if (!value || *value <= 0 || *value > 1e12) {
        return wrong(*entry, "words per cycle above 0, one number or three: 10 or 10,10,10");
      }
      rates.push_back(*value);
    }
    if (rates.size() != 1 && rates.size() != 3) {
      return wrong(*entry, "words per cycle above 0, one number or three: 10 or 10,10,10");
    }
    result.feed = compute::Feed{rates.front(), rates[rates.size() / 2], rates.back()};
  }

  void warn(Configuration& result) {
    if (yes("useramulatortrace")) {
      result.warnings.emplace_back("UseRamulatorTrace: memory is a bandwidth here, without traces");
    }
    if (result.sparse && yes("optimizedmapping")) {
      result.warnings.emplace_back(
          "OptimizedMapping: sparsity is N:M of a layer here, not drawn row by row");
    }
    for (const char* key : {"ifmapcustomlayout", "filtercustomlayout", "ofmapcustomlayout"}) {
      if (yes(key)) {
        result.warnings.push_back(find(key)->name + ": bank conflicts are not modelled");
      }
    }
  }

  const std::string& file_;
  Error error_;
  std::map<std::string, Entry> entries_;
  std::vector<Section>::const_iterator section_ = sections().end();
  bool begun_ = false;
  bool skip_ = false;
};

}  // namespace

Result<Configuration> parse_configuration(std::string_view text, const std::string& file) {
  return ConfigurationParser(text, file).finish();
}

}  // namespace orrery::scalesim
