// SPDX-License-Identifier: Apache-2.0
/// Any bytes as a table of measured kernels: times that are not negative, or a reason.
#include "serving/step/measured_kernels.h"
#include "tests/fuzz/fuzz.h"

ORRERY_FUZZ(kernels) {
  const std::string_view text(reinterpret_cast<const char*>(bytes), size);
  const auto table = orrery::parse_csv(text, "input");
  if (!table) {
    orrery::fuzz::hold_error(table.error());
    return 0;
  }
  const auto kernels = orrery::step::MeasuredKernels::of({*table});
  if (!kernels) {
    orrery::fuzz::hold_error(kernels.error());
    return 0;
  }
  using orrery::Time;
  for (const std::int64_t rows : {1, 7, 4096}) {
    const auto time = kernels->layer("qkv_gemm", rows);
    orrery::fuzz::hold(!time || *time >= Time(0), "a layer takes time");
    const auto product = kernels->product(orrery::graph::DataType::bf16, rows, 64, 32);
    orrery::fuzz::hold(!product || *product >= Time(0), "a product takes time");
  }
  if (!kernels->has_attention()) {
    return 0;
  }
  for (const double queries : {0.0, 3.0, 5000.0}) {
    for (const double decodes : {1.0, 70.0}) {
      const Time time = kernels->attention(
          {.queries = queries, .context = 10 * queries, .decodes = decodes, .keys = 900});
      orrery::fuzz::hold(time >= Time(0), "attention takes time");
    }
  }
  orrery::fuzz::hold(kernels->further_prompt(40, 0) >= Time(0), "a further prompt takes time");
  return 0;
}
