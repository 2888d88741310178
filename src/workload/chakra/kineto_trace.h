// SPDX-License-Identifier: Apache-2.0
/// Kineto traces (torch.profiler's export_chrome_trace) of one rank -> records.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/config_node.h"
#include "workload/chakra/mistakes.h"
#include "workload/chakra/program_builder.h"
#include "workload/chakra/record.h"

namespace orrery::chakra {

/// Reads the device's activities (categories kernel, gpu_memcpy, gpu_memset) in order of their
/// start, each as one node:
///
///   kernel with "Collective name"  COMM_COLL, or of send and recv COMM_SEND, COMM_RECV
///   any other                      COMP of the measured duration, without operations and bytes
///
/// Sizes are "In msg nelems" elements of "dtype", groups "Process Group Name" and "Process Group
/// Ranks" (or "Global rank start" and "Global rank stride", where the list is cut).
///
/// A node depends on the one before it in its stream and, in every other stream, on the last that
/// had ended when it began. So what was measured one after the other stays so, also where the
/// program did not ask for it, and what ran at once may.
/// Durations are whole microseconds, the remainder is carried to the next.
/// Ignores: the host, so idle time between kernels; how long communication took.
/// Mistakes: no device activities; an NCCL kernel without what it transfers, between which ranks
/// (PyTorch writes them from 2.4 on); collectives and types that are not known.
/// Source: field names as in PyTorch's profiler (torch/csrc/profiler/util.h).
///
/// Events are read one by one: beside its text a trace takes the memory of its activities alone.
class KinetoReader {
 public:
  KinetoReader(ProgramBuilder& builder, Mistakes& mistakes)
      : builder_(builder), mistakes_(mistakes) {}

  /// Keeps an event of traceEvents that is the device's; `line` is its first in the file.
  void collect(const ConfigNode& event, std::int64_t line);
  /// Adds the nodes of all events; `line`: of the list. False after a mistake.
  bool finish(std::int64_t line);

 private:
  /// An activity of the device.
  struct Activity {
    double start = 0;  ///< us
    double duration = 0;
    std::int64_t line = 0;
    std::uint32_t name = 0;    ///< in names_
    std::uint32_t stream = 0;  ///< in streams_
    std::int32_t args = -1;    ///< of a transfer, in transfers_
  };

  void wrong(std::string_view field, std::string found, std::string expected);
  void add(std::size_t number);
  void depend(std::size_t number);
  double end_of(std::uint64_t number) const;
  void read_communication(const ConfigNode& args, const ConfigNode& collective);
  std::uint64_t number(const ConfigNode& args, std::string_view field);
  std::uint64_t size_of(const ConfigNode& args);
  void define(const ConfigNode& args, std::string_view name);

  ProgramBuilder& builder_;
  Mistakes& mistakes_;
  std::vector<Activity> activities_;
  std::vector<ConfigNode> transfers_;  ///< args of NCCL's kernels
  std::map<std::string, std::uint32_t, std::less<>> name_of_;
  std::vector<const std::string*> names_;
  std::map<std::string, std::uint32_t, std::less<>> stream_of_;
  std::vector<std::vector<std::uint64_t>> streams_;  ///< nodes so far
  /// Node after the last that the first stream depends on in the second.
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint64_t> waited_;
  std::map<std::string, std::string> defined_;  ///< ranks by group's name
  std::uint64_t listed_ = 0;                    ///< ranks in groups whose lists were cut
  NodeRecord record_;
  double rounding_ = 0;
  std::int64_t line_ = 0;  ///< of what is read
  bool good_ = true;
};

}  // namespace orrery::chakra
