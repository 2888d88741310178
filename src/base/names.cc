// SPDX-License-Identifier: Apache-2.0
#include "base/names.h"

#include <algorithm>

namespace orrery {
namespace {

/// Edits (insert, delete, replace, swap of neighbours) from one word to the other.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::vector<std::size_t>> d(a.size() + 1, std::vector<std::size_t>(b.size() + 1));
  for (std::size_t i = 0; i <= a.size(); ++i) {
    for (std::size_t j = 0; j <= b.size(); ++j) {
      if (i == 0 || j == 0) {
        d[i][j] = i + j;
        continue;
      }
      const std::size_t replace = a[i - 1] == b[j - 1] ? 0 : 1;
      d[i][j] = std::min({d[i - 1][j] + 1, d[i][j - 1] + 1, d[i - 1][j - 1] + replace});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        d[i][j] = std::min(d[i][j], d[i - 2][j - 2] + 1);
      }
    }
  }
  return d[a.size()][b.size()];
}

constexpr std::size_t kLongestName = 64;  // longer words are no misspelt names
constexpr std::size_t kEnumerated = 12;   // names that a message lists
constexpr std::size_t kShortestPart = 3;  // shorter words are a part of anything

/// Returns the shortest candidate that has `part` in it, or nullptr; ties go to the earlier
/// candidate.
const std::string* shortest_with(std::string_view part,
                                 const std::vector<std::string>& candidates) {
  const std::string* best = nullptr;
  for (const std::string& candidate : candidates) {
    if (part.size() >= kShortestPart && candidate.find(part) != std::string::npos &&
        (best == nullptr || candidate.size() < best->size())) {
      best = &candidate;
    }
  }
  return best;
}

}  // namespace

std::string enumerated(const std::vector<std::string>& names) {
  std::string text;
  for (std::size_t i = 0; i < std::min(names.size(), kEnumerated); ++i) {
    text += (i == 0 ? "" : ", ") + names[i];
  }
  return names.size() <= kEnumerated
             ? text
             : text + " and " + std::to_string(names.size() - kEnumerated) + " more";
}

const std::string* closest(std::string_view found, const std::vector<std::string>& candidates) {
  if (found.empty() || found.size() > kLongestName) {
    return nullptr;
  }
  const std::string* best = nullptr;
  std::size_t least = 0;
  for (const std::string& candidate : candidates) {
    const std::size_t dashes = std::min(candidate.find_first_not_of('-'), candidate.size());
    const auto [shorter, longer] = std::minmax({found.size(), candidate.size()});
    const std::size_t letters = longer - dashes;  // the dashes of an option say nothing of its name
    const std::size_t allowed = std::max<std::size_t>(1, letters / 3);
    if (longer - shorter > allowed) {
      continue;  // at least as many edits as they differ in length
    }
    const std::size_t distance = edit_distance(found, candidate);
    if (distance <= allowed && distance < letters && (best == nullptr || distance < least)) {
      best = &candidate;
      least = distance;
    }
  }
  return best;
}

std::string did_you_mean(std::string_view found, const std::vector<std::string>& candidates) {
  std::string plain(found);
  std::ranges::transform(plain, plain.begin(), [](char letter) {
    return letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter - 'A' + 'a') : letter;
  });
  const std::string* meant = closest(found, candidates);
  meant = meant == nullptr ? closest(plain, candidates) : meant;
  meant = meant == nullptr ? shortest_with(plain, candidates) : meant;
  return meant == nullptr || *meant == found ? "" : " (did you mean '" + *meant + "'?)";
}

}  // namespace orrery
