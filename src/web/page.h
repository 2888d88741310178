// SPDX-License-Identifier: Apache-2.0
/// A report as one HTML page that holds all it needs: script, style and what they show.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/result.h"

namespace orrery::web {

struct Page {
  std::string_view command;     ///< "simulate": which figures the script draws
  std::string_view version;     ///< of the program
  std::string_view result;      ///< what --json prints
  std::string_view extra = {};  ///< JSON object of what only figures need; empty: nothing
};

/// The largest page that is written without cutting lists.
inline constexpr std::size_t kMostBytes = 1'000'000;

/// Returns the page. Its script draws figures and tables of the JSON blocks "result"
/// (Page::result), "schema" (docs/schema of the command) and "about". Texts of files are in these
/// blocks alone, where every '<' is "\u003c": no name becomes markup. A Content-Security-Policy
/// allows the page's own script and style by their hashes, and nothing else: no request leaves.
///
/// Left out of the result, so that equal inputs give equal bytes: timing.
/// Where the page would be larger than kMostBytes, the lists of the result end after their first
/// items, and the page says so.
std::string page_text(const Page& page);

/// Returns JSON as it stands in a page: without white space, '<' escaped, the fields above left out
/// of the outermost object, lists of the result cut after `most_items`.
/// Requires well-formed JSON.
std::string embedded(std::string_view json, std::size_t most_items);

/// Writes the page, whole or not at all.
Result<void> write_page(const std::string& path, const Page& page);

}  // namespace orrery::web
