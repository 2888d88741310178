// SPDX-License-Identifier: Apache-2.0
/// MSCCL programs for tests.
#pragma once

#include <fmt/format.h>

#include <string>

namespace orrery::astra::testing {

inline std::string msccl_step(int index, const std::string& type, int count = 1, int block = -1,
                              int step = -1) {
  return fmt::format(
      "<step s=\"{}\" type=\"{}\" srcbuf=\"i\" srcoff=\"0\" dstbuf=\"i\" dstoff=\"0\" cnt=\"{}\" "
      "depid=\"{}\" deps=\"{}\" hasdep=\"0\"/>\n",
      index, type, count, block, step);
}

inline std::string msccl_block(int id, int send, int receive, const std::string& steps,
                               int channel = 0) {
  return fmt::format("<tb id=\"{}\" send=\"{}\" recv=\"{}\" chan=\"{}\">\n{}</tb>\n", id, send,
                     receive, channel, steps);
}

inline std::string msccl_gpu(int id, const std::string& blocks) {
  return fmt::format("<gpu id=\"{}\" i_chunks=\"8\" o_chunks=\"0\" s_chunks=\"0\">\n{}</gpu>\n", id,
                     blocks);
}

inline std::string msccl_program(int gpus, int parts, const std::string& body,
                                 const std::string& collective = "allreduce") {
  return fmt::format(
      "<algo name=\"test\" proto=\"Simple\" nchannels=\"1\" nchunksperloop=\"{}\" ngpus=\"{}\" "
      "coll=\"{}\" inplace=\"1\">\n{}</algo>\n",
      parts, gpus, collective, body);
}

/// A ring all-reduce: p-1 times send, then receive and reduce; p-1 times send, then receive.
inline std::string msccl_ring(int gpus) {
  std::string body;
  for (int gpu = 0; gpu < gpus; ++gpu) {
    std::string steps;
    for (int i = 0; i < 2 * (gpus - 1); ++i) {
      steps += msccl_step(2 * i, "s");
      steps += msccl_step(2 * i + 1, i < gpus - 1 ? "rrc" : "r");
    }
    body += msccl_gpu(gpu, msccl_block(0, (gpu + 1) % gpus, (gpu + gpus - 1) % gpus, steps));
  }
  return msccl_program(gpus, gpus, body);
}

}  // namespace orrery::astra::testing
