// SPDX-License-Identifier: Apache-2.0
#include "workload/chakra/load.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/file.h"
#include "base/names.h"
#include "workload/chakra/byte_window.h"
#include "workload/chakra/file_cache.h"
#include "workload/chakra/json_trace.h"
#include "workload/chakra/process_groups.h"
#include "workload/chakra/program_builder.h"
#include "workload/chakra/program_store.h"
#include "workload/chakra/trace_files.h"
#include "workload/chakra/wire.h"

namespace orrery::chakra {
namespace {

constexpr std::int64_t kMostRanks = std::int64_t{1} << 31;

class Loader {
 public:
  explicit Loader(const LoadOptions& options) : options_(options), groups_(options.ranks) {}

  Result<TraceSet> run() {
    auto files = find_trace_files(options_.prefix);
    if (!files) {
      return fail(files.error());
    }
    files_ = std::move(*files);
    Error mistakes = identify_all();
    if (options_.groups) {
      if (auto read = groups_.read_file(*options_.groups); !read) {
        mistakes.add(std::move(read.error()));
      }
    }
    if (!mistakes.empty()) {
      return fail(std::move(mistakes));
    }
    set_.program_of.resize(static_cast<std::size_t>(options_.ranks));
    for (std::int64_t rank = 0; rank < options_.ranks; ++rank) {
      if (!load_rank(rank)) {
        return fail(mistakes_.take());
      }
      report(rank + 1);
    }
    set_.programs = programs_.take();
    set_.groups = groups_.take();
    return std::move(set_);
  }

 private:
  /// identities_ = one per file. Missing files are mistakes, all named up to a limit.
  Error identify_all() {
    const std::int64_t count = files_.one.empty() ? options_.ranks : 1;
    mistakes_.begin(files_.prefix);
    identities_.reserve(static_cast<std::size_t>(count));
    for (std::int64_t rank = 0; rank < count; ++rank) {
      const std::string path = files_.of(rank);
      const auto identity = identify(path);
      if (identity) {
        identities_.push_back(*identity);
      } else {
        mistakes_.add(fmt::format("traces of {} ranks", options_.ranks), {},
                      path + ": " + identity.error().mistakes.front().expected);
      }
    }
    return mistakes_.take();
  }

  bool load_rank(std::int64_t rank) {
    if (rank == 0 || identities_.size() > 1) {
      const FileIdentity& identity = identities_[static_cast<std::size_t>(rank)];
      const std::string path = files_.of(rank);
      file_ = cache_.find(identity);
      if (file_ == nullptr) {
        file_ = read(identity, path);
      }
      mistakes_.name(path);
    }
    return file_ != nullptr && assign(rank, *file_);
  }

  /// The file, or that with the same bytes; null after a mistake.
  ReadFile* read(const FileIdentity& identity, const std::string& path) {
    mistakes_.begin(path);
    std::string_view bytes;
    if (files_.json()) {
      auto text = read_file(path);
      if (!text) {
        return refuse(text.error());
      }
      text_ = std::move(*text);
      bytes = text_;
    } else {
      if (auto opened = window_.open(path); !opened) {
        return refuse(opened.error());
      }
      bytes = window_.whole() ? window_.view() : std::string_view();
    }
    const std::uint64_t hash = hash_bytes(bytes);
    if (ReadFile* same = bytes.empty() ? nullptr : cache_.find(bytes, hash)) {
      cache_.link(identity, *same);
      return same;
    }
    builder_.begin(mistakes_);
    if (files_.json()) {
      read_json_trace(text_, builder_, mistakes_);
    } else {
      read_et(window_, builder_, mistakes_);
    }
    if (!mistakes_.empty()) {
      return nullptr;
    }
    ReadFile& file = cache_.add(identity, bytes, hash);
    file.group_of_slot = resolve_groups(builder_.trace());
    return mistakes_.empty() ? keep(file) : nullptr;
  }

  ReadFile* refuse(const Error& error) {
    for (const Mistake& mistake : error.mistakes) {
      mistakes_.add(mistake.field, mistake.found, mistake.expected);
    }
    return nullptr;
  }

  /// Takes the builder's trace over; what ranks do not tell apart is done here, once.
  ReadFile* keep(ReadFile& file) {
    FileTrace& trace = builder_.trace();
    if (trace.same_for_all()) {
      file.program = programs_.store(trace.program);
      trace.program = Program();
    }
    file.trace = trace;
    cache_.charge(file);
    return &file;
  }

  bool assign(std::int64_t rank, const ReadFile& file) {
    const FileTrace& trace = file.trace;
    auto& program = set_.program_of[static_cast<std::size_t>(rank)];
    program = trace.same_for_all() ? file.program : relative(rank, trace);
    assign_groups(rank, file);
    return mistakes_.empty();
  }

  /// Index of the trace's program with peers as offsets from `rank`.
  std::uint32_t relative(std::int64_t rank, const FileTrace& trace) {
    scratch_ = trace.program;
    for (Node& node : scratch_.nodes) {
      if (node.type != NodeType::comm_send && node.type != NodeType::comm_recv) {
        continue;
      }
      if (node.on_cpu && !node.has_size) {
        continue;
      }
      if (node.peer >= options_.ranks || node.peer == rank) {
        wrong(node, node.type == NodeType::comm_send ? "comm_dst" : "comm_src", node.peer,
              fmt::format("a rank from 0 to {} other than its own, {}", options_.ranks - 1, rank));
      }
      node.peer -= rank;
    }
    for (const OwnRank& own : trace.own_ranks) {
      const Node& node = scratch_.nodes[own.node];
      if (own.rank != rank) {
        wrong(node, node.type == NodeType::comm_send ? "comm_src" : "comm_dst", own.rank,
              fmt::format("the rank of the file, {}", rank));
      }
    }
    return mistakes_.empty() ? programs_.store(scratch_) : 0;
  }

  void wrong(const Node& node, std::string_view field, std::int64_t found, std::string expected) {
    mistakes_.add(fmt::format("{}: {}", node_label(node.id, scratch_.name_of(node)), field),
                  std::to_string(found), std::move(expected));
  }

  /// Indices of the groups that the file's names mean.
  std::vector<std::uint32_t> resolve_groups(const FileTrace& trace) {
    std::vector<std::uint32_t> found;
    groups_.define(trace.definitions, mistakes_);
    for (const std::string& name : trace.groups) {
      const auto group = groups_.find(name);
      if (!group) {
        mistakes_.add(fmt::format("process group '{}'", name), "no definition",
                      "one in the file of communicator groups or in a METADATA node" +
                          did_you_mean(name, groups_.names()));
      }
      found.push_back(group.value_or(0));
    }
    groups_.end_file();
    return found;
  }

  void assign_groups(std::int64_t rank, const ReadFile& file) {
    const auto at = static_cast<std::size_t>(rank);
    if (!file.group_of_slot.empty() && set_.first_slot.empty()) {
      set_.first_slot.resize(set_.program_of.size(), 0);
    }
    if (!set_.first_slot.empty()) {
      set_.first_slot[at] = static_cast<std::uint32_t>(set_.group_slots.size());
    }
    for (const std::uint32_t group : file.group_of_slot) {
      if (!groups_.has_member(group, rank)) {
        mistakes_.add(fmt::format("process group '{}'", groups_[group].name),
                      "a group without this rank",
                      fmt::format("a group of rank {}, which takes part in it", rank));
      }
      set_.group_slots.push_back(group);
    }
  }

  void report(std::int64_t done) const {
    constexpr std::int64_t kEvery = 256;
    if (options_.progress && (done % kEvery == 0 || done == options_.ranks)) {
      options_.progress(static_cast<double>(done) / static_cast<double>(options_.ranks));
    }
  }

  const LoadOptions& options_;
  TraceFiles files_;
  std::vector<FileIdentity> identities_;
  GroupTable groups_;
  Mistakes mistakes_;
  ByteWindow window_;
  std::string text_;
  ProgramBuilder builder_;
  FileCache cache_;
  ReadFile* file_ = nullptr;  ///< of the rank read last
  ProgramStore programs_;
  Program scratch_;
  TraceSet set_;
};

}  // namespace

Result<TraceSet> load(const LoadOptions& options) {
  if (options.ranks < 1 || options.ranks > kMostRanks) {
    return fail(Error(Mistake{{},
                              "ranks",
                              std::to_string(options.ranks),
                              fmt::format("a number from 1 to {}", kMostRanks)}));
  }
  return Loader(options).run();
}

}  // namespace orrery::chakra
