// SPDX-License-Identifier: Apache-2.0
/// A run as logs and pages tell of it, in one cell of a table (the profile's `flags`), its parts
/// between bars:
///
///   MODEL (FORMAT) | MACHINE | ENGINE | --input 1000 --output 250 ... | REMARK
///   vllm serve MODEL ... | LOAD | MACHINE      also python3 -m sglang.launch_server, trtllm-serve
///
///   FORMAT   awq, mxfp4, fp8, ...; none: the checkpoint's, which the model's name may end in
///   ENGINE   fields of an engine's file with semicolons for ends of lines
///   flags    --requests N, --rate R, --arrival NAME, --max-concurrency N, --input and --output
///            LENGTH, --shared-prefix N, --prefix-groups N, --dataset sharegpt
///   LOAD     sharegpt, random-128, random-2k, random-4k, random-32k, with "-cN" at the end for N
///            requests at once: gpustack's performance lab
///
/// A model is the shipped one whose name the text begins with, without organisation: the longest.
#pragma once

#include <string>
#include <string_view>

#include "study/served/row_case.h"

namespace orrery::served {

/// Mistakes: other forms, models, machines and flags that are not known.
Result<RowCase> described_case(std::string_view text, const std::string& where);

}  // namespace orrery::served
