// SPDX-License-Identifier: Apache-2.0
#include "workload/chakra/file_shape.h"

#include <algorithm>

#include "workload/chakra/field_reader.h"
#include "workload/chakra/process_groups.h"
#include "workload/chakra/wire.h"

namespace orrery::chakra {

void FileShape::clear() {
  records_.clear();
  holes_.clear();
  node_of_hole_.clear();
  usable_ = false;
}

void FileShape::add_record(std::uint64_t begin, std::uint64_t end) {
  records_.push_back({begin, end, holes_.size()});
}

void FileShape::add(const NodeRecord& record) {
  add_record(record.begin, record.end);
  for (const NodeRecord::Place& place : record.of_rank) {
    const Value& value = *record.find(place.attribute);
    holes_.push_back({record.begin + place.begin, record.begin + place.end, place.attribute,
                      static_cast<std::int64_t>(value.bits)});
    node_of_hole_.push_back(static_cast<std::uint32_t>(records_.size() - 2));
  }
}

void FileShape::finish(std::string_view bytes, const FileTrace& trace, std::int64_t rank,
                       std::uint32_t program) {
  bytes_ = bytes;
  definitions_ = trace.definitions;
  slots_ = trace.groups.size();
  rank_ = rank;
  program_ = program;
  same_for_all_ = trace.messages.empty();
  const std::vector<Node>& nodes = trace.program.nodes;
  usable_ = records_.size() == nodes.size() + 1;
  for (std::size_t i = 0; usable_ && i < holes_.size(); ++i) {
    const Node& node = nodes[node_of_hole_[i]];
    if (holes_[i].attribute == Attribute::pg_name) {
      const bool means = node.type == NodeType::comm_coll || node.ring_shift;
      holes_[i].value = means ? std::int64_t{node.group} : kFixed;
    }
  }
}

bool FileShape::matches(std::string_view bytes, std::int64_t rank, std::int64_t ranks,
                        std::vector<std::string>& groups) {
  if (!usable_) {
    return false;
  }
  names_.assign(slots_, {});
  shift_ = rank - rank_;
  ranks_ = ranks;
  for (std::size_t i = 0; i < records_.size(); ++i) {
    std::uint64_t length = 0;
    const std::size_t digits = read_length(bytes, length);
    if (digits == 0 || length > bytes.size() - digits) {
      return false;
    }
    const std::size_t last = i + 1 < records_.size() ? records_[i + 1].first_hole : holes_.size();
    if (!match_record(records_[i], last, bytes.substr(digits, length))) {
      return false;
    }
    bytes.remove_prefix(digits + length);
  }
  if (!bytes.empty()) {
    return false;
  }
  groups.assign(names_.begin(), names_.end());
  std::sort(names_.begin(), names_.end());  // two slots with one name would be one slot
  return std::adjacent_find(names_.begin(), names_.end()) == names_.end();
}

bool FileShape::match_record(const Record& record, std::size_t last_hole, std::string_view found) {
  const std::string_view own(bytes_);
  std::uint64_t at = record.begin;
  for (std::size_t i = record.first_hole; i < last_hole; ++i) {
    const std::string_view before = own.substr(at, holes_[i].begin - at);
    if (!found.starts_with(before)) {
      return false;
    }
    found.remove_prefix(before.size());
    if (!match_hole(holes_[i], found)) {
      return false;
    }
    at = holes_[i].end;
  }
  return found == own.substr(at, record.end - at);
}

bool FileShape::match_hole(const Hole& hole, std::string_view& rest) {
  Problem problem;
  FieldReader fields(rest, problem);
  if (!fields.next() || fields.number() != kAttributeField) {
    return false;
  }
  scratch_.clear();
  read_attribute(fields.bytes("attr"), scratch_, problem);
  const Value* value = scratch_.find(hole.attribute);
  if (problem.expected != nullptr || value == nullptr || !match_value(hole, *value)) {
    return false;
  }
  rest = fields.rest();
  return true;
}

bool FileShape::match_value(const Hole& hole, const Value& value) {
  if (hole.attribute != Attribute::pg_name) {
    const bool number = value.kind == Value::Kind::integer || value.kind == Value::Kind::natural;
    const auto rank = static_cast<std::int64_t>(value.bits);
    return number && rank >= 0 && rank < ranks_ && rank == hole.value + shift_;
  }
  if (value.kind != Value::Kind::text || hole.value == kFixed) {
    return value.kind == Value::Kind::text;
  }
  const std::string_view name = canonical_group_name(value.text);
  if (hole.value == kWorldSlot || name.empty()) {
    return hole.value == kWorldSlot && name.empty();
  }
  std::string_view& known = names_[static_cast<std::size_t>(hole.value) - 1];
  if (known.empty()) {
    known = name;
  }
  return known == name;
}

}  // namespace orrery::chakra
