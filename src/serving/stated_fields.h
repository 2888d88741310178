// SPDX-License-Identifier: Apache-2.0
/// Fields of an engine that flags state beside its file.
#pragma once

#include <string>
#include <vector>

#include "serving/engine.h"

namespace orrery::serving {

struct StatedField {
  std::string section;
  std::string field;
  std::string text;  ///< as in a file
  std::string flag;  ///< for mistakes
};

/// Returns load_engine_for() of a file with these fields instead of its own.
Result<Engine> load_engine_with(const zoo::ModelFile& model, const std::string& name_or_path,
                                const std::vector<StatedField>& fields);

/// Returns the flag of a field of an engine: "--max-num-seqs" of scheduler.max_num_seqs; outside of
/// parallel, precision, scheduler, cache and fleet with its section, "--host-gap".
std::string flag_of_field(std::string_view section, std::string_view field);

/// A flag of vLLM, SGLang or TensorRT-LLM that states one field, with the field's own flag.
struct ForeignFlag {
  std::string flag;
  std::string own;
  bool negates = false;  ///< it states that a field is false
};
const std::vector<ForeignFlag>& foreign_flags();

}  // namespace orrery::serving
