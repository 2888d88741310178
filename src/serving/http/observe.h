// SPDX-License-Identifier: Apache-2.0
/// A client of any OpenAI-compatible endpoint sends requests at their arrivals and takes times.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "serving/requests/request.h"

namespace orrery::http {

/// Holds the times of an answer on the client's clock, from the begin of the run.
struct Observed {
  std::int64_t input = 0;   ///< tokens that were sent
  std::int64_t output = 0;  ///< that the endpoint says it generated; its pieces, if it does not
  Time sent{0};
  Time first{0};  ///< the first piece with text
  Time last{0};
  int status = 0;  ///< of HTTP; 0: the connection broke
};

/// Sends every request at its arrival over a connection of its own, whatever is answered: prompts
/// of token ids that are equal where requests share content, streams, `ignore_eos`. Mistakes: a URL
/// that is none, no connection at all. Ignores turns of sessions (all are sent at their arrivals).
Result<std::vector<Observed>> observe(const std::string& url, const std::string& model,
                                      const std::vector<requests::Request>& requests);

/// Returns one row per request: request, input_tokens, output_tokens, sent_s, ttft_s, tpot_s,
/// e2e_s, status.
std::string observed_csv(const std::vector<Observed>& seen);

/// A ResponseReader takes a response apart: its head, and the text of its body's pieces.
class ResponseReader {
 public:
  /// Takes bytes from the network; returns those of the body among them.
  std::string take(std::string_view bytes);
  int status() const { return status_; }  ///< 0: not known yet

 private:
  std::string head_;
  std::string line_;       ///< of a chunk's size
  std::size_t chunk_ = 0;  ///< bytes left of it
  int status_ = 0;
  bool chunked_ = false;
  bool in_head_ = true;
};

}  // namespace orrery::http
