// SPDX-License-Identifier: Apache-2.0
/// Any bytes as a trace of requests: requests in order that have a prompt and an answer, or a
/// reason.
#include "serving/requests/trace.h"
#include "tests/fuzz/fuzz.h"

ORRERY_FUZZ(requests) {
  const std::string_view text(reinterpret_cast<const char*>(bytes), size);
  const auto trace = orrery::requests::parse_trace(text, "input");
  if (!trace) {
    orrery::fuzz::hold_error(trace.error());
    return 0;
  }
  orrery::Time last{0};
  for (const orrery::requests::Request& request : trace->requests) {
    if (request.after < 0) {
      orrery::fuzz::hold(request.arrival >= last, "requests stand in the order of their arrival");
      last = request.arrival;
    }
    orrery::fuzz::hold(request.input >= 1 && request.output >= 1, "a prompt and an answer");
    const auto ids = static_cast<std::int64_t>(request.ids.size());
    orrery::fuzz::hold(request.shared <= request.input + request.output &&
                           request.shared <= ids * request.id_tokens,
                       "what is shared has ids and is of prompt and answer");
  }
  return 0;
}
