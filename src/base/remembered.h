// SPDX-License-Identifier: Apache-2.0
/// A function's values by its arguments, each computed once.
#pragma once

namespace orrery {

/// Returns what `known` has for `key`; when it has nothing, make() first.
/// Requires: references into `known` last, as those of std::map and std::unordered_map do.
template <class Map, class Make>
auto& remembered(Map& known, const typename Map::key_type& key, const Make& make) {
  const auto [found, fresh] = known.try_emplace(key);
  auto& value = found->second;
  if (fresh) {
    value = make();
  }
  return value;
}

}  // namespace orrery
