// SPDX-License-Identifier: Apache-2.0
#include "machine/network/flit/booksim_traffic.h"

#include <algorithm>
#include <map>
#include <vector>

namespace orrery::flit {
namespace {

tl::expected<std::string, std::string> hotspot_pattern(const std::string& traffic) {
  const std::size_t open = traffic.find('(');
  const std::size_t close = traffic.rfind(')');
  if (open == std::string::npos || close == std::string::npos || close < open) {
    return tl::unexpected(std::string(
        "its nodes, such as hotspot({{3,7},{2,1}}): with several classes none is drawn"));
  }
  std::string inner = traffic.substr(open + 1, close - open - 1);
  std::erase_if(inner, [](char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; });
  const std::vector<std::string> parameters = BookSimFile::parts(inner);
  const std::vector<std::string> nodes = BookSimFile::parts(parameters[0]);
  const auto weights =
      parameters.size() < 2 ? std::vector<std::string>{} : BookSimFile::parts(parameters[1]);
  std::string pattern = "hotspot:";
  const auto number = [](const std::string& text) { return parse_integer(text).value_or(-1); };
  const bool are_nodes =
      std::ranges::all_of(nodes, [&](const std::string& text) { return number(text) >= 0; });
  const bool are_weights = std::ranges::all_of(weights, [&](const std::string& text) {
    return number(text) >= 0 && number(text) <= kMostHotspotWeight;
  });
  if (!are_nodes || !are_weights) {
    return tl::unexpected(fmt::format(
        "numbers of nodes and weights up to {}, hotspot({{{{3,7}},{{2,1}}}})", kMostHotspotWeight));
  }
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    pattern += (i > 0 ? "," : "") + nodes[i];
    if (!weights.empty()) {
      pattern += "*" + weights[std::min(i, weights.size() - 1)];
    }
  }
  return pattern;
}

/// Reads what classes say, each key for all of them.
class ClassReader {
 public:
  ClassReader(BookSimFile& file, std::size_t count) : file_(file), classes_(count) {}

  std::vector<TrafficClass> read() {
    read_sizes();
    read_transactions();
    read_patterns();
    const auto priorities = file_.values<std::int64_t>("class_priority", 0, classes_.size());
    for (std::size_t i = 0; i < classes_.size(); ++i) {
      classes_[i].priority = priorities[i];
    }
    return std::move(classes_);
  }

  /// Shares, bursts; the rate of all.
  double read_rates(std::vector<TrafficClass>& classes) {
    bool by_flits = false;
    file_.take_value("injection_rate_uses_flits", by_flits);
    std::vector<double> rates = file_.values("injection_rate", 0.1, classes.size());
    double total = 0;
    for (std::size_t i = 0; i < classes.size(); ++i) {
      rates[i] *= by_flits ? 1 : classes[i].mean_size();  // packets there unless told otherwise
      total += rates[i];
    }
    for (std::size_t i = 0; i < classes.size(); ++i) {
      classes[i].share = classes.size() == 1 ? 1 : rates[i] / total;
    }
    read_bursts(classes, rates);
    return total;
  }

 private:
  void read_sizes() {
    const BookSimFile::Entry* old = file_.find("const_flits_per_packet");
    const BookSimFile::Entry* stated = file_.find("packet_size");
    const std::string key =
        stated == nullptr && old != nullptr ? "const_flits_per_packet" : "packet_size";
    const std::vector<std::string> sizes = BookSimFile::parts(file_.text(key, "1"));
    const std::vector<std::string> weights =
        BookSimFile::parts(file_.text("packet_size_rate", "1"));
    for (std::size_t i = 0; i < classes_.size(); ++i) {
      classes_[i].sizes = numbers(key, sizes[std::min(i, sizes.size() - 1)]);
      classes_[i].weights = numbers("packet_size_rate", weights[std::min(i, weights.size() - 1)]);
      classes_[i].weights.resize(classes_[i].sizes.size(), classes_[i].weights.back());
    }
  }

  std::vector<int> numbers(const std::string& key, const std::string& text) {
    std::vector<int> list;
    for (const std::string& part : BookSimFile::parts(text)) {
      list.push_back(1);
      if (const BookSimFile::Entry* entry = file_.find(key)) {
        file_.take_text(key, *entry, part, list.back());
      }
    }
    return list;
  }

  void read_transactions() {
    const auto transacts = file_.values("use_read_write", 0, classes_.size());
    const auto writes = file_.values("write_fraction", 0.5, classes_.size());
    for (std::size_t i = 0; i < classes_.size(); ++i) {
      classes_[i].transacts = transacts[i] != 0;
      classes_[i].write_share = writes[i];
    }
    for (std::size_t purpose = 1; purpose < kPurposes; ++purpose) {
      const auto sizes =
          file_.values(std::string(kPurposeNames[purpose]) + "_size", 1, classes_.size());
      for (std::size_t i = 0; i < classes_.size(); ++i) {
        classes_[i].transaction_sizes[purpose] = sizes[i];
      }
    }
  }

  void read_patterns() {
    const BookSimFile::Entry* entry = file_.find("traffic");
    const BookSimFile::Entry* seed = file_.find("perm_seed");
    const auto texts = BookSimFile::parts(entry == nullptr ? "uniform" : entry->value);
    for (std::size_t i = 0; i < classes_.size(); ++i) {
      const std::string& text = texts[std::min(i, texts.size() - 1)];
      if (text == "hotspot" && classes_.size() == 1) {  // a node, drawn before the seed is set
        classes_[i].pattern = "hotspot:any:314159";     // with which Knuth's numbers begin
      } else if (auto pattern = pattern_of_booksim(text)) {
        classes_[i].pattern = std::move(*pattern);
        classes_[i].pattern += text == "randperm" && seed != nullptr ? ":" + seed->value : "";
      } else {
        file_.add(entry->line, "traffic", text, pattern.error());
      }
    }
  }

  /// "on_off", "on_off(0.1,0.3)": burst_alpha, burst_beta and burst_r1, of which two hold; 0.5, 0.5
  /// and none.
  void read_bursts(std::vector<TrafficClass>& classes, const std::vector<double>& rates) {
    std::array<double, 3> common{0.5, 0.5, -1};
    file_.take_value("burst_alpha", common[0]);
    file_.take_value("burst_beta", common[1]);
    file_.take_value("burst_r1", common[2]);
    const BookSimFile::Entry* entry = file_.find("injection_process");
    const auto texts = BookSimFile::parts(entry == nullptr ? "bernoulli" : entry->value);
    for (std::size_t i = 0; i < classes.size(); ++i) {
      const std::string& text = texts[std::min(i, texts.size() - 1)];
      const std::string name = text.substr(0, text.find('('));
      if (name == "on_off") {
        take_bursts(*entry, text, common, classes[i], rates[i] / classes[i].mean_size());
      } else if (name != "bernoulli") {
        file_.add(entry->line, "injection_process", text, "bernoulli or on_off");
      }
    }
  }

  void take_bursts(const BookSimFile::Entry& entry, const std::string& text,
                   std::array<double, 3> bursts, TrafficClass& into, double rate) {
    const std::size_t open = text.find('(');
    if (open != std::string::npos && text.ends_with(')')) {
      const auto given =
          BookSimFile::parts("{" + text.substr(open + 1, text.size() - open - 2) + "}");
      for (std::size_t i = 0; i < std::min(given.size(), bursts.size()); ++i) {
        file_.take_text("injection_process", entry, given[i], bursts[i]);
      }
    }
    auto [alpha, beta, within] = bursts;
    if ((alpha < 0) + (beta < 0) + (within < 0) != 1) {
      file_.add(entry.line, "injection_process", text,
                "two of burst_alpha, burst_beta and burst_r1, the third below 0");
      return;
    }
    alpha = alpha < 0 ? beta * rate / (within - rate) : alpha;
    beta = beta < 0 ? alpha * (within - rate) / rate : beta;
    into.burst_alpha = alpha;
    into.burst_beta = beta;
  }

  BookSimFile& file_;
  std::vector<TrafficClass> classes_;
};

/// First and last VC of a purpose; a negative one: the half of requests or of replies.
std::pair<int, int> vcs_of(BookSimFile& file, std::size_t purpose, int vcs) {
  constexpr std::array<std::pair<int, int>, kPurposes> kThere{
      {{0, 0}, {0, 5}, {2, 7}, {8, 13}, {10, 15}}};
  auto [first, last] = kThere[purpose];
  const std::string name(kPurposeNames[purpose]);
  file.take_value(name + "_begin_vc", first);
  file.take_value(name + "_end_vc", last);
  const bool replies = static_cast<Purpose>(purpose) >= Purpose::read_reply;
  first = first < 0 ? (replies ? vcs / 2 : 0) : first;
  last = last < 0 ? (replies ? vcs : vcs / 2) - 1 : last;
  return {first, last};
}

}  // namespace

std::optional<BookSimClasses> read_booksim_classes(BookSimFile& file, int vcs) {
  int count = 1;
  file.take_value("classes", count);
  if (count < 1 || count > kMostClasses) {
    file.add(file.find("classes")->line, "classes", std::to_string(count),
             fmt::format("1 to {}", kMostClasses));
    count = 1;  // what else is wrong is told, too
  }
  ClassReader reader(file, static_cast<std::size_t>(count));
  BookSimClasses read;
  read.classes = reader.read();
  vcs = std::max(vcs, 1);  // what is wrong is told later
  read.purpose_vcs[0] = {0, vcs - 1};
  for (std::size_t purpose = 1; purpose < kPurposes; ++purpose) {
    read.purpose_vcs[purpose] = vcs_of(file, purpose, vcs);
    // Of the subnetworks there is one.
    file.find(std::string(kPurposeNames[purpose]) + "_subnet");
  }
  const bool has_sizes = std::all_of(read.classes.begin(), read.classes.end(),
                                     [](const TrafficClass& of) { return of.mean_size() > 0; });
  if (!has_sizes) {
    const BookSimFile::Entry* entry = file.find("packet_size");
    entry = entry == nullptr ? file.find("packet_size_rate") : entry;
    file.add(entry == nullptr ? 1 : entry->line, "packet_size",
             entry == nullptr ? "" : entry->value, "sizes and packet_size_rate above 0");
  }
  read.rate = reader.read_rates(read.classes);
  return file.mistakes().empty() ? std::optional(std::move(read)) : std::nullopt;
}

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
