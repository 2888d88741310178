// SPDX-License-Identifier: Apache-2.0
#include "report/fields.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <set>

namespace orrery::report {

std::string json_object(const std::function<void(Fields&)>& declare) {
  return json_text([&](JsonWriter& json) {
    json.begin_object();
    JsonFields fields(json);
    declare(fields);
    json.end_object();
  });
}

void JsonFields::leaf(const Declared& field, const Leaf& value) {
  if (!field.name.empty()) {
    json_.key(field.name);
  }
  std::visit(
      [&]<class Plain>(const Plain& plain) {
        if constexpr (std::is_same_v<Plain, std::monostate>) {
          json_.null();
        } else {
          json_.value(plain);
        }
      },
      value);
}

void JsonFields::begin(const Declared& field, Shape shape) {
  if (!field.name.empty()) {
    json_.key(field.name);
  }
  if (shape == Shape::object || shape == Shape::map) {
    json_.begin_object();
  } else {
    json_.begin_array();
  }
}

void JsonFields::end(Shape shape) {
  if (shape == Shape::object || shape == Shape::map) {
    json_.end_object();
  } else {
    json_.end_array();
  }
}

void FlatFields::leaf(const Declared& field, const Leaf& value) {
  if (lists_ == 0) {
    values_.push_back({prefix_ + std::string(field.name),
                       std::visit(
                           []<class Plain>(const Plain& plain) {
                             if constexpr (std::is_same_v<Plain, std::monostate>) {
                               return std::string();
                             } else {
                               return fmt::format("{}", plain);
                             }
                           },
                           value)});
  }
}

void FlatFields::begin(const Declared& field, Shape shape) {
  if (shape == Shape::list || shape == Shape::row) {
    ++lists_;
  }
  lengths_.push_back(prefix_.size());
  prefix_ += std::string(field.name) + '.';
}

void FlatFields::end(Shape shape) {
  if (shape == Shape::list || shape == Shape::row) {
    --lists_;
  }
  prefix_.resize(lengths_.back());
  lengths_.pop_back();
}

SchemaFields::SchemaFields(std::string_view title, std::string_view sentence) : title_(title) {
  add({{}, sentence}, Shape::object, "object");
}

void SchemaFields::add(const Declared& field, std::optional<Shape> shape, std::string type) {
  open_.push_back({.name = std::string(field.name),
                   .sentence = std::string(field.sentence),
                   .optional = field.optional || (!loose_.empty() && loose_.back() == open_.size()),
                   .nullable = field.nullable,
                   .choices = {field.choices.begin(), field.choices.end()},
                   .shape = shape,
                   .type = std::move(type),
                   .inner = {}});
}

void SchemaFields::leaf(const Declared& field, const Leaf& value) {
  constexpr std::array<const char*, 5> kTypes{"boolean", "integer", "number", "string", "null"};
  add(field, {}, kTypes[value.index()]);
  close();
}

void SchemaFields::begin(const Declared& field, Shape shape) {
  const bool list = shape == Shape::list || shape == Shape::row;
  add(field, shape, list ? "array" : "object");
}

void SchemaFields::loosen(bool begins) {
  if (begins) {
    loose_.push_back(open_.size());
  } else {
    loose_.pop_back();
  }
}

void SchemaFields::close() {
  Node closed = std::move(open_.back());
  open_.pop_back();
  open_.back().inner.push_back(std::move(closed));
}

void SchemaFields::end(Shape shape) {
  assert(open_.back().shape == shape && open_.size() > 1 && "begin and end belong together");
  (void)shape;
  close();
}

std::string SchemaFields::schema() const {
  assert(open_.size() == 1 && "begin and end belong together");
  return json_text([&](JsonWriter& json) {
    json.begin_object();
    json.key("$schema").value("https://json-schema.org/draft/2020-12/schema");
    json.key("$comment").value("SPDX-License-Identifier: Apache-2.0");
    json.key("title").value(title_);
    write(json, open_.front());
    json.end_object();
  });
}

void SchemaFields::write(JsonWriter& json, const Node& node) {
  json.key("type");
  if (node.nullable) {
    json.begin_array().value(node.type).value("null").end_array();
  } else {
    json.value(node.type);
  }
  if (!node.sentence.empty()) {
    json.key("description").value(node.sentence);
  }
  if (!node.choices.empty()) {
    json.key("enum").values(node.choices);
  }
  if (node.shape) {
    write_inner(json, node);
  }
}

void SchemaFields::write_inner(JsonWriter& json, const Node& node) {
  if (node.shape == Shape::row) {
    std::set<std::string> types;
    for (const Node& item : node.inner) {
      types.insert(item.type);
    }
    json.key("items").begin_object().key("type").values(types).end_object();
    return;
  }
  if (node.shape != Shape::object) {
    json.key(node.shape == Shape::map ? "additionalProperties" : "items").begin_object();
    write(json, node.inner.front());
    json.end_object();
    return;
  }
  json.key("properties").begin_object();
  for (const Node& field : node.inner) {
    json.key(field.name).begin_object();
    write(json, field);
    json.end_object();
  }
  json.end_object();
  json.key("required").array(node.inner, [&](const Node& field) {
    if (!field.optional) {
      json.value(field.name);
    }
  });
  json.key("additionalProperties").value(false);
}

}  // namespace orrery::report
