// SPDX-License-Identifier: Apache-2.0
/// Cases whose results are frozen: plans as lowered workloads, engine passes as times, strategies
/// of the SPMD search. What is kept of each is a hash of its text (hashes.tsv).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/config_node.h"
#include "base/result.h"
#include "dump.h"

namespace orrery::golden {

/// Kind says whose result: plans.yaml, engines.yaml or spmd.yaml of this folder.
enum class Kind : std::uint8_t { plan, engine, spmd };

struct Case {
  Kind kind = Kind::plan;
  std::string name;  ///< "plans/gpt-dp"
  ConfigNode node;
};

/// Every case of every file, in their order.
Result<std::vector<Case>> all_cases();

/// The case's text. Of a plan the columns of sections_of() without the pass "fuse", then with it;
/// of an engine one time in ps a line, by shape of the step; of a graph the cost in ps, the
/// strategy and the simulated time in ps. Mistakes: those of the case's model, plan, machine or
/// engine.
Result<std::vector<Section>> text_of(const Case& one);

/// The first 32 bits of FNV-1a.
std::uint32_t hash_of(std::string_view text);

/// "case <tab> section <tab> hash hash": a line of hashes.tsv.
std::string hash_line(const Case& one, const Section& section);

/// tests/golden/NAME.
std::string golden_path(std::string_view name);

}  // namespace orrery::golden
