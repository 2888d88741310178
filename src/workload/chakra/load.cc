// SPDX-License-Identifier: Apache-2.0
#include "workload/chakra/load.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <list>

#include "base/file.h"
#include "base/names.h"
#include "workload/chakra/byte_window.h"
#include "workload/chakra/file_cache.h"
#include "workload/chakra/json_trace.h"
#include "workload/chakra/process_groups.h"
#include "workload/chakra/program_builder.h"
#include "workload/chakra/program_store.h"
#include "workload/chakra/simai_trace.h"
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
    if (rank == 0 || identities_.size() > 1 || files_.text()) {
      const FileIdentity& identity =
          identities_[files_.one.empty() ? static_cast<std::size_t>(rank) : 0];
      const std::string path = files_.of(rank);
      if (file_ == nullptr || identity != identity_ || files_.text()) {
        identity_ = identity;
        file_ = cache_.find(identity);
        file_ = file_ == nullptr ? read(identity, path, rank) : file_;
      }
      mistakes_.name(path);
    }
    return file_ != nullptr && assign(rank, *file_);
  }

  /// Returns the file, or that with the same bytes; null after a mistake.
  const ReadFile* read(const FileIdentity& identity, const std::string& path, std::int64_t rank) {
    mistakes_.begin(path);
    std::string_view bytes;
    if (files_.json() || files_.text()) {
      auto text = read_file(path);
      if (!text) {
        return refuse(text.error());
      }
      text_ = std::move(*text);
      bytes = text_;
    } else {
      if (auto opened = window_.open(path, identity.size); !opened) {
        return refuse(opened.error());
      }
      bytes = window_.whole() ? window_.view() : std::string_view();
    }
    if (const ReadFile* alike = match(identity, bytes, rank)) {
      return alike;
    }
    const std::uint64_t hash = hash_bytes(bytes);
    if (const ReadFile* same = bytes.empty() ? nullptr : cache_.find(bytes, hash)) {
      cache_.link(identity, *same);
      return same;
    }
    decode(bytes, rank);
    return mistakes_.empty() ? keep(identity, bytes, hash) : nullptr;
  }

  /// Returns a file read before from which this one differs in groups and peers only.
  const ReadFile* match(const FileIdentity& identity, std::string_view bytes, std::int64_t rank) {
    const auto alike = std::find_if(shapes_.begin(), shapes_.end(), [&](FileShape& shape) {
      return !bytes.empty() && shape.matches(bytes, rank, options_.ranks, group_names_);
    });
    if (alike == shapes_.end()) {
      return nullptr;
    }
    shapes_.splice(shapes_.begin(), shapes_, alike);
    own_.program = alike->program();
    own_.group_of_slot = resolve_groups(group_names_, alike->definitions());
    own_.same_for_all = true;
    if (alike->same_for_all()) {
      return &cache_.add(identity, {}, 0, own_);
    }
    identity_ = {};  // says something else to the next rank
    return &own_;
  }

  void decode(std::string_view bytes, std::int64_t rank) {
    builder_.begin(mistakes_);
    decoded_rank_ = rank;
    if (files_.text()) {
      read_simai_trace(text_, rank, options_.ranks, builder_, mistakes_);
      return;
    }
    if (files_.json()) {
      read_json_trace(text_, builder_, mistakes_);
      return;
    }
    constexpr std::size_t kShapes = 8;  // ranks of the stages of a pipeline may alternate
    if (shapes_.size() < kShapes) {
      shapes_.emplace_back();
    }
    shapes_.splice(shapes_.begin(), shapes_, std::prev(shapes_.end()));
    read_et(window_, builder_, shapes_.front(), mistakes_);
    decoded_ = bytes;
  }

  /// Remembers the decoded file's shape, once its program is known.
  void remember(std::int64_t rank) {
    if (decoded_rank_ != rank || decoded_.empty()) {
      return;
    }
    if (builder_.in_file_order() && mistakes_.empty()) {
      shapes_.front().finish(decoded_, builder_.trace(), rank,
                             set_.program_of[static_cast<std::size_t>(rank)]);
    }
    decoded_ = {};
  }

  const ReadFile* refuse(const Error& error) {
    for (const Mistake& mistake : error.mistakes) {
      mistakes_.add(mistake.field, mistake.found, mistake.expected);
    }
    return nullptr;
  }

  /// Keeps what all ranks of the file share, which is found once. A trace that says something else
  /// to every rank stays in the builder for the ranks that follow with the same file; then it is
  /// read again.
  const ReadFile* keep(const FileIdentity& identity, std::string_view bytes, std::uint64_t hash) {
    const FileTrace& trace = builder_.trace();
    offset_ = 0;
    own_.group_of_slot = resolve_groups(trace.groups, trace.definitions);
    own_.same_for_all = trace.messages.empty() && !files_.text();  // whose groups are a rank's
    if (!mistakes_.empty() || !own_.same_for_all) {
      return mistakes_.empty() ? &own_ : nullptr;
    }
    own_.program = programs_.store(trace.program);
    return &cache_.add(identity, bytes, hash, own_);
  }

  bool assign(std::int64_t rank, const ReadFile& file) {
    set_.program_of[static_cast<std::size_t>(rank)] =
        file.same_for_all ? file.program : relative(rank, builder_.trace());
    assign_groups(rank, file);
    remember(rank);
    return mistakes_.empty();
  }

  /// Index of the trace's program with peers as offsets from `rank`, made from offsets from
  /// `offset_`.
  std::uint32_t relative(std::int64_t rank, FileTrace& trace) {
    Program& program = trace.program;
    for (const std::uint32_t position : trace.messages) {
      Node& node = program.nodes[position];
      node.peer += offset_ - rank;
      if (node.peer + rank >= options_.ranks || node.peer == 0) {
        wrong(program, node, node.type == NodeType::comm_send ? "comm_dst" : "comm_src",
              node.peer + rank,
              fmt::format("a rank from 0 to {} other than its own, {}", options_.ranks - 1, rank));
      }
    }
    offset_ = rank;
    for (const OwnRank& own : trace.own_ranks) {
      const Node& node = program.nodes[own.node];
      if (own.rank != rank) {
        wrong(program, node, node.type == NodeType::comm_send ? "comm_src" : "comm_dst", own.rank,
              fmt::format("the rank of the file, {}", rank));
      }
    }
    return mistakes_.empty() ? programs_.store(program) : 0;
  }

  void wrong(const Program& program, const Node& node, std::string_view field, std::int64_t found,
             std::string expected) {
    mistakes_.add(fmt::format("{}: {}", node_label(node.id, program.name_of(node)), field),
                  std::to_string(found), std::move(expected));
  }

  /// Indices of the groups that the file's names mean.
  std::vector<std::uint32_t> resolve_groups(const std::vector<std::string>& names,
                                            const std::vector<GroupDefinition>& definitions) {
    std::vector<std::uint32_t> found;
    groups_.define(definitions, mistakes_);
    for (const std::string& name : names) {
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
  FileIdentity identity_;           ///< of the rank read last
  const ReadFile* file_ = nullptr;  ///< the same
  ReadFile own_;                    ///< of the trace in the builder
  std::int64_t offset_ = 0;         ///< from which the peers in the builder count
  ProgramStore programs_;
  std::list<FileShape> shapes_;           ///< newest first
  std::vector<std::string> group_names_;  ///< of the file that matched last
  std::string_view decoded_;              ///< bytes of the file in the builder, until remembered
  std::int64_t decoded_rank_ = -1;
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

Result<TraceSet> with_work(TraceSet traces, const std::string& prefix) {
  const bool works = std::ranges::any_of(traces.programs, [](const Program& program) {
    return std::ranges::any_of(program.nodes,
                               [](const Node& node) { return node.type > NodeType::metadata; });
  });
  if (!works) {
    return fail(Error(
        Mistake{prefix, "nodes", {}, "one of any rank that computes, copies or communicates"}));
  }
  return traces;
}

}  // namespace orrery::chakra
