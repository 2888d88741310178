// SPDX-License-Identifier: Apache-2.0
#include "workload/chakra/json_trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "base/config_node.h"
#include "base/names.h"
#include "base/reader.h"
#include "workload/chakra/json_value.h"
#include "workload/chakra/kineto_trace.h"

namespace orrery::chakra {
namespace {

constexpr std::array<std::string_view, 8> kNodeTypes{
    "INVALID_NODE", "METADATA_NODE",  "MEM_LOAD_NODE",  "MEM_STORE_NODE",
    "COMP_NODE",    "COMM_SEND_NODE", "COMM_RECV_NODE", "COMM_COLL_NODE"};

class JsonReader {
 public:
  JsonReader(std::string_view text, ProgramBuilder& builder, Mistakes& mistakes)
      : text_(text), builder_(builder), mistakes_(mistakes) {}

  void run() {
    bool any = false;
    while (skip_space() && mistakes_.empty()) {
      const std::size_t end = end_of_value(at_);
      if (const std::size_t events = list_of_events(end); events != std::string_view::npos) {
        read_events(events, end);
        any = true;
        continue;
      }
      const auto node = parse_config(text_.substr(at_, end - at_), "", ConfigSyntax::json);
      if (!node) {
        refuse_syntax(node.error());
        return;
      }
      read_top(*node, !any);
      any = true;
      line_ += std::count(text_.begin() + static_cast<std::ptrdiff_t>(at_),
                          text_.begin() + static_cast<std::ptrdiff_t>(end), '\n');
      at_ = end;
    }
    if (!any) {
      mistakes_.add({}, "an empty file", "a JSON object with a version, then one per node");
    }
    if (complete_) {
      builder_.finish();
    }
  }

 private:
  /// False at the end.
  bool skip_space() {
    for (; at_ < text_.size(); ++at_) {
      const char c = text_[at_];
      if (c != ' ' && c != '\t' && c != '\r' && c != '\n') {
        return true;
      }
      line_ += c == '\n' ? 1 : 0;
    }
    return false;
  }

  /// Returns where the object or list that starts here ends: brackets outside of strings are
  /// balanced.
  std::size_t end_of_value(std::size_t at) const {
    std::size_t depth = 0;
    bool quoted = false;
    const bool opens = text_[at] == '{' || text_[at] == '[';
    for (std::size_t i = at; opens && i < text_.size(); ++i) {
      const char c = text_[i];
      if (quoted) {
        i += c == '\\' ? 1 : 0;
        quoted = c != '"';
      } else if (c == '"') {
        quoted = true;
      } else if (c == '{' || c == '[') {
        ++depth;
      } else if ((c == '}' || c == ']') && --depth == 0) {
        return i + 1;
      }
    }
    return text_.size();  // left to the parser to refuse
  }

  /// Returns the bracket of the list "traceEvents" of the object that starts here; npos when it has
  /// none.
  std::size_t list_of_events(std::size_t end) const {
    constexpr std::string_view kKey = "\"traceEvents\"";
    std::size_t depth = 0;
    for (std::size_t i = at_; i < end; ++i) {
      const char c = text_[i];
      if (c == '"' && depth == 1 && text_.substr(i).starts_with(kKey)) {
        const std::size_t colon = text_.find_first_not_of(" \t\r\n", i + kKey.size());
        const std::size_t list = colon < end && text_[colon] == ':'
                                     ? text_.find_first_not_of(" \t\r\n", colon + 1)
                                     : std::string_view::npos;
        if (list < end && text_[list] == '[') {
          return list;
        }
      }
      if (c == '"') {
        for (++i; i < end && text_[i] != '"'; ++i) {
          i += text_[i] == '\\' ? 1 : 0;
        }
      }
      depth += c == '{' || c == '[' ? 1 : 0;
      depth -= (c == '}' || c == ']') && depth > 0 ? 1 : 0;
    }
    return std::string_view::npos;
  }

  /// A Kineto trace, event by event; what stands beside its events is checked and left out.
  void read_events(std::size_t list, std::size_t end) {
    const std::size_t close = end_of_value(list);
    const std::string around = std::string(text_.substr(at_, list + 1 - at_)) + "]" +
                               std::string(text_.substr(close, end - close));
    if (const auto rest = parse_config(around, "", ConfigSyntax::json); !rest) {
      refuse_syntax(rest.error());
      return;
    }
    const auto advance = [&](std::size_t to) {
      line_ += std::count(text_.begin() + static_cast<std::ptrdiff_t>(at_),
                          text_.begin() + static_cast<std::ptrdiff_t>(to), '\n');
      at_ = to;
    };
    KinetoReader reader(builder_, mistakes_);
    advance(list + 1);
    const std::int64_t line = line_;
    while (skip_space() && at_ + 1 < close) {
      const std::size_t stop = std::min(end_of_value(at_), close - 1);
      const auto event = parse_config(text_.substr(at_, stop - at_), "", ConfigSyntax::json);
      if (!event) {
        refuse_syntax(event.error());
        return;
      }
      reader.collect(*event, line_);
      advance(stop);
      skip_space();
      const bool more = at_ + 1 < close;
      const bool comma = more && text_[at_] == ',';
      advance(comma ? at_ + 1 : at_);
      skip_space();
      if (more && (!comma || at_ + 1 >= close)) {
        complete_ = false;
        mistakes_.add(fmt::format("line {}", line_), std::string(1, text_[at_]),
                      comma ? "an event after the comma" : "a comma or ]");
        return;
      }
    }
    advance(end);
    complete_ = reader.finish(line) && complete_;
  }

  void refuse_syntax(const Error& error) {
    complete_ = false;
    for (const Mistake& mistake : error.mistakes) {
      const std::size_t colon = mistake.where.rfind(':');
      const auto line = natural(colon == std::string::npos ? std::string_view()
                                                           : mistake.where.substr(colon + 1));
      mistakes_.add(fmt::format("line {}", line_ + static_cast<std::int64_t>(line.value_or(1)) - 1),
                    mistake.found, mistake.expected);
    }
  }

  void wrong(const ConfigNode& node, std::string_view field, std::string expected) {
    complete_ = false;
    mistakes_.add(fmt::format("line {}: {}", line_ + node.line - 1, field), node.shown(),
                  std::move(expected));
  }

  void read_top(const ConfigNode& node, bool first) {
    if (node.kind == ConfigNode::Kind::sequence) {
      for (const ConfigNode& item : node.items) {
        read_object(item, first);
        first = false;
      }
      return;
    }
    if (const ConfigNode* graph = node.find("workload_graph")) {
      for (const ConfigNode& item : graph->items) {
        read_graph_node(item);
      }
      return;
    }
    if (read_foreign(node)) {
      return;
    }
    read_object(node, first);
  }

  /// PyTorch's execution traces. True when it was one.
  bool read_foreign(const ConfigNode& node) {
    if (node.find("schema") == nullptr || node.find("nodes") == nullptr) {
      return false;
    }
    complete_ = false;
    mistakes_.add("nodes", "a PyTorch execution trace",
                  "a trace with durations of kernels, which this one does not have: the Kineto "
                  "trace of the same run (torch.profiler's export_chrome_trace), or the Chakra "
                  "trace that chakra_trace_link and chakra_converter make of both");
    return true;
  }

  void read_object(const ConfigNode& node, bool first) {
    if (node.kind != ConfigNode::Kind::map) {
      wrong(node, "node", "an object");
      return;
    }
    const bool metadata = first && node.find("id") == nullptr && node.find("name") == nullptr &&
                          node.find("type") == nullptr;
    if (metadata) {
      read_metadata(node);
      return;
    }
    record_.clear();
    for (const ConfigField& field : node.fields) {
      read_field(snake_case(field.name), field.value);
    }
    builder_.add(record_);
  }

  void read_metadata(const ConfigNode& node) {
    for (const ConfigField& field : node.fields) {
      if (field.name != "version" && field.name != "attr") {
        wrong(field.value, field.name, "version or attr");
      }
    }
    const ConfigNode* version = node.find("version");
    if (version != nullptr && !is_schema(version->text)) {
      wrong(*version, "version", std::string(kSchemas));
    }
  }

  void read_field(const std::string& field, const ConfigNode& value) {
    if (field == "id") {
      record_.id = read_natural(field, value);
    } else if (field == "name") {
      record_.name = read_text(field, value);
    } else if (field == "type") {
      record_.type = read_type(value);
    } else if (field == "ctrl_deps" || field == "data_deps") {
      read_dependencies(field, value);
    } else if (field == "duration_micros") {
      record_.duration_micros = read_natural(field, value);
    } else if (field == "inputs") {
      const ConfigNode* values = value.find("values");
      record_.input_values = values == nullptr ? "" : read_text("inputs.values", *values);
    } else if (field == "attr") {
      for (const ConfigNode& item : value.items) {
        read_attribute(item);
      }
    } else if (field != "outputs" && field != "start_time_micros") {
      wrong(
          value, field,
          "a field of a node" + did_you_mean(field, {"id", "name", "type", "ctrl_deps", "data_deps",
                                                     "start_time_micros", "duration_micros",
                                                     "inputs", "outputs", "attr"}));
    }
  }

  void read_attribute(const ConfigNode& node) {
    const ConfigNode* name = node.find("name");
    if (name == nullptr) {
      wrong(node, "attr", "an attribute with a name");
      return;
    }
    std::optional<Value> found;
    for (const ConfigField& field : node.fields) {
      const std::string field_name = snake_case(field.name);
      if (!is_value_field(field_name)) {
        if (field_name != "name" && field_name != "doc_string") {
          wrong(field.value, "attr." + field.name, "name, doc_string or a value as int64_val");
        }
        continue;
      }
      found = typed_value(field_name, field.value);
      if (!found) {
        wrong(field.value, fmt::format("attr '{}': {}", name->text, field.name),
              "a value of this type");
        return;
      }
    }
    set(node, name->text, found.value_or(Value{}));
  }

  void set(const ConfigNode& node, std::string_view name, const Value& value) {
    const auto known = attribute_of(name);
    if (known && !record_.set(*known, value)) {
      wrong(node, name, "each attribute once");
    }
  }

  /// Fields as Chakra's feeder names them.
  void read_graph_node(const ConfigNode& node) {
    record_.clear();
    for (const ConfigField& field : node.fields) {
      const std::string& name = field.name;
      if (name == "Id" || name == "Name" || name == "NodeType") {
        read_field(name == "Id" ? "id" : name == "Name" ? "name" : "type", field.value);
      } else if (name == "runtime") {
        record_.duration_micros = read_natural(name, field.value);
      } else if (name == "data_deps" || name == "ctrl_deps" || name == "inputs" ||
                 name == "outputs") {
        read_field(name, field.value);
      } else if (name == "dataDeps" || name == "ctrlDeps") {
        read_field(snake_case(name), field.value);
      } else if (attribute_of(name)) {
        const auto value = bare_value(field.value);
        if (!value) {
          wrong(field.value, name, "a number, text, true or false, or a list of these");
        }
        set(field.value, name, value.value_or(Value{}));
      } else {
        wrong(field.value, name,
              "Id, Name, NodeType, runtime, data_deps, ctrl_deps or an attribute");
      }
    }
    if (node.kind != ConfigNode::Kind::map) {
      wrong(node, "workload_graph", "an object per node");
    }
    builder_.add(record_);
  }

  std::uint64_t read_natural(std::string_view field, const ConfigNode& node) {
    const auto value = natural(node.text);
    if (node.kind != ConfigNode::Kind::scalar || !value) {
      wrong(node, field, "a whole number of 64 bits, not negative");
    }
    return value.value_or(0);
  }

  std::string_view read_text(std::string_view field, const ConfigNode& node) {
    if (node.kind != ConfigNode::Kind::scalar || node.text.find('\0') != std::string::npos) {
      wrong(node, field, "text without NUL");
      return {};
    }
    return node.text;
  }

  std::int64_t read_type(const ConfigNode& node) {
    const auto name = std::find(kNodeTypes.begin(), kNodeTypes.end(), node.text);
    if (name != kNodeTypes.end()) {
      return name - kNodeTypes.begin();
    }
    const auto number = parse_integer(node.text);
    if (!number) {
      wrong(node, "type",
            "a node type such as COMP_NODE" +
                did_you_mean(node.text, {kNodeTypes.begin(), kNodeTypes.end()}));
    }
    return number.value_or(0);
  }

  void read_dependencies(std::string_view field, const ConfigNode& node) {
    if (node.kind != ConfigNode::Kind::sequence) {
      wrong(node, field, "a list of ids");
    }
    for (const ConfigNode& item : node.items) {
      record_.dependencies.push_back(read_natural(field, item));
    }
  }

  std::string_view text_;
  ProgramBuilder& builder_;
  Mistakes& mistakes_;
  std::size_t at_ = 0;
  std::int64_t line_ = 1;
  NodeRecord record_;
  bool complete_ = true;
};

}  // namespace

void read_json_trace(std::string_view text, ProgramBuilder& builder, Mistakes& mistakes) {
  JsonReader(text, builder, mistakes).run();
}

}  // namespace orrery::chakra
