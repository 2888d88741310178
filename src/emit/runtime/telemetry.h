// SPDX-License-Identifier: Apache-2.0
/// Communication of this rank as `orrery diagnose` reads it: one JSON object a line.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <fstream>
#include <string>
#include <vector>

namespace plan {

/// Entry is a collective that this rank has entered.
struct Entry {
  const std::string& communicator;
  std::uint64_t sequence;
  const char* operation;
  std::uint64_t bytes;
  double entered;
  double ended;     ///< below 0: it has not
  double computed;  ///< processor seconds of the plan's work since the collective before
};

class Telemetry {
 public:
  /// Writes PREFIX.RANK.jsonl; nothing if the prefix is empty.
  Telemetry(const std::string& prefix, int rank) : rank_(rank) {
    if (!prefix.empty()) {
      file_.open(prefix + "." + std::to_string(rank) + ".jsonl");
      file_.precision(9);
      file_ << std::fixed;
    }
  }

  bool on() const { return file_.is_open(); }

  /// Writes the members of a communicator, from each of them: files are read in any order.
  void communicator(const std::string& name, MPI_Comm comm) {
    MPI_Group world = MPI_GROUP_NULL;
    MPI_Group group = MPI_GROUP_NULL;
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    MPI_Comm_group(comm, &group);
    int size = 0;
    MPI_Group_size(group, &size);
    std::vector<int> places;
    for (int i = 0; i < size; ++i) {
      places.push_back(i);
    }
    std::vector<int> ranks(places.size());
    MPI_Group_translate_ranks(group, size, places.data(), world, ranks.data());
    if (on()) {
      file_ << R"({"type": "communicator", "name": ")" << name << R"(", "ranks": [)";
      for (std::size_t i = 0; i < ranks.size(); ++i) {
        file_ << (i == 0 ? "" : ", ") << ranks[i];
      }
      file_ << "]}" << std::endl;  // a process that hangs is killed
    }
    MPI_Group_free(&group);
    MPI_Group_free(&world);
  }

  void collective(const Entry& entry) {
    if (!on()) {
      return;
    }
    file_ << R"({"type": "collective", "communicator": ")" << entry.communicator << R"(", "rank": )"
          << rank_ << R"(, "sequence": )" << entry.sequence << R"(, "operation": ")"
          << entry.operation << R"(", "bytes": )" << entry.bytes << R"(, "entered_s": )"
          << entry.entered << R"(, "computed_s": )" << entry.computed;
    if (entry.ended >= 0) {
      file_ << R"(, "ended_s": )" << entry.ended;
    }
    file_ << "}" << std::endl;
  }

  /// Writes a message. `resolution`: seconds by which a duration may be off.
  void message(int source, int target, std::uint64_t bytes, double begin, double end,
               double resolution) {
    if (on()) {
      file_ << R"({"type": "message", "source": )" << source << R"(, "target": )" << target
            << R"(, "bytes": )" << bytes << R"(, "begin_s": )" << begin << R"(, "end_s": )" << end
            << R"(, "resolution_s": )" << resolution << "}" << std::endl;
    }
  }

  /// Writes a message that has not arrived, as a collective of its two ranks that this one has
  /// entered.
  void open_message(int source, int target, std::uint64_t number, std::uint64_t bytes,
                    double entered) {
    const std::string name = "messages." + std::to_string(source) + "." + std::to_string(target);
    if (on()) {
      file_ << R"({"type": "communicator", "name": ")" << name << R"(", "ranks": [)" << source
            << ", " << target << "]}" << std::endl;
    }
    collective({name, number, "send_recv", bytes, entered, -1, 0});
  }

  void snapshot(double time) {
    if (on()) {
      file_ << R"({"type": "snapshot", "rank": )" << rank_ << R"(, "time_s": )" << time << "}"
            << std::endl;
    }
  }

 private:
  int rank_;
  std::ofstream file_;
};

}  // namespace plan
