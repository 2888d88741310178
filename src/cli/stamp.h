// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
}  // namespace CLI

namespace orrery::cli {

/// Returns a JSON object with one member more, in front, which says what made it:
///
///   "orrery": {"version": "...", "inputs": [{"flag": "--model", "name": "gpt2", "hash": "..."}]}
///
/// Inputs are the files that arguments name, and shipped configurations behind names: of --model,
/// --machine, --plan and --table; `hash` is that of their bytes (study/sweep/input_hash.h). What
/// such a file names in turn is no input here. `outputs`: flags of files that are written.
/// Other texts, all where --json is not given, and those of export, import, list and show, whose
/// objects are read again, come back as they are.
std::string stamped(std::string text, const CLI::App& command,
                    const std::vector<std::string>& outputs);

}  // namespace orrery::cli
