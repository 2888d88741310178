// SPDX-License-Identifier: Apache-2.0
/// Integer arithmetic of $(( )), by precedence climbing.
#include <array>
#include <cctype>

#include "base/reader.h"
#include "shell/expand.h"

namespace orrery::shell {
namespace {

using Number = std::optional<std::int64_t>;

struct BinaryOperator {
  std::string_view sign;
  int precedence;
};
// Longer signs first, since one begins with another.
constexpr std::array<BinaryOperator, 18> kOperators{{{"**", 11},
                                                     {"<<", 8},
                                                     {">>", 8},
                                                     {"<=", 7},
                                                     {">=", 7},
                                                     {"==", 6},
                                                     {"!=", 6},
                                                     {"&&", 2},
                                                     {"||", 1},
                                                     {"*", 10},
                                                     {"/", 10},
                                                     {"%", 10},
                                                     {"+", 9},
                                                     {"-", 9},
                                                     {"<", 7},
                                                     {">", 7},
                                                     {"&", 5},
                                                     {"|", 3}}};

std::int64_t wrapped(std::uint64_t value) {
  return static_cast<std::int64_t>(value);
}

std::int64_t power(std::int64_t base, std::int64_t exponent) {
  std::uint64_t result = 1;
  for (std::int64_t i = 0; i < std::min<std::int64_t>(exponent, 64); ++i) {
    result *= static_cast<std::uint64_t>(base);
  }
  return wrapped(result);
}

Number apply(std::string_view sign, std::int64_t a, std::int64_t b) {
  const auto ua = static_cast<std::uint64_t>(a);
  const auto ub = static_cast<std::uint64_t>(b);
  if (sign == "/" || sign == "%") {
    if (b == 0) {
      return std::nullopt;
    }
    if (b == -1) {
      return sign == "/" ? wrapped(0 - ua) : 0;
    }
    return sign == "/" ? a / b : a % b;
  }
  switch (sign[0]) {
    case '*':
      return sign == "**" ? power(a, b) : wrapped(ua * ub);
    case '+':
      return wrapped(ua + ub);
    case '-':
      return wrapped(ua - ub);
    case '<':
      return sign == "<<" ? wrapped(ua << (ub & 63U)) : sign == "<=" ? a <= b : a < b;
    case '>':
      return sign == ">>" ? a >> (ub & 63U) : sign == ">=" ? a >= b : a > b;
    case '=':
      return a == b;
    case '!':
      return a != b;
    case '&':
      return sign == "&&" ? a != 0 && b != 0 : a & b;
    default:
      return sign == "||" ? a != 0 || b != 0 : a | b;
  }
}

class Sum {
 public:
  Sum(Scope& scope, std::string_view text, int depth) : scope_(scope), text_(text), depth_(depth) {}

  Number run() {
    const Number value = choice();
    blanks();
    return at_ == text_.size() ? value : std::nullopt;
  }

 private:
  static constexpr int kMostDepth = 64;

  void blanks() {
    while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_])) != 0) {
      ++at_;
    }
  }
  bool take(std::string_view sign) {
    blanks();
    const bool there = text_.substr(at_).starts_with(sign);
    at_ += there ? sign.size() : 0;
    return there;
  }

  Number choice() {
    const Number condition = binary(0);
    if (!condition || !take("?")) {
      return condition;
    }
    const Number yes = choice();
    if (!take(":")) {
      return std::nullopt;
    }
    const Number no = choice();
    return *condition != 0 ? yes : no;
  }

  Number binary(int least) {
    Number left = unary();
    while (left) {
      blanks();
      const std::string_view rest = text_.substr(at_);
      const auto* row = kOperators.begin();
      while (row != kOperators.end() && !rest.starts_with(row->sign)) {
        ++row;
      }
      if (row == kOperators.end() || row->precedence <= least) {
        return left;
      }
      at_ += row->sign.size();
      const Number right = binary(row->precedence);
      left = right ? apply(row->sign, *left, *right) : std::nullopt;
    }
    return left;
  }

  Number unary() {
    if (++depth_ > kMostDepth) {
      return std::nullopt;
    }
    Number value;
    if (take("(")) {
      value = choice();
      value = take(")") ? value : std::nullopt;
    } else if (take("!")) {
      value = unary();
      value = value ? Number(*value == 0) : value;
    } else if (take("-")) {
      value = unary();
      value = value ? Number(wrapped(0 - static_cast<std::uint64_t>(*value))) : value;
    } else if (take("+")) {
      value = unary();
    } else {
      value = operand();
    }
    --depth_;
    return value;
  }

  Number operand() {
    blanks();
    const std::size_t begin = at_;
    while (at_ < text_.size() &&
           (std::isalnum(static_cast<unsigned char>(text_[at_])) != 0 || text_[at_] == '_')) {
      ++at_;
    }
    const std::string name(text_.substr(begin, at_ - begin));
    if (name.empty()) {
      return std::nullopt;
    }
    if (std::isdigit(static_cast<unsigned char>(name[0])) != 0) {
      const auto number = parse_integer(name);
      return number ? Number(*number) : std::nullopt;
    }
    return variable(name);
  }

  Number variable(const std::string& name) {
    const Value* value = scope_.find(name);
    const std::string text = value == nullptr || value->items.empty() ? "" : value->items[0].text;
    const Number number = text.empty() ? Number(0) : Sum(scope_, text, depth_ + 1).run();
    const bool adds = take("+=") || take("++");
    const std::string_view rest = text_.substr(at_);
    if (adds) {
      const Number more = text_[at_ - 1] == '+' ? Number(1) : choice();
      return number && more ? assign(name, *number + *more) : std::nullopt;
    }
    if (rest.starts_with('=') && !rest.starts_with("==")) {
      ++at_;
      const Number assigned = choice();
      return assigned ? assign(name, *assigned) : std::nullopt;
    }
    return number;
  }

  Number assign(const std::string& name, std::int64_t value) {
    scope_.set(name, std::to_string(value), 0);
    return value;
  }

  Scope& scope_;
  std::string_view text_;
  std::size_t at_ = 0;
  int depth_;
};

}  // namespace

std::optional<std::int64_t> arithmetic(Scope& scope, std::string_view text) {
  return Sum(scope, text, 0).run();
}

}  // namespace orrery::shell
