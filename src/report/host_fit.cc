// SPDX-License-Identifier: Apache-2.0
#include "report/host_fit.h"

#include <fmt/format.h>

namespace orrery::report {

std::string host_fit_text(const serving::HostFit& fit) {
  const auto milliseconds = [](Time time) { return 1e3 * to_seconds(time); };
  const serving::Engine& engine = fit.engine;
  std::string text = fmt::format("Host of {} from {} requests\n\n", engine.name, fit.requests);
  text += fmt::format("front_end    {:.4g} ms\n", milliseconds(engine.front_end));
  text += engine.async ? fmt::format("gap          {:.4g} ms\n", milliseconds(engine.gap))
                       : fmt::format("step         {:.4g} ms\n", milliseconds(engine.step));
  text += fmt::format("per_request  {:.4g} us\n\n", 1e6 * to_seconds(engine.per_request));
  text += "Mean |ln(predicted / measured)|    before     after\n";
  text += fmt::format("TTFT                           {:>10.4f}{:>10.4f}\n", fit.before.ttft,
                      fit.after.ttft);
  return text + fmt::format("TPOT                           {:>10.4f}{:>10.4f}\n", fit.before.tpot,
                            fit.after.tpot);
}

void declare(const serving::HostFit& fit, Fields& fields) {
  constexpr std::string_view kError = "mean |ln(predicted / measured)|";
  fields.field("engine", "whose host it is", fit.engine.name);
  fields.field("requests", "that were answered", fit.requests);
  fields.field("front_end_s", "seconds", fit.engine.front_end);
  fields.field("step_s", "seconds", fit.engine.step);
  fields.field("gap_s", "seconds", fit.engine.gap);
  fields.field("per_request_s", "seconds", fit.engine.per_request);
  fields.field("ttft_before", kError, fit.before.ttft);
  fields.field("ttft_after", kError, fit.after.ttft);
  fields.field("tpot_before", kError, fit.before.tpot);
  fields.field("tpot_after", kError, fit.after.tpot);
}

}  // namespace orrery::report
