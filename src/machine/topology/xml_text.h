// SPDX-License-Identifier: Apache-2.0
/// XML elements and attributes with the line of each mistake. Private to the folder.
#pragma once

#include <algorithm>
#include <pugixml.hpp>
#include <string>
#include <string_view>

#include "base/reader.h"
#include "base/result.h"

namespace orrery::topology {

class XmlText {
 public:
  XmlText(std::string_view text, std::string file) : text_(text), file_(std::move(file)) {
    const pugi::xml_parse_result parsed =
        document_.load_buffer(text.data(), text.size(), pugi::parse_default, pugi::encoding_utf8);
    if (!parsed) {
      error_.add({where(parsed.offset), {}, {}, std::string("no XML: ") + parsed.description()});
    }
    const std::size_t type = text.find("<!DOCTYPE");
    const std::size_t end = text.find_first_of("[>", std::min(type, text.size()));
    if (end != std::string_view::npos && text[end] == '[') {
      error_.add({where(static_cast<std::ptrdiff_t>(type)), {}, {}, "a DOCTYPE without entities"});
    }
  }

  const pugi::xml_document& document() const { return document_; }
  Error& error() { return error_; }
  /// Returns all mistakes: of a flood the first ones, and how many more there are.
  Error take() {
    if (found_ > kMostMistakes) {
      error_.add({file_, {}, {}, "and " + std::to_string(found_ - kMostMistakes) + " more"});
    }
    return std::move(error_);
  }

  std::string where(std::ptrdiff_t offset) const {
    const auto end = std::min<std::size_t>(
        static_cast<std::size_t>(std::max<std::ptrdiff_t>(offset, 0)), text_.size());
    const auto lines =
        std::count(text_.begin(), text_.begin() + static_cast<std::ptrdiff_t>(end), '\n');
    return file_ + ":" + std::to_string(lines + 1);
  }
  void mistake(const pugi::xml_node& node, const std::string& attribute, std::string expected) {
    if (++found_ <= kMostMistakes) {  // each costs a walk through the text
      const pugi::xml_attribute found = node.attribute(attribute.c_str());
      const bool lacks = !attribute.empty() && !found;
      error_.add({where(node.offset_debug()),
                  node.name() + (attribute.empty() ? "" : "." + attribute), found.value(),
                  (lacks ? "missing; expected " : "") + std::move(expected)});
    }
  }
  std::string text(const pugi::xml_node& node, const char* attribute) {
    const pugi::xml_attribute found = node.attribute(attribute);
    if (!found || *found.value() == '\0') {
      mistake(node, attribute, "a text");
    }
    return found.value();
  }
  std::int64_t number(const pugi::xml_node& node, const char* attribute, std::int64_t least,
                      std::int64_t most) {
    const auto value = parse_integer(node.attribute(attribute).value());
    if (!value || *value < least || *value > most) {
      mistake(node, attribute,
              "a whole number from " + std::to_string(least) + " to " + std::to_string(most));
      return least;
    }
    return *value;
  }

 private:
  static constexpr std::size_t kMostMistakes = 20;
  std::string_view text_;
  std::string file_;
  pugi::xml_document document_;
  Error error_;
  std::size_t found_ = 0;
};

}  // namespace orrery::topology
