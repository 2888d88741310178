// SPDX-License-Identifier: Apache-2.0
/// Bodies of OpenAI's completions and chat completions as vLLM reads and writes them.
///
/// Nothing is tokenised and no token has a meaning: a prompt of token ids has as many tokens as
/// ids, text one per four bytes (rounded up), of a chat each message four more; every token of an
/// answer is the word " token". Answers end at max_tokens, never before. Fields that say how tokens
/// are drawn (temperature, seed, stop ...) are read over.
/// Source: vLLM 0.19's OpenAI-compatible server.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <vector>

#include "base/units.h"
#include "serving/scheduler/kv_book.h"

namespace orrery::http {

struct Prompt {
  std::int64_t tokens = 0;
  /// Every whole block of tokens has one, with all before it: equal content has equal ones.
  std::vector<std::uint64_t> ids;
  std::vector<std::int64_t> token_ids;  ///< of a prompt that was a list of them
};

struct Ask {
  std::string model;  ///< empty: the one that there is
  std::vector<Prompt> prompts;
  std::int64_t choices = 1;  ///< answers to each prompt
  std::optional<std::int64_t>
      max_tokens;  ///< of each; none: what the model has room for (chat), 16
  bool chat = false;
  bool stream = false;
  bool usage = false;      ///< of a stream, in a last chunk
  bool estimated = false;  ///< tokens of a prompt that was text
};

struct Refusal {
  int status = 400;
  std::string message;
};

/// Reads a body; prompts have ids of blocks of so many tokens.
tl::expected<Ask, Refusal> parse_ask(std::string_view body, bool chat, std::int64_t block_tokens);

/// Holds the times of an answer in seconds of virtual time, from the begin of arrivals.
struct AnswerTimes {
  Time arrival{0};
  Time first_token{0};
  Time finish{0};
};

struct Usage {
  std::int64_t prompt = 0;
  std::int64_t completion = 0;
  std::int64_t cached = 0;  ///< of the prompt, found in the prefix cache
};

/// A Head is what all parts of an answer have in common.
struct Head {
  std::string id;
  std::string model;
  std::int64_t created = 0;  ///< seconds since 1970
  bool chat = false;
  bool estimated = false;
};

/// Returns "data: {...}\n\n" of so many tokens of a choice; the first of a chat also says who
/// speaks. `last`: its answer ends here, with these times.
std::string token_chunk(const Head& head, std::int64_t choice, std::int64_t tokens, bool first,
                        const AnswerTimes* last);
std::string usage_chunk(const Head& head, const Usage& usage, const AnswerTimes& times);
inline constexpr std::string_view kDone = "data: [DONE]\n\n";
/// Returns the whole answer; `tokens` by choice.
std::string whole_answer(const Head& head, const std::vector<std::int64_t>& tokens,
                         const Usage& usage, const AnswerTimes& times);
/// Returns an event of a stream about a block of so many tokens: vLLM's batch of KV events, as JSON
/// has what its msgpack has (vllm/distributed/kv_events.py),
///
///   [seconds, [["BlockStored", [key], parent or null, tokens, block, null, "GPU"]], rank]
///   [seconds, [["BlockRemoved", [key], "GPU"]], rank]
///
/// Keys are whole numbers as vLLM's, of 53 bits instead of its 64: readers of JSON that have only
/// doubles (JavaScript) read them as they are.
std::string kv_event(std::uint64_t number, Time at, std::int64_t rank,
                     const scheduler::KvChange& change, std::span<const std::int64_t> tokens,
                     std::int64_t block);
std::string error_body(const Refusal& refusal);
std::string models_body(const std::vector<std::string>& names, std::int64_t max_model_len);

}  // namespace orrery::http
