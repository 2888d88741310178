// SPDX-License-Identifier: Apache-2.0
#include "machine/network/flit/booksim_traffic.h"

#include <algorithm>
#include <map>
#include <vector>

namespace orrery::flit {
namespace {

/// The elements of "{a,{b,c}}" at its first level; of other text itself.
std::vector<std::string> elements_of_list(const std::string& text) {
  if (!text.starts_with('{')) {
    return text.empty() ? std::vector<std::string>{} : std::vector{text};
  }
  std::vector<std::string> list{""};
  int depth = 0;
  for (std::size_t i = 1; i < text.size(); ++i) {
    depth += text[i] == '{' ? 1 : text[i] == '}' ? -1 : 0;
    if (depth < 0) {
      break;
    }
    if (text[i] == ',' && depth == 0) {
      list.emplace_back();
    } else {
      list.back() += text[i];
    }
  }
  return list;
}

tl::expected<std::string, std::string> hotspot_pattern(const std::string& traffic) {
  const std::size_t open = traffic.find('(');
  const std::size_t close = traffic.rfind(')');
  if (open == std::string::npos || close == std::string::npos || close < open) {
    return tl::unexpected(
        std::string("its nodes, such as hotspot({{3,7},{2,1}}): none here is drawn at random"));
  }
  std::string inner = traffic.substr(open + 1, close - open - 1);
  std::erase_if(inner, [](char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; });
  const std::vector<std::string> parameters = elements_of_list(inner);
  const auto nodes = elements_of_list(parameters.empty() ? "" : parameters[0]);
  const auto weights = elements_of_list(parameters.size() < 2 ? "" : parameters[1]);
  std::string pattern = "hotspot:";
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    pattern += (i > 0 ? "," : "") + nodes[i];
    if (!weights.empty()) {
      pattern += "*" + weights[std::min(i, weights.size() - 1)];
    }
  }
  return pattern;
}

}  // namespace

tl::expected<std::string, std::string> pattern_of_booksim(const std::string& traffic) {
  static const std::map<std::string, std::string, std::less<>> other_names{
      {"bitcomp", "bit_complement"}, {"bitrev", "bit_reverse"}, {"randperm", "random_permutation"}};
  if (traffic.starts_with("hotspot")) {
    return hotspot_pattern(traffic);
  }
  if (traffic.starts_with("randperm(") && traffic.ends_with(')')) {
    return "random_permutation:" + traffic.substr(9, traffic.size() - 10);
  }
  const auto other = other_names.find(traffic);
  return other == other_names.end() ? traffic : other->second;
}

}  // namespace orrery::flit
