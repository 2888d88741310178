// SPDX-License-Identifier: Apache-2.0
/// A run of gpt2 with its spans, and its trace as text.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "machine/machine.h"
#include "report/json_writer.h"
#include "report/trace.h"
#include "study/run.h"

namespace orrery::testing {

inline study::Run traced_run(const plan::Plan& plan) {
  const auto run = study::run_step(zoo::load_model("gpt2").value(),
                                   machine::load_machine("dgx-a100-80g").value(), plan, 0,
                                   {.record_spans = true});
  EXPECT_TRUE(run) << run.error().to_string();
  return run.value();
}

inline std::string trace_of(const study::Run& run) {
  std::string text;
  {
    report::JsonWriter writer([&](std::string_view piece) { text += piece; });
    write_trace(run, writer);
  }
  return text;
}

}  // namespace orrery::testing
