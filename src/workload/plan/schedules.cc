// SPDX-License-Identifier: Apache-2.0
#include <limits>

#include "workload/plan/schedule_row.h"
#include "workload/plan/schedule_v.h"

namespace orrery::plan {
namespace {

std::int64_t behind(const PipelineShape& shape, std::int64_t stage) {
  return shape.stages - 1 - stage;
}

std::int64_t interleaved_warmup(const PipelineShape& shape, std::int64_t stage) {
  return 2 * behind(shape, stage) + (shape.chunks - 1) * shape.stages + (shape.pairs ? 1 : 0);
}

/// Two chunks per device in a V, whose weight gradients fill the bubbles.
ScheduleRow in_a_v(ScheduleRow row) {
  row.whole_backwards = false;
  row.split_backwards = true;
  row.least_chunks = row.most_chunks = 2;
  row.folds = true;
  row.least_stages = 2;
  return row;
}

}  // namespace

std::vector<ScheduleRow> shipped_schedules() {
  return {
      {.value = Schedule::gpipe,
       .name = "gpipe",
       .sentence = "all forwards, then all backwards",
       .torchtitan = "GPipe",
       .forwards_first = true,
       .searched = false},
      {.value = Schedule::one_f_one_b,
       .name = "1f1b",
       .sentence = "warm up, then one forward and one backward in turn",
       .torchtitan = "1F1B",
       .warmup =
           [](const PipelineShape& shape, std::int64_t stage) {
             return shape.pairs ? 2 * behind(shape, stage) + 1 : behind(shape, stage);
           },
       .in_pairs = true},
      {.value = Schedule::interleaved,
       .name = "interleaved",
       .sentence = "1F1B over `chunks` model chunks per device",
       .torchtitan = "Interleaved1F1B",
       .warmup = interleaved_warmup,
       .in_pairs = true,
       .least_chunks = 2,
       .most_chunks = std::numeric_limits<std::int64_t>::max(),
       .least_stages = 2,
       .by_rounds = true},
      {.value = Schedule::zb_h1,
       .name = "zb-h1",
       .sentence = "1F1B whose weight gradients fill the bubbles",
       .runs = zb_h1_runs,
       .whole_backwards = false,
       .split_backwards = true,
       .least_stages = 2},
      in_a_v({.value = Schedule::zb_v,
              .name = "zb-v",
              .sentence = "two chunks per device in a V, weight gradients fill the bubbles",
              .torchtitan = "ZBVZeroBubble",
              .runs = zb_v_runs}),
      in_a_v({.name = "v-half",
              .sentence = "zb-v with half of its activations: a stage holds about p/2 microbatches",
              .runs = v_half_runs}),
      in_a_v(
          {.name = "v-min",
           .sentence = "zb-v with a third of its activations: a stage holds about p/3 microbatches",
           .runs = v_min_runs}),
      {.value = Schedule::dualpipe,
       .name = "dualpipe",
       .sentence = "both ends at once, two copies of every stage",
       .runs = dualpipe_runs,
       .split_backwards = true,
       .in_pairs = true,
       .folds = true,
       .both_ends = true,
       .least_stages = 2},
  };
}

const std::vector<ScheduleRow>& schedules() {
  static const std::vector<ScheduleRow> rows = in_listed_order(schedule_list());
  return rows;
}

const std::vector<Named<Schedule>>& listed_values(Schedule /*any*/) {
  static const std::vector<Named<Schedule>> names = names_of_rows(schedules());
  return names;
}

std::string schedules_that(const std::function<bool(const ScheduleRow&)>& holds) {
  std::string text;
  std::string_view last;
  for (const ScheduleRow& row : schedules()) {
    if (holds(row)) {
      text += (text.empty() || last.empty() ? "" : ", ") + std::string(last);
      last = row.name;
    }
  }
  return text + (text.empty() ? "" : " or ") + std::string(last);
}

}  // namespace orrery::plan
