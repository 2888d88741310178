// SPDX-License-Identifier: Apache-2.0
/// Fields are what a result says, declared once: JSON, CSV and the schema of both are visitors of
/// one declaration.
///
///   void declare(const Clock& clock, Fields& fields) {
///     fields.field("of_full_clock", "share of the device's full clock", clock.of_full_clock);
///   }
///
/// A declaration calls these functions in the order of the report. `sentence` is the description in
/// the schema and the label's explanation in reports for people. What is left out of a report
/// without the thing itself is a `part`; the schema has it as a field that is not required.
///
/// A schema is made of a result that holds nothing: lists then have one item T{} and parts are
/// T{} (declares_all()). So what a declaration reads of the whole result, beside its item, must
/// be there in an empty result, too.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <ranges>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "base/lists.h"
#include "base/names.h"
#include "base/units.h"
#include "report/json_writer.h"

namespace orrery::report {

/// A Leaf is one value; the last of its types is null.
using Leaf = std::variant<bool, std::int64_t, double, std::string_view, std::monostate>;

/// Returns a number, truth or text as a leaf; a Time in seconds, other quantities in their unit.
template <class T>
Leaf leaf_of(const T& value) {
  if constexpr (std::is_same_v<T, bool>) {
    return value;
  } else if constexpr (std::is_same_v<T, Time>) {
    return to_seconds(value);
  } else if constexpr (requires { value.value(); }) {
    return leaf_of(value.value());
  } else if constexpr (std::is_floating_point_v<T>) {
    return static_cast<double>(value);
  } else if constexpr (std::is_integral_v<T>) {
    return static_cast<std::int64_t>(value);
  } else {
    return std::string_view(value);
  }
}

template <class T>
inline constexpr bool kIsOptional = false;
template <class T>
inline constexpr bool kIsOptional<std::optional<T>> = true;

/// A Declared is how a field is announced to a visitor. Items of lists have no name.
struct Declared {
  std::string_view name;
  std::string_view sentence;
  bool optional = false;                       ///< left out where there is nothing to say
  std::vector<std::string_view> choices = {};  ///< all texts that it may have; empty: any
  bool nullable = false;                       ///< null where there is nothing to say
};

/// A Shape is what a field is made of. The items of a `row` are not of one type; the keys of a
/// `map` are names that the result brings along.
enum class Shape : std::uint8_t { object, map, list, row };

class Fields {
 public:
  Fields() = default;
  Fields(const Fields&) = delete;
  Fields& operator=(const Fields&) = delete;
  virtual ~Fields() = default;

  template <class T>
  void field(std::string_view name, std::string_view sentence, const T& value) {
    leaf({name, sentence}, leaf_of(value));
  }
  /// Declares a field of one of a few texts.
  void choice(std::string_view name, std::string_view sentence,
              std::vector<std::string_view> choices, std::string_view value) {
    leaf({name, sentence, false, std::move(choices)}, value);
  }
  /// Declares a field of one of the names of an enumeration.
  template <class E>
  void choice(std::string_view name, std::string_view sentence, E value) {
    std::vector<std::string_view> choices = mapped<std::string_view>(kNames<E>, &Named<E>::name);
    choice(name, sentence, std::move(choices), name_of(value));
  }
  /// Declares a number, truth or text that may be missing.
  template <class T>
  void perhaps(std::string_view name, std::string_view sentence, const std::optional<T>& value) {
    when(value.has_value(), name, sentence, value.value_or(T{}));
  }
  /// Declares a number, truth or text that is left out unless `said`.
  template <class T>
  void when(bool said, std::string_view name, std::string_view sentence, const T& value) {
    if (said || declares_all()) {
      leaf({name, sentence, true}, leaf_of(value));
    }
  }
  /// Declares a number, truth or text, null where it is not known.
  template <class T>
  void nullable(std::string_view name, std::string_view sentence, const std::optional<T>& value) {
    known({name, sentence}, value);
  }
  /// Declares an object that is always there: `write()` declares its fields.
  template <class Write>
  void object(std::string_view name, std::string_view sentence, const Write& write) {
    within({name, sentence}, Shape::object, write);
  }
  /// Declares fields that are missing together unless `said`.
  template <class Write>
  void together(bool said, const Write& write) {
    if (said || declares_all()) {
      loosen(true);
      write();
      loosen(false);
    }
  }
  /// Declares an object that may be missing: `write(value)`.
  template <class T, class Write>
  void part(std::string_view name, std::string_view sentence, const std::optional<T>& value,
            const Write& write) {
    if (value || declares_all()) {
      within({name, sentence, true}, Shape::object, [&] { write(value ? *value : T{}); });
    }
  }
  /// Declares an object, null where there is none: `write(value)`.
  template <class T, class Write>
  void nullable_part(std::string_view name, std::string_view sentence,
                     const std::optional<T>& value, const Write& write) {
    known_part({name, sentence}, value, write);
  }
  /// Declares a list of objects: `write(item)`; null for items that are an empty optional.
  /// `optional`: left out when there are none.
  template <class T, class Write>
  void list(std::string_view name, std::pair<std::string_view, std::string_view> sentences,
            const std::vector<T>& items, const Write& write, bool optional = false) {
    if (optional && items.empty() && !declares_all()) {
      return;
    }
    const auto one = [&](const T& item) {
      if constexpr (kIsOptional<T>) {
        known_part({{}, sentences.second}, item, write);
      } else {
        within({{}, sentences.second}, Shape::object, [&] { write(item); });
      }
    };
    within({name, sentences.first, optional}, Shape::list, [&] { each(items, one); });
  }
  /// Declares a list of numbers or texts, those that `of` makes of the items; null for an empty
  /// optional.
  template <class T, class Of = std::identity>
  void values(std::string_view name, std::pair<std::string_view, std::string_view> sentences,
              const std::vector<T>& items, const Of& of = {}) {
    within({name, sentences.first}, Shape::list, [&] {
      each(items, [&](const T& item) {
        const auto& value = of(item);
        if constexpr (kIsOptional<std::remove_cvref_t<decltype(value)>>) {
          known({{}, sentences.second}, value);
        } else {
          leaf({{}, sentences.second}, leaf_of(value));
        }
      });
    });
  }
  /// Declares a list of numbers or texts that is left out where it is empty.
  template <class T>
  void perhaps_values(std::string_view name,
                      std::pair<std::string_view, std::string_view> sentences,
                      const std::vector<T>& items) {
    if (!items.empty() || declares_all()) {
      within({name, sentences.first, true}, Shape::list, [&] {
        each(items, [&](const T& item) { leaf({{}, sentences.second}, leaf_of(item)); });
      });
    }
  }
  /// Declares a list of numbers or texts, null where there is none.
  template <class T>
  void nullable_values(std::string_view name,
                       std::pair<std::string_view, std::string_view> sentences,
                       const std::optional<std::vector<T>>& items) {
    if (!items && !declares_all()) {
      known<T>({name, sentences.first}, std::nullopt);
      return;
    }
    within({name, sentences.first, false, {}, true}, Shape::list, [&] {
      each(items.value_or(std::vector<T>()), [&](const T& item) {
        leaf({{}, sentences.second}, leaf_of(item));
      });
    });
  }
  /// Declares a list of rows of few values: `write(item)` calls item() for each.
  template <class T, class Write>
  void rows(std::string_view name, std::pair<std::string_view, std::string_view> sentences,
            const std::vector<T>& items, const Write& write) {
    within({name, sentences.first}, Shape::list, [&] {
      each(items, [&](const T& item) {
        within({{}, sentences.second}, Shape::row, [&] { write(item); });
      });
    });
  }
  /// Declares a value of a row.
  template <class T>
  void item(const T& value) {
    leaf({}, leaf_of(value));
  }
  /// Declares an object whose keys are names of the result: `write(add)` calls add(name, value), a
  /// Value.
  template <class Value, class Write>
  void map(std::string_view name, std::pair<std::string_view, std::string_view> sentences,
           const Write& write) {
    within({name, sentences.first}, Shape::map, [&] {
      if (declares_all()) {
        leaf({{}, sentences.second}, leaf_of(Value{}));
      } else {
        write([&](std::string_view key, const Value& value) {
          leaf({key, sentences.second}, leaf_of(value));
        });
      }
    });
  }
  /// Declares an object whose keys are names of the result and whose values are objects, or maps by
  /// `shape`: `write(item)` declares what stands at `key(item)`.
  template <class T, class Key, class Write>
  void objects(std::string_view name, std::pair<std::string_view, std::string_view> sentences,
               const std::vector<T>& items, const Key& key, const Write& write,
               Shape shape = Shape::object) {
    within({name, sentences.first}, Shape::map,
           [&] { entries(sentences.second, items, key, write, shape); });
  }
  /// Writes what objects() has between the braces, for a map that is open.
  template <class T, class Key, class Write>
  void entries(std::string_view sentence, const std::vector<T>& items, const Key& key,
               const Write& write, Shape shape = Shape::object) {
    each(items, [&](const T& item) {
      const std::string name(std::invoke(key, item));
      within({name, sentence}, shape, [&] { write(item); });
    });
  }

  /// Returns whether the visitor asks for every field, of an empty result.
  virtual bool declares_all() const { return false; }

 protected:
  virtual void leaf(const Declared& field, const Leaf& value) = 0;
  virtual void begin(const Declared& field, Shape shape) = 0;
  virtual void end(Shape shape) = 0;
  /// Fields of the object that is open may be missing from here on, or no longer.
  virtual void loosen(bool) {}

 private:
  template <class T>
  void known(Declared field, const std::optional<T>& value) {
    field.nullable = true;
    const T there = value.value_or(T{});
    leaf(field, value || declares_all() ? leaf_of(there) : Leaf(std::monostate{}));
  }
  template <class T, class Write>
  void known_part(Declared field, const std::optional<T>& value, const Write& write) {
    field.nullable = true;
    if (value || declares_all()) {
      within(field, Shape::object, [&] { write(value ? *value : T{}); });
    } else {
      leaf(field, std::monostate{});
    }
  }
  template <class Write>
  void within(const Declared& field, Shape shape, const Write& write) {
    begin(field, shape);
    write();
    end(shape);
  }
  template <class T, class Write>
  void each(const std::vector<T>& items, const Write& write) const {
    if (declares_all()) {
      write(T{});
      return;
    }
    for (const T& one : items) {
      write(one);
    }
  }
};

/// Writes what is declared into the object that is open.
class JsonFields : public Fields {
 public:
  explicit JsonFields(JsonWriter& json) : json_(json) {}

 private:
  void leaf(const Declared& field, const Leaf& value) override;
  void begin(const Declared& field, Shape shape) override;
  void end(Shape shape) override;

  JsonWriter& json_;
};

/// Returns the JSON object that `declare` fills: indented, newline at the end.
std::string json_object(const std::function<void(Fields&)>& declare);

/// Returns a result, of one or several parts, as JSON: what its declare(parts..., fields) declares.
template <class... Parts>
std::string json_of(const Parts&... parts) {
  return json_object([&](Fields& fields) { declare(parts..., fields); });
}

/// Collects numbers, truths and texts by dotted names ("breakdown_s.forward"), in the order of the
/// report. Lists are left out.
class FlatFields : public Fields {
 public:
  struct Value {
    std::string name;
    std::string text;
  };
  const std::vector<Value>& flat() const { return values_; }

 private:
  void leaf(const Declared& field, const Leaf& value) override;
  void begin(const Declared& field, Shape shape) override;
  void end(Shape shape) override;

  std::vector<Value> values_;
  std::vector<std::size_t> lengths_;  ///< of the prefix, before each open object
  std::string prefix_;
  int lists_ = 0;  ///< open ones
};

/// Collects the declarations and writes them as a JSON schema (draft 2020-12). An object has no
/// other fields than those declared.
class SchemaFields : public Fields {
 public:
  /// `title` names what prints the report, `sentence` describes it.
  SchemaFields(std::string_view title, std::string_view sentence);
  bool declares_all() const override { return true; }

  std::string schema() const;

 private:
  struct Node {
    std::string name;
    std::string sentence;
    bool optional = false;
    bool nullable = false;
    std::vector<std::string> choices;
    std::optional<Shape> shape;  ///< nothing: a leaf
    std::string type;
    std::vector<Node> inner;
  };

  void leaf(const Declared& field, const Leaf& value) override;
  void begin(const Declared& field, Shape shape) override;
  void end(Shape shape) override;
  void loosen(bool begins) override;
  void add(const Declared& field, std::optional<Shape> shape, std::string type);
  void close();
  static void write(JsonWriter& json, const Node& node);
  static void write_inner(JsonWriter& json, const Node& node);

  std::string title_;
  std::vector<Node> open_;          ///< from the whole report inwards
  std::vector<std::size_t> loose_;  ///< how many are open where fields may be missing
};

}  // namespace orrery::report
