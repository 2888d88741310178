// SPDX-License-Identifier: Apache-2.0
#include "report/node_json.h"

#include "base/reader.h"

namespace orrery::report {

void write_node(JsonWriter& json, const ConfigNode& node) {
  switch (node.kind) {
    case ConfigNode::Kind::null:
      json.null();
      break;
    case ConfigNode::Kind::scalar:
      if (const auto integer = parse_integer(node.text); integer && !node.quoted) {
        json.value(*integer);
      } else if (const auto number = parse_number(node.text); number && !node.quoted) {
        json.value(*number);
      } else if (const auto boolean = parse_bool(node.text); boolean && !node.quoted) {
        json.value(*boolean);
      } else {
        json.value(node.text);
      }
      break;
    case ConfigNode::Kind::sequence:
      json.array(node.items, [&](const ConfigNode& item) { write_node(json, item); });
      break;
    case ConfigNode::Kind::map:
      json.begin_object();
      for (const ConfigField& field : node.fields) {
        json.key(field.name);
        write_node(json, field.value);
      }
      json.end_object();
      break;
  }
}

}  // namespace orrery::report
