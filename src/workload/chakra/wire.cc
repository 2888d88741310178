// SPDX-License-Identifier: Apache-2.0
#include "workload/chakra/wire.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>

#include "workload/chakra/field_reader.h"

namespace orrery::chakra {
namespace {

/// Names of the list messages by (field number - 4) / 2.
constexpr std::array<std::string_view, 15> kListNames{
    "DoubleList",   "FloatList",    "Int32List",  "Int64List",   "Uint32List",
    "Uint64List",   "Sint32List",   "Sint64List", "Fixed32List", "Fixed64List",
    "Sfixed32List", "Sfixed64List", "BoolList",   "StringList",  "BytesList"};

void read_bools(std::string_view message, Value& list, Problem& problem) {
  if (list.kind != Value::Kind::bool_list) {
    list = Value::bools();  // a list given in two parts is one list
  }
  FieldReader entries(message, problem);
  while (entries.next()) {
    if (entries.number() == 1) {
      entries.varints("values", [&](std::uint64_t entry) { list.append(entry != 0); });
    } else {
      entries.skip();
    }
  }
}

/// A list that nothing reads: its entries are of the schema's kind, or protobuf would refuse the
/// file.
void check_list(std::uint32_t number, std::string_view message, Problem& problem) {
  FieldReader entries(message, problem);
  while (entries.next()) {
    if (entries.number() != 1) {
      entries.skip();
      continue;
    }
    switch (number) {
      case 4:   // double
      case 22:  // fixed64
      case 26:  // sfixed64
        entries.check_fixed("values", WireType::fixed64, sizeof(std::uint64_t));
        break;
      case 6:   // float
      case 20:  // fixed32
      case 24:  // sfixed32
        entries.check_fixed("values", WireType::fixed32, sizeof(std::uint32_t));
        break;
      case 30:  // string
        entries.text("values");
        break;
      case 32:  // bytes
        entries.bytes("values");
        break;
      default:
        entries.varints("values", [](std::uint64_t) {});
    }
  }
}

/// One of the oneof's varints; false when the field is none of them.
bool read_varint(FieldReader& fields, Value& value) {
  const auto narrow = [](std::uint64_t wire) {  // as protobuf: the low 32 bits
    return static_cast<std::uint32_t>(wire);
  };
  switch (fields.number()) {
    case 7:
      value = Value::integer(static_cast<std::int32_t>(narrow(fields.varint("int32_val"))));
      return true;
    case 9:
      value = Value::integer(static_cast<std::int64_t>(fields.varint("int64_val")));
      return true;
    case 11:
      value = Value::natural(narrow(fields.varint("uint32_val")));
      return true;
    case 13:
      value = Value::natural(fields.varint("uint64_val"));
      return true;
    case 15:
      value = Value::integer(zigzag(narrow(fields.varint("sint32_val"))));
      return true;
    case 17:
      value = Value::integer(zigzag(fields.varint("sint64_val")));
      return true;
    case 27:
      value = Value::boolean(fields.varint("bool_val") != 0);
      return true;
    default:
      return false;
  }
}

/// One of the oneof's numbers of fixed width.
bool read_fixed(FieldReader& fields, Value& value) {
  switch (fields.number()) {
    case 3:
      value = Value::real(std::bit_cast<double>(fields.fixed64("double_val")));
      return true;
    case 5:
      value = Value::real(static_cast<double>(std::bit_cast<float>(fields.fixed32("float_val"))));
      return true;
    case 19:
      value = Value::natural(fields.fixed32("fixed32_val"));
      return true;
    case 21:
      value = Value::natural(fields.fixed64("fixed64_val"));
      return true;
    case 23:
      value = Value::integer(static_cast<std::int32_t>(fields.fixed32("sfixed32_val")));
      return true;
    case 25:
      value = Value::integer(static_cast<std::int64_t>(fields.fixed64("sfixed64_val")));
      return true;
    default:
      return false;
  }
}

/// One field of the oneof; false when it is none of it.
bool read_value(FieldReader& fields, Value& value, Problem& problem) {
  if (read_varint(fields, value) || read_fixed(fields, value)) {
    return true;
  }
  const std::uint32_t number = fields.number();
  switch (number) {
    case 28:
      read_bools(fields.bytes("bool_list"), value, problem);
      return true;
    case 29:
      value = Value::string(fields.text("string_val"));
      return true;
    case 31:
      fields.bytes("bytes_val");
      value = Value::other("bytes");
      return true;
    default:
      if (number < 4 || number > 32 || number % 2 != 0) {
        return false;
      }
      const std::string_view list = kListNames[static_cast<std::size_t>(number - 4) / 2];
      check_list(number, fields.bytes(list), problem);
      value = Value::other(list);
      return true;
  }
}

/// An IOInfo; its values.
std::string_view read_values(std::string_view message, Problem& problem) {
  FieldReader fields(message, problem);
  std::string_view values;
  while (fields.next()) {
    switch (fields.number()) {
      case 1:
        values = fields.text("values");
        break;
      case 2:
        fields.text("shapes");
        break;
      case 3:
        fields.text("types");
        break;
      default:
        fields.skip();
    }
  }
  return values;
}

/// Returns whether an attribute names ranks or groups.
bool is_of_rank(Attribute attribute) {
  return attribute == Attribute::pg_name || attribute == Attribute::comm_src ||
         attribute == Attribute::comm_dst;
}

void read_node(std::string_view message, NodeRecord& record, Problem& problem) {
  FieldReader fields(message, problem);
  const auto depend = [&](std::uint64_t id) { record.dependencies.push_back(id); };
  std::size_t begin = 0;  // of the field
  for (; fields.next(); begin = message.size() - fields.rest().size()) {
    switch (fields.number()) {
      case 1:
        record.id = fields.varint("id");
        break;
      case 2:
        record.name = fields.text("name");
        break;
      case 3:
        record.type = static_cast<std::int64_t>(fields.varint("type"));
        break;
      case 4:
        fields.varints("ctrl_deps", depend);
        break;
      case 5:
        fields.varints("data_deps", depend);
        break;
      case 7:
        record.duration_micros = fields.varint("duration_micros");
        break;
      case 8:
        if (const auto values = read_values(fields.bytes("inputs"), problem); !values.empty()) {
          record.input_values = values;  // an IOInfo given in two parts is one
        }
        break;
      case 9:
        read_values(fields.bytes("outputs"), problem);
        break;
      case kAttributeField:
        if (const auto known = read_attribute(fields.bytes("attr"), record, problem);
            known && is_of_rank(*known)) {
          record.of_rank.push_back({*known, begin, message.size() - fields.rest().size()});
        }
        break;
      default:
        fields.skip();
    }
  }
}

}  // namespace

/// Known attributes by name first: only others need the check that their name is text.
std::optional<Attribute> read_attribute(std::string_view message, NodeRecord& record,
                                        Problem& problem) {
  FieldReader fields(message, problem);
  std::string_view name;
  bool replaced_text = true;  // what a later name replaced
  Value value;
  while (fields.next()) {
    if (fields.number() == 1) {
      replaced_text = replaced_text && is_text(name);
      name = fields.bytes("attr.name");
    } else if (fields.number() == 2) {
      fields.text("attr.doc_string");
    } else if (!read_value(fields, value, problem)) {
      fields.skip();
    }
  }
  const auto known = attribute_of(name);
  if (problem.expected != nullptr) {
    return std::nullopt;
  }
  if (!replaced_text || (!known && !is_text(name))) {
    problem = {"attr.name", kText};
  } else if (known && !record.set(*known, value)) {
    problem = {kAttributeNames[static_cast<std::size_t>(*known)], "each attribute once"};
  }
  return known;
}

std::size_t read_length(std::string_view bytes, std::uint64_t& length) {
  constexpr std::size_t kLongest = 10;
  length = 0;
  for (std::size_t i = 0; i < std::min(bytes.size(), kLongest); ++i) {
    const auto byte = static_cast<unsigned char>(bytes[i]);
    length |= static_cast<std::uint64_t>(byte & 0x7FU) << (7 * i);
    if (byte < 0x80) {
      return i + 1;
    }
  }
  return 0;
}

void WireReader::malformed(std::string_view field, std::string found, std::string expected) {
  complete_ = false;
  if (found.empty()) {
    expected.insert(0, "expected ");
  }
  mistakes_.add(
      fmt::format("record {} at byte {}{}{}", number_, start_, field.empty() ? "" : ": ", field),
      std::move(found), std::move(expected));
}

bool WireReader::next_bytes(std::string_view& record) {
  bytes_.skip(length_);
  length_ = 0;
  start_ = bytes_.position();
  if (bytes_.left() == 0) {
    return false;
  }
  constexpr std::size_t kLongestVarint = 10;
  bytes_.want(kLongestVarint);
  std::uint64_t length = 0;
  const std::size_t digits = read_length(bytes_.view(), length);
  if (digits == 0) {
    malformed({}, {}, "the length of a record as a varint");
    return false;
  }
  bytes_.skip(digits);
  if (length > bytes_.left() || !bytes_.want(length)) {
    malformed({}, fmt::format("a length of {} bytes", length),
              fmt::format("at most the {} that are left", bytes_.left()));
    return false;
  }
  length_ = static_cast<std::size_t>(length);
  record = bytes_.view().substr(0, length_);
  return true;
}

bool WireReader::read_metadata() {
  std::string_view record;
  if (!next_bytes(record)) {
    if (complete_) {
      malformed({}, "an empty file", "a GlobalMetadata record, then one per node");
    }
    return false;
  }
  Problem problem;
  std::string_view version;
  FieldReader fields(record, problem);
  while (fields.next()) {
    if (fields.number() == 1) {
      version = fields.text("version");
    } else if (fields.number() == 2) {
      fields.bytes("attr");
    } else {
      fields.skip();
    }
  }
  if (problem.expected != nullptr) {
    malformed(problem.field, {}, fmt::format("a GlobalMetadata record ({})", problem.expected));
    return false;
  }
  if (!is_schema(version)) {
    mistakes_.add("version", std::string(version), std::string(kSchemas));
    return false;
  }
  return true;
}

bool WireReader::next(NodeRecord& record) {
  std::string_view bytes;
  while (++number_, !mistakes_.flooded() && next_bytes(bytes)) {
    record.clear();
    Problem problem;
    record.begin = bytes_.position();
    record.end = record.begin + bytes.size();
    read_node(bytes, record, problem);
    if (problem.expected == nullptr) {
      return true;
    }
    malformed(problem.field, {}, problem.expected);
  }
  return false;
}

void read_et(ByteWindow& bytes, ProgramBuilder& builder, FileShape& shape, Mistakes& mistakes) {
  shape.clear();
  WireReader reader(bytes, mistakes);
  if (!reader.read_metadata()) {
    return;
  }
  shape.add_record(bytes.position(), bytes.position() + reader.length());
  NodeRecord record;
  while (!mistakes.flooded() && reader.next(record)) {
    builder.add(record);
    shape.add(record);
  }
  if (reader.complete() && !mistakes.flooded()) {
    builder.finish();
  }
}

}  // namespace orrery::chakra
