// SPDX-License-Identifier: Apache-2.0
#include "report/host_fit.h"

#include <fmt/format.h>

#include "report/json_writer.h"

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

std::string host_fit_json(const serving::HostFit& fit) {
  return json_text([&](JsonWriter& json) {
    json.begin_object();
    json.key("engine").value(fit.engine.name).key("requests").value(fit.requests);
    json.key("front_end_s").value(to_seconds(fit.engine.front_end));
    json.key("step_s").value(to_seconds(fit.engine.step));
    json.key("gap_s").value(to_seconds(fit.engine.gap));
    json.key("per_request_s").value(to_seconds(fit.engine.per_request));
    json.key("ttft_before").value(fit.before.ttft).key("ttft_after").value(fit.after.ttft);
    json.key("tpot_before").value(fit.before.tpot).key("tpot_after").value(fit.after.tpot);
    json.end_object();
  });
}

}  // namespace orrery::report
