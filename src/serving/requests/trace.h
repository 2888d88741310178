// SPDX-License-Identifier: Apache-2.0
/// Published traces of requests, told apart by their columns.
///
///   vllm_requests  CSV   input_tokens, output_tokens, arrival_s (and others, not read)
///   Azure          CSV   TIMESTAMP ("2023-11-16 18:15:46.6805900"), ContextTokens, GeneratedTokens
///   BurstGPT       CSV   Timestamp (s), Request tokens, Response tokens; 0 response tokens: a
///                        failure, left out
///   splitwise      CSV   arrival_timestamp (s), prompt_size, token_size
///   Mooncake       JSONL timestamp (ms), input_length, output_length, hash_ids of 512-token blocks
///   LLMServingSim  JSONL input_toks, output_toks, arrival_time_ns; or a session a line:
///                        sub_requests of input_toks, output_toks, tool_duration_ns, each sent so
///                        long after the answer before; a prompt that is no shorter than the one
///                        before and its answer begins with them
///   lengths        JSONL input, output, and arrival_s or nobody's (ShareGPT, tokenised)
#pragma once

#include <string>
#include <vector>

#include "base/csv.h"
#include "base/result.h"
#include "serving/requests/request.h"

namespace orrery::requests {

struct Trace {
  std::string kind;               ///< as above
  std::vector<Request> requests;  ///< by arrival, the first at 0; turns after their first
  std::int64_t left_out = 0;      ///< rows without an answer
  bool timed = true;              ///< false: of lengths without arrivals, all at 0
};

/// Mistakes, at most 20: a file of no known kind, cells that are no numbers, counts below 1.
Result<Trace> load_trace(const std::string& file);
Result<Trace> parse_trace(std::string_view text, const std::string& file);

}  // namespace orrery::requests
