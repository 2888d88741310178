// SPDX-License-Identifier: Apache-2.0
#include "workload/chakra/tensors.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <utility>

#include "workload/chakra/byte_window.h"
#include "workload/chakra/field_reader.h"
#include "workload/chakra/mistakes.h"
#include "workload/chakra/name_table.h"
#include "workload/chakra/trace_files.h"
#include "workload/chakra/wire.h"

namespace orrery::chakra {
namespace {

constexpr std::uint32_t kInputsField = 8;
constexpr std::uint32_t kOutputsField = 9;
constexpr std::uint32_t kStringListField = 30;

/// "2097152", or as STAGE writes it "2097152.0".
std::optional<std::int64_t> whole_bytes(std::string_view text) {
  const std::size_t point = std::min(text.find('.'), text.size());
  const std::string_view fraction = text.substr(std::min(point + 1, text.size()));
  std::int64_t bytes = 0;
  const auto read = std::from_chars(text.data(), text.data() + point, bytes);
  const bool whole = read.ec == std::errc() && read.ptr == text.data() + point && bytes >= 0 &&
                     fraction.find_first_not_of('0') == std::string_view::npos;
  return whole ? std::optional(bytes) : std::nullopt;
}

/// A TensorValue is what a tensor value of PyTorch's observer says.
struct TensorValue {
  std::uint64_t storage = 0;
  Bytes end{0};  ///< of the view in its storage
};

/// Finds the tensors in a text of nested lists.
class ValueScanner {
 public:
  explicit ValueScanner(std::string_view text) : text_(text) {}

  /// False at the end.
  bool next(TensorValue& value) {
    for (; at_ < text_.size(); ++at_) {
      const char c = text_[at_];
      if (c == '"' || c == '\'') {
        skip_quoted(c);
      } else if (c == '[') {
        const std::size_t begin = at_;
        ++at_;
        if (take_tensor(value)) {
          return true;
        }
        at_ = begin;
      }
    }
    return false;
  }

 private:
  /// [tensor, storage, offset, elements, bytes each, 'device'] behind its bracket.
  bool take_tensor(TensorValue& value) {
    std::array<std::uint64_t, 5> numbers{};
    for (std::uint64_t& number : numbers) {
      if (!take_number(number)) {
        return false;
      }
    }
    if (at_ >= text_.size() || (text_[at_] != '"' && text_[at_] != '\'')) {
      return false;
    }
    skip_quoted(text_[at_]);
    ++at_;
    const auto [unused, storage, offset, elements, each] = numbers;
    const Bytes reach = (whole(offset) + whole(elements)) * whole(each).value();
    value = {storage, elements == 0 ? Bytes(0) : reach};
    return true;
  }

  /// Bytes, as they saturate.
  static Bytes whole(std::uint64_t number) {
    const auto most = static_cast<std::uint64_t>(Bytes::max().value());
    return Bytes(static_cast<std::int64_t>(std::min(number, most)));
  }

  /// A whole number, the comma behind it and blanks.
  bool take_number(std::uint64_t& number) {
    skip_blanks();
    const auto [end, problem] =
        std::from_chars(text_.data() + at_, text_.data() + text_.size(), number);
    if (problem != std::errc()) {
      return false;
    }
    at_ = static_cast<std::size_t>(end - text_.data());
    skip_blanks();
    if (at_ >= text_.size() || text_[at_] != ',') {
      return false;
    }
    ++at_;
    skip_blanks();
    return true;
  }
  void skip_blanks() {
    while (at_ < text_.size() && text_[at_] == ' ') {
      ++at_;
    }
  }
  /// Skips to the closing quote, or to the end.
  void skip_quoted(char quote) {
    for (++at_; at_ < text_.size() && text_[at_] != quote; ++at_) {
      at_ += text_[at_] == '\\' ? 1 : 0;
    }
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

class TensorReader {
 public:
  explicit TensorReader(Mistakes& mistakes) : mistakes_(mistakes) {}

  void add(const NodeRecord& record, std::string_view message) {
    record_ = &record;
    Problem problem;
    FieldReader fields(message, problem);
    while (fields.next()) {
      if (fields.number() == kInputsField || fields.number() == kOutputsField) {
        read_io(fields.bytes("io"), fields.number() == kOutputsField, problem);
      } else if (fields.number() == kAttributeField) {
        read_attribute(fields.bytes("attr"), problem);
      } else {
        fields.skip();
      }
    }
    if (problem.expected != nullptr) {
      wrong(problem.field, {}, problem.expected);
    }
  }

  TensorUses take() { return std::move(result_); }

 private:
  void wrong(std::string_view field, std::string_view found, std::string expected) {
    mistakes_.add(fmt::format("{}: {}", node_label(record_->id, record_->name), field),
                  std::string(found), std::move(expected));
  }

  void read_io(std::string_view message, bool writes, Problem& problem) {
    FieldReader fields(message, problem);
    while (fields.next()) {
      if (fields.number() != 1) {
        fields.skip();
        continue;
      }
      ValueScanner values(fields.bytes("values"));
      for (TensorValue value; values.next(value);) {
        use_storage(value, writes);
      }
    }
  }

  void use_storage(const TensorValue& value, bool writes) {
    if (value.end.is_overflow()) {
      wrong(writes ? "outputs.values" : "inputs.values", "",
            fmt::format("storage {}: at most 2^63 bytes", value.storage));
      return;
    }
    if (value.end > Bytes(0)) {
      const std::uint32_t tensor = tensor_of(fmt::format("storage {}", value.storage));
      Bytes& size = result_.tensors[tensor].size;
      size = std::max(size, value.end);
      result_.uses.push_back({record_->id, tensor, writes});
    }
  }

  void read_attribute(std::string_view message, Problem& problem) {
    FieldReader fields(message, problem);
    std::string_view name;
    std::string_view list;
    while (fields.next()) {
      if (fields.number() == 1) {
        name = fields.bytes("attr.name");
      } else if (fields.number() == kStringListField) {
        list = fields.bytes("string_list");
      } else {
        fields.skip();
      }
    }
    if (name == "inputs" || name == "outputs") {
      read_names(name, list, problem);
    }
  }

  /// name, size, name, size ...
  void read_names(std::string_view field, std::string_view list, Problem& problem) {
    FieldReader entries(list, problem);
    std::optional<std::string_view> name;
    while (entries.next()) {
      if (entries.number() != 1) {
        entries.skip();
        continue;
      }
      const std::string_view entry = entries.bytes("values");
      if (name) {
        use_named(field, *name, entry);
        name.reset();
      } else {
        name = entry;
      }
    }
    if (name) {
      wrong(field, *name, "names and sizes by turns; the last name has no size");
    }
  }

  void use_named(std::string_view field, std::string_view name, std::string_view text) {
    const std::optional<std::int64_t> size_in_bytes = whole_bytes(text);
    if (!size_in_bytes || !is_text(name)) {
      wrong(field, is_text(text) ? text : std::string_view(), "a size in whole bytes below 2^63");
      return;
    }
    const std::int64_t bytes = *size_in_bytes;
    if (bytes == 0) {
      return;
    }
    const std::uint32_t tensor = tensor_of(name);
    Bytes& size = result_.tensors[tensor].size;
    if (size != Bytes(0) && size != Bytes(bytes)) {
      wrong(field, text, fmt::format("{}, as '{}' was before", size.value(), name));
      return;
    }
    size = Bytes(bytes);
    result_.uses.push_back({record_->id, tensor, field == "outputs"});
  }

  std::uint32_t tensor_of(std::string_view name) {
    const std::uint32_t number = names_.intern(name);
    if (number == result_.tensors.size()) {
      result_.tensors.push_back({std::string(name), Bytes(0)});
    }
    return number;
  }

  Mistakes& mistakes_;
  const NodeRecord* record_ = nullptr;
  NameTable names_;
  TensorUses result_;
};

Result<TensorUses> read(ByteWindow& bytes, const std::string& name) {
  Mistakes mistakes;
  mistakes.begin(name);
  WireReader records(bytes, mistakes);
  TensorReader tensors(mistakes);
  if (records.read_metadata()) {
    NodeRecord record;
    while (records.next(record)) {
      tensors.add(record, bytes.view().substr(0, records.length()));
    }
  }
  if (!mistakes.empty()) {
    return fail(mistakes.take());
  }
  return tensors.take();
}

}  // namespace

Result<TensorUses> load_tensors(const std::string& path) {
  auto file = identify(path);
  if (!file) {
    return fail(std::move(file.error()));
  }
  ByteWindow bytes;
  if (auto opened = bytes.open(path, file->size); !opened) {
    return fail(std::move(opened.error()));
  }
  return read(bytes, path);
}

Result<TensorUses> read_tensors(std::string_view bytes, const std::string& name) {
  ByteWindow window;
  window.open(bytes);
  return read(window, name);
}

}  // namespace orrery::chakra
