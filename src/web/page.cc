// SPDX-License-Identifier: Apache-2.0
#include "web/page.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>

#include "base/file.h"
#include "report/json_writer.h"
#include "report/schemas.h"
#include "web/bundle_text.h"
#include "web/schema_text.h"

namespace orrery::web {
namespace {

/// The field that differs from run to run of one input.
constexpr std::string_view kClocked = "\"timing\"";

/// Copies JSON value by value.
class Embedder {
 public:
  Embedder(std::string_view json, std::size_t most_items) : rest_(json), most_items_(most_items) {}

  std::string run() {
    value(true);
    return std::move(text_);
  }

 private:
  static bool is_space(char c) { return c == ' ' || c == '\n' || c == '\r' || c == '\t'; }

  /// Returns the next character that is no white space, '\0' at the end.
  char peek() {
    while (!rest_.empty() && is_space(rest_.front())) {
      rest_.remove_prefix(1);
    }
    return rest_.empty() ? '\0' : rest_.front();
  }

  std::string_view taken(std::size_t length) {
    const std::string_view piece = rest_.substr(0, length);
    rest_.remove_prefix(piece.size());
    return piece;
  }

  /// Takes a string with its quotes.
  std::string_view quoted() {
    std::size_t end = 1;
    while (end < rest_.size() && rest_[end] != '"') {
      end += rest_[end] == '\\' ? 2 : 1;
    }
    return taken(end + 1);
  }

  void put(std::string_view piece) {
    if (skipping_ > 0) {
      return;
    }
    for (std::size_t mark = piece.find('<'); mark != piece.npos; mark = piece.find('<')) {
      text_ += piece.substr(0, mark);
      text_ += "\\u003c";
      piece.remove_prefix(mark + 1);
    }
    text_ += piece;
  }

  void value(bool outermost) {
    switch (peek()) {
      case '{':
        object(outermost);
        return;
      case '[':
        list();
        return;
      case '"':
        put(quoted());
        return;
      default:
        put(taken(std::min(rest_.size(), rest_.find_first_of(",]} \n\r\t"))));
    }
  }

  void object(bool outermost) {
    taken(1);
    put("{");
    bool first = true;
    while (peek() == '"') {
      const std::string_view key = quoted();
      const bool left_out = outermost && key == kClocked;
      skipping_ += left_out ? 1 : 0;
      put(first ? "" : ",");
      put(key);
      put(":");
      peek();
      taken(1);
      value(false);
      skipping_ -= left_out ? 1 : 0;
      first = first && left_out;
      next_of();
    }
    taken(1);
    put("}");
  }

  void list() {
    taken(1);
    put("[");
    for (std::size_t items = 0; peek() != ']' && peek() != '\0'; ++items) {
      const bool cut = items >= most_items_;
      skipping_ += cut ? 1 : 0;
      put(items == 0 ? "" : ",");
      value(false);
      skipping_ -= cut ? 1 : 0;
      next_of();
    }
    taken(1);
    put("]");
  }

  void next_of() {
    if (peek() == ',') {
      taken(1);
    }
  }

  std::string_view rest_;
  std::size_t most_items_;
  std::string text_;
  int skipping_ = 0;  ///< values around that are left out
};

/// Schemas of results that do not declare their fields.
struct KeptSchema {
  std::string_view command;
  std::string_view text;
};
constexpr auto kKept = std::to_array<KeptSchema>({
    {"plan", kPlanSchema},
    {"sweep", kRowsSchema},
    {"validate", kValidateSchema},
    {"flow", kFlowSchema},
    {"astra", kAstraSchema},
});

std::string schema_of(std::string_view command) {
  std::string declared = report::declared_schema(command);
  if (!declared.empty()) {
    return declared;
  }
  const auto* const kept = std::ranges::find(kKept, command, &KeptSchema::command);
  return kept == kKept.end() ? "null" : std::string(kept->text);
}

std::string block(std::string_view id, std::string_view json) {
  return fmt::format("<script type=\"application/json\" id=\"{}\">{}</script>\n", id, json);
}

/// `cut`: lists end after so many items; 0: none does.
std::string about(const Page& page, std::size_t cut) {
  std::string text;
  {
    report::JsonWriter json([&](std::string_view piece) { text += piece; });
    json.begin_object();
    json.key("command").value(page.command).key("version").value(page.version);
    json.key("cut").value(cut);
    json.key("extra").number_text(page.extra.empty() ? "{}" : page.extra);
    json.end_object();
  }
  return embedded(text, SIZE_MAX);
}

/// Returns the page's text without the schema's white space and its marks of standard and licence.
std::string text_with(const Page& page, const std::string& schema, std::size_t most_items) {
  std::string text = fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"{}\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<title>orrery {}</title>\n<style>{}</style>\n</head>\n<body>\n"
      "<noscript>A script in this page draws it from the JSON in it; please allow scripts."
      "</noscript>\n<main id=\"report\"></main>\n",
      kPolicy, page.command, kStyle);
  text += block("about", about(page, most_items == SIZE_MAX ? 0 : most_items));
  text += block("result", embedded(page.result, most_items));
  text += block("schema", schema);
  text += fmt::format("<script>{}</script>\n</body>\n</html>\n", kScript);
  return text;
}

}  // namespace

std::string embedded(std::string_view json, std::size_t most_items) {
  return Embedder(json, most_items).run();
}

std::string page_text(const Page& page) {
  constexpr std::array<std::size_t, 6> kFewer{SIZE_MAX, 5000, 1000, 300, 100, 30};
  const std::string schema = embedded(schema_of(page.command), SIZE_MAX);
  std::string text;
  for (const std::size_t most_items : kFewer) {
    text = text_with(page, schema, most_items);
    if (text.size() <= kMostBytes) {
      break;
    }
  }
  return text;
}

Result<void> write_page(const std::string& path, const Page& page) {
  return write_file(path, page_text(page));
}

}  // namespace orrery::web
