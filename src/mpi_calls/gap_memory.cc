// SPDX-License-Identifier: Apache-2.0
#include "mpi_calls/gap_memory.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <set>

namespace orrery::mpi_calls {
namespace {

constexpr std::array<std::string_view, 5> kByRules{"MPI_Init", "MPI_Finalize", "MPI_Comm_rank",
                                                   "MPI_Comm_size", "MPI_Init_thread"};
bool is_by_rules(const std::string& function) {
  return std::ranges::find(kByRules, function) != kByRules.end();
}

std::vector<Gap> gaps_of(const Outline& outline, const std::vector<Label>& labels,
                         std::size_t program) {
  std::vector<Gap> gaps;
  for (std::int64_t line = 0; line <= static_cast<std::int64_t>(outline.lines().size()); ++line) {
    gaps.push_back({program, line, features_of(outline, line), {}});
  }
  for (const Label& label : labels) {
    if (!is_by_rules(call_of(label).name)) {
      gaps[std::min(static_cast<std::size_t>(label.line), gaps.size() - 1)].labels.push_back(label);
    }
  }
  return gaps;
}

/// Replaces the identifiers of a label by those of another program.
class Renamer {
 public:
  Renamer(const Outline& from, const Outline& to, std::int64_t line) : from_(from), to_(to) {
    const std::size_t here = to.first_token_of(line + 1);
    for (std::size_t i = here; i-- > 0;) {
      near_.push_back(to.tokens()[i].text);
    }
    for (std::size_t i = here; i < to.tokens().size(); ++i) {
      near_.push_back(to.tokens()[i].text);
    }
  }

  std::string statement(const std::string& text) {
    std::string renamed;
    std::size_t at = 0;
    for (const Token& token : tokens_of(text)) {
      if (token.kind == Token::Kind::identifier && !from_.role_of(token.text).empty()) {
        renamed += text.substr(at, token.begin - at) + name_for(token.text);
        at = token.end();
      }
    }
    return renamed + text.substr(at);
  }

 private:
  const std::string& name_for(std::string_view name) {
    const auto known = names_.find(name);
    if (known != names_.end()) {
      return known->second;
    }
    const std::string role = from_.role_of(name);
    std::string chosen(name);
    if (to_.role_of(name) != role) {
      for (const std::string_view candidate : near_) {
        if (to_.role_of(candidate) == role && taken_.insert(std::string(candidate)).second) {
          chosen = candidate;
          break;
        }
      }
    }
    return names_.emplace(std::string(name), chosen).first->second;
  }

  const Outline& from_;
  const Outline& to_;
  std::vector<std::string_view> near_;  ///< tokens of the program, the nearest first
  std::map<std::string, std::string, std::less<>> names_;
  std::set<std::string> taken_;
};

}  // namespace

GapMemory::GapMemory(const std::vector<Record>& programs) {
  for (std::size_t i = 0; i < programs.size(); ++i) {
    outlines_.push_back(std::make_unique<Outline>(programs[i]));
    for (Gap& gap : gaps_of(*outlines_.back(), parse_labels(programs[i].mpi_labels), i)) {
      for (const std::uint64_t feature : gap.features) {
        owners_[feature].push_back(gaps_.size());
      }
      gaps_.push_back(std::move(gap));
    }
  }
  for (const Gap& gap : gaps_) {
    lengths_.push_back(length_of(gap.features));
  }
}

std::vector<Proposal> GapMemory::propose(const Record& record, std::size_t left_out) const {
  std::vector<Proposal> proposals;
  const Outline outline(record);
  for (const Gap& gap : gaps_of(outline, {}, 0)) {
    const auto [nearest, likeness] = nearest_of(gap.features, left_out);
    if (nearest == kNone || gaps_[nearest].labels.empty()) {
      continue;
    }
    Proposal proposal{likeness, {}};
    Renamer renamer(*outlines_[gaps_[nearest].program], outline, gap.line);
    for (const Label& label : gaps_[nearest].labels) {
      proposal.labels.push_back({gap.line, label.sub, renamer.statement(label.statement)});
    }
    proposals.push_back(std::move(proposal));
  }
  return proposals;
}

double GapMemory::weight_of(std::uint64_t feature) const {
  const auto owners = owners_.find(feature);
  const double count = owners == owners_.end() ? 1 : static_cast<double>(owners->second.size());
  return std::log((1 + static_cast<double>(gaps_.size())) / count);
}

double GapMemory::length_of(const Features& features) const {
  double square = 0;
  for (const std::uint64_t feature : features) {
    const double weight = weight_of(feature);
    square += weight * weight;
  }
  return std::sqrt(square);
}

/// Returns the most alike gap of other programs, the first of equals, and its cosine.
std::pair<std::size_t, double> GapMemory::nearest_of(const Features& features,
                                                     std::size_t left_out) const {
  std::vector<double> products(gaps_.size());
  for (const std::uint64_t feature : features) {
    const auto owners = owners_.find(feature);
    if (owners == owners_.end()) {
      continue;
    }
    const double weight = weight_of(feature);
    for (const std::size_t gap : owners->second) {
      products[gap] += weight * weight;
    }
  }
  std::size_t nearest = kNone;
  double best = 0;
  const double length = length_of(features);
  for (std::size_t i = 0; i < gaps_.size(); ++i) {
    const double likeness = products[i] > 0 ? products[i] / (length * lengths_[i]) : 0;
    if (gaps_[i].program != left_out && likeness > best) {
      best = likeness;
      nearest = i;
    }
  }
  return {nearest, best};
}

std::vector<Label> assemble(std::vector<Label> labels, const std::vector<Proposal>& proposals,
                            double threshold) {
  for (const Proposal& proposal : proposals) {
    if (proposal.likeness < threshold) {
      continue;
    }
    std::int64_t sub = std::ranges::count(labels, proposal.labels.front().line, &Label::line);
    for (Label label : proposal.labels) {
      label.sub = label.sub == 0 ? 0 : ++sub;
      labels.push_back(std::move(label));
    }
  }
  std::stable_sort(labels.begin(), labels.end(),
                   [](const Label& a, const Label& b) { return a.line < b.line; });
  return labels;
}

}  // namespace orrery::mpi_calls
