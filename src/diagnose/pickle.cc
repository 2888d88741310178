// SPDX-License-Identifier: Apache-2.0
#include "diagnose/pickle.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <vector>

namespace orrery::diagnose {
namespace {

constexpr int kDeepest = 64;
/// Bounds the bytes that the values of a file may take: 20 times its size, but always the least and
/// never more than the most.
constexpr std::size_t kLeastMemory = std::size_t{64} << 20;
constexpr std::size_t kMostMemory = std::size_t{2} << 30;
constexpr std::size_t kFileFactor = 20;

/// Memoised values are referred to more than once, and may be filled after they were: even by
/// themselves.
struct Value {
  ConfigNode::Kind kind = ConfigNode::Kind::null;
  std::string text;
  bool quoted = false;
  std::vector<const Value*> items;  ///< of a map: key, value, key, value ...
};

class Unpickler {
 public:
  Unpickler(std::string_view bytes, const std::string& file)
      : bytes_(bytes),
        file_(std::make_shared<const std::string>(file)),
        memory_left_(std::clamp(kFileFactor * std::min(bytes.size(), kMostMemory), kLeastMemory,
                                kMostMemory)) {}

  Result<ConfigNode> parse() {
    while (problem_.empty() && !stopped_) {
      const std::size_t at = at_;
      const int code = static_cast<int>(number(1));
      if (problem_.empty() && !step(code)) {
        problem_ = fmt::format("opcode 0x{:02x} at byte {}: only plain data are read", code, at);
      }
    }
    ConfigNode root;
    if (problem_.empty()) {
      root = convert(*top(), "", 0);
    }
    if (!problem_.empty()) {
      return fail(Error(Mistake{*file_, {}, {}, "not a readable pickle: " + problem_}));
    }
    return root;
  }

 private:
  std::string_view take(std::uint64_t size) {
    if (size > bytes_.size() - at_) {
      problem_ = "it ends too early";
      stopped_ = true;
      return {};
    }
    at_ += size;
    return bytes_.substr(at_ - size, size);
  }
  /// Little-endian.
  std::uint64_t number(unsigned bytes) {
    std::uint64_t value = 0;
    unsigned shift = 0;
    for (const char byte : take(bytes)) {
      value |= static_cast<std::uint64_t>(static_cast<unsigned char>(byte)) << shift;
      shift += 8;
    }
    return value;
  }
  static std::int64_t sign_extended(std::uint64_t value, std::uint64_t bytes) {
    const auto unused = static_cast<unsigned>(64 - 8 * bytes);
    return bytes == 0 ? 0 : static_cast<std::int64_t>(value << unused) >> unused;
  }

  Value& push(ConfigNode::Kind kind, std::string text = {}, bool quoted = false) {
    values_.push_back({kind, std::move(text), quoted, {}});
    stack_.push_back(&values_.back());
    return values_.back();
  }
  void push_scalar(std::string text) { push(ConfigNode::Kind::scalar, std::move(text)); }
  void push_string(std::string_view text) {
    push(ConfigNode::Kind::scalar, std::string(text), true);
  }
  Value* top() {
    if (stack_.empty()) {
      problem_ = "a value is missing";
      push(ConfigNode::Kind::null);
    }
    return stack_.back();
  }
  Value* pop() {
    Value* value = top();
    if (!stack_.empty()) {
      stack_.pop_back();
    }
    return value;
  }
  /// Takes what was pushed since the last mark.
  std::vector<const Value*> pop_to_mark() {
    if (marks_.empty() || marks_.back() > stack_.size()) {
      problem_ = "a mark is missing";
      return {};
    }
    const auto first = stack_.begin() + static_cast<std::ptrdiff_t>(marks_.back());
    std::vector<const Value*> values(first, stack_.end());
    stack_.erase(first, stack_.end());
    marks_.pop_back();
    return values;
  }
  std::vector<const Value*> pop_last(std::size_t count) {
    std::vector<const Value*> values(count);
    for (std::size_t i = count; i-- > 0;) {
      values[i] = pop();
    }
    return values;
  }
  void push_tuple(std::vector<const Value*> items) {
    push(ConfigNode::Kind::sequence).items = std::move(items);
  }
  void fill(ConfigNode::Kind kind, const std::vector<const Value*>& values) {
    Value* into = top();
    if (into->kind != kind || (kind == ConfigNode::Kind::map && values.size() % 2 != 0)) {
      problem_ = "items of no list or dictionary";
      return;
    }
    into->items.insert(into->items.end(), values.begin(), values.end());
  }
  void get(std::uint64_t index) {
    const auto found = memo_.find(index);
    if (found == memo_.end()) {
      problem_ = "it refers to a value that is not there";
      return;
    }
    stack_.push_back(found->second);
  }
  void push_long(std::uint64_t size) {
    if (size > 8) {
      problem_ = "a number of more than 64 bits";
      return;
    }
    push_scalar(std::to_string(sign_extended(number(static_cast<unsigned>(size)), size)));
  }

  bool step(int code);
  bool step_number(int code);
  bool step_container(int code);
  ConfigNode convert(const Value& value, const std::string& path, int depth);

  std::string_view bytes_;
  std::shared_ptr<const std::string> file_;
  std::size_t at_ = 0;
  std::deque<Value> values_;  ///< all of them
  std::vector<Value*> stack_;
  std::vector<std::size_t> marks_;
  std::map<std::uint64_t, Value*> memo_;
  std::string problem_;
  bool stopped_ = false;
  std::size_t memory_left_;
};

/// False for an opcode that is not read.
bool Unpickler::step(int code) {
  switch (code) {
    case 0x80:  // PROTO
      number(1);
      return true;
    case 0x95:  // FRAME
      number(8);
      return true;
    case '.':
      stopped_ = true;
      return true;
    case '(':
      marks_.push_back(stack_.size());
      return true;
    case 'q':  // BINPUT
      memo_[number(1)] = top();
      return true;
    case 'r':  // LONG_BINPUT
      memo_[number(4)] = top();
      return true;
    case 0x94:  // MEMOIZE
      memo_[memo_.size()] = top();
      return true;
    case 'h':  // BINGET
      get(number(1));
      return true;
    case 'j':  // LONG_BINGET
      get(number(4));
      return true;
    case 'X':  // BINUNICODE
      push_string(take(number(4)));
      return true;
    case 0x8c:  // SHORT_BINUNICODE
      push_string(take(number(1)));
      return true;
    case 0x8d:  // BINUNICODE8
      push_string(take(number(8)));
      return true;
    default:
      return step_number(code) || step_container(code);
  }
}

bool Unpickler::step_number(int code) {
  switch (code) {
    case 'N':
      push(ConfigNode::Kind::null);
      return true;
    case 0x88:  // NEWTRUE
      push_scalar("true");
      return true;
    case 0x89:  // NEWFALSE
      push_scalar("false");
      return true;
    case 'K':  // BININT1
      push_scalar(std::to_string(number(1)));
      return true;
    case 'M':  // BININT2
      push_scalar(std::to_string(number(2)));
      return true;
    case 'J':  // BININT
      push_scalar(std::to_string(sign_extended(number(4), 4)));
      return true;
    case 0x8a:  // LONG1
      push_long(number(1));
      return true;
    case 'G': {  // BINFLOAT, big-endian
      std::uint64_t bits = 0;
      for (const char byte : take(8)) {
        bits = bits << 8 | static_cast<unsigned char>(byte);
      }
      push_scalar(fmt::format("{}", std::bit_cast<double>(bits)));
      return true;
    }
    default:
      return false;
  }
}

bool Unpickler::step_container(int code) {
  switch (code) {
    case '}':
      push(ConfigNode::Kind::map);
      return true;
    case ']':
    case ')':
      push(ConfigNode::Kind::sequence);
      return true;
    case 't':
      push_tuple(pop_to_mark());
      return true;
    case 0x85:  // TUPLE1, TUPLE2, TUPLE3
    case 0x86:
    case 0x87:
      push_tuple(pop_last(static_cast<std::size_t>(code - 0x84)));
      return true;
    case 'a':
      fill(ConfigNode::Kind::sequence, pop_last(1));
      return true;
    case 'e':
      fill(ConfigNode::Kind::sequence, pop_to_mark());
      return true;
    case 's':
      fill(ConfigNode::Kind::map, pop_last(2));
      return true;
    case 'u':
      fill(ConfigNode::Kind::map, pop_to_mark());
      return true;
    default:
      return false;
  }
}

ConfigNode Unpickler::convert(const Value& value, const std::string& path, int depth) {
  ConfigNode node;
  node.source = file_;
  // A text that is referred to often stands in each of its places.
  const std::size_t memory = sizeof(ConfigField) + value.text.size() + 2 * path.size();
  if (depth > kDeepest || memory > memory_left_) {
    problem_ = depth > kDeepest ? "nested too deeply"
                                : "its values take more memory than 20 times its size";
    return node;
  }
  memory_left_ -= memory;
  node.path = path;
  node.kind = value.kind;
  node.text = value.text;
  node.quoted = value.quoted;
  const std::vector<const Value*>& items = value.items;
  if (value.kind == ConfigNode::Kind::map) {
    for (std::size_t i = 0; i + 1 < items.size() && problem_.empty(); i += 2) {
      const std::string& name = items[i]->text;
      const std::string inner = path.empty() ? name : fmt::format("{}.{}", path, name);
      node.fields.push_back({name, convert(*items[i + 1], inner, depth + 1)});
    }
  } else {
    for (std::size_t i = 0; i < items.size() && problem_.empty(); ++i) {
      node.items.push_back(convert(*items[i], fmt::format("{}[{}]", path, i), depth + 1));
    }
  }
  return node;
}

}  // namespace

Result<ConfigNode> parse_pickle(std::string_view bytes, const std::string& file) {
  return Unpickler(bytes, file).parse();
}

}  // namespace orrery::diagnose
