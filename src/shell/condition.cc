// SPDX-License-Identifier: Apache-2.0
#include "shell/condition.h"

#include <algorithm>

#include "base/reader.h"
#include "shell/expand.h"

namespace orrery::shell {
namespace {

Truth both(Truth a, Truth b) {
  if (a == Truth::no || b == Truth::no) {
    return Truth::no;
  }
  return a == Truth::yes ? b : a;
}

class Parser {
 public:
  Parser(const std::vector<std::string>& words, bool patterns)
      : words_(words), patterns_(patterns) {}

  Condition run() {
    const Truth value = words_.empty() ? Truth::no : any();
    return {.truth = at_ == words_.size() ? value : Truth::unknown, .asks_files = asks_files_};
  }

 private:
  static constexpr int kMostDepth = 64;

  bool take(std::string_view word) {
    const bool there = at_ < words_.size() && words_[at_] == word;
    at_ += there ? 1 : 0;
    return there;
  }

  Truth any() {
    Truth value = all();
    while (take("||") || take("-o")) {
      value = negated(both(negated(value), negated(all())));
    }
    return value;
  }
  Truth all() {
    Truth value = one();
    while (take("&&") || take("-a")) {
      value = both(value, one());
    }
    return value;
  }

  Truth one() {
    if (++depth_ > kMostDepth) {
      return Truth::unknown;
    }
    if (at_ + 1 < words_.size() && take("!")) {
      return negated(one());
    }
    if (at_ + 1 < words_.size() && take("(")) {
      const Truth value = any();
      return take(")") ? value : Truth::unknown;
    }
    --depth_;
    return simple();
  }

  Truth simple() {
    if (at_ >= words_.size()) {
      return Truth::unknown;
    }
    const std::string left = words_[at_++];
    const std::string_view sign =
        at_ < words_.size() ? std::string_view(words_[at_]) : std::string_view();
    const bool compares = sign == "=" || sign == "==" || sign == "!=" || sign == "<" ||
                          sign == ">" || sign == "=~" ||
                          (sign.size() == 3 && sign[0] == '-' && at_ + 1 < words_.size());
    if (compares) {
      ++at_;
      return compare(left, sign, at_ < words_.size() ? words_[at_++] : "");
    }
    if (left.size() == 2 && left[0] == '-' && at_ < words_.size() && sign != "&&" && sign != "||") {
      return unary(left[1], words_[at_++]);
    }
    return is_known(left) ? truth(!without_unset(left).empty()) : Truth::unknown;
  }

  static bool is_known(const std::string& text) { return text.find(kUnknown) == text.npos; }

  Truth unary(char sign, const std::string& operand) {
    if (sign == 'z' || sign == 'n') {
      const bool empty = without_unset(operand).empty();
      return is_known(operand) ? truth(empty == (sign == 'z')) : Truth::unknown;
    }
    if (sign == 'v') {
      return Truth::unknown;
    }
    asks_files_ = true;
    return is_known(operand) ? truth(!without_unset(operand).empty()) : Truth::unknown;
  }

  Truth compare(const std::string& left, std::string_view sign, const std::string& right) const {
    if (!is_known(left) || !is_known(right) || sign == "=~") {
      return Truth::unknown;
    }
    const std::string a = without_unset(left);
    const std::string b = without_unset(right);
    if (sign == "=" || sign == "==") {
      return truth(patterns_ ? matches(b, a) : a == b);
    }
    if (sign == "!=") {
      return truth(!(patterns_ ? matches(b, a) : a == b));
    }
    if (sign == "<" || sign == ">") {
      return truth(sign == "<" ? a < b : a > b);
    }
    const auto x = parse_integer(a);
    const auto y = parse_integer(b);
    if (!x || !y) {
      return Truth::no;  // the shell complains, and the condition fails
    }
    return sign == "-eq"   ? truth(*x == *y)
           : sign == "-ne" ? truth(*x != *y)
           : sign == "-lt" ? truth(*x < *y)
           : sign == "-le" ? truth(*x <= *y)
           : sign == "-gt" ? truth(*x > *y)
           : sign == "-ge" ? truth(*x >= *y)
                           : Truth::unknown;
  }

  const std::vector<std::string>& words_;
  bool patterns_;
  std::size_t at_ = 0;
  bool asks_files_ = false;
  int depth_ = 0;
};

}  // namespace

Condition condition_of(const std::vector<std::string>& words, bool patterns) {
  return Parser(words, patterns).run();
}

}  // namespace orrery::shell
