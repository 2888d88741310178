// SPDX-License-Identifier: Apache-2.0
#include "mpi_calls/outline.h"

#include <algorithm>
#include <array>

namespace orrery::mpi_calls {
namespace {

constexpr std::array<std::string_view, 20> kRankNames{
    "rank",   "myrank", "my_rank", "myid",     "my_id",      "me",          "id",
    "pid",    "procid", "proc_id", "taskid",   "task_id",    "rank_id",     "mpirank",
    "mpi_id", "myproc", "my_proc", "mpi_rank", "world_rank", "process_rank"};
constexpr std::array<std::string_view, 22> kSizeNames{
    "size",      "nprocs",        "numprocs", "num_procs", "np",        "p",
    "nproc",     "world_size",    "nranks",   "ranks",     "comm_size", "commsize",
    "comm_sz",   "ntasks",        "numtasks", "nodes",     "procs",     "mpi_size",
    "num_ranks", "process_count", "nb_proc",  "csize"};

/// Words that begin a declaration.
constexpr std::array<std::string_view, 20> kTypes{
    "int",    "double", "float",  "char",    "long",     "short",   "unsigned",
    "signed", "size_t", "bool",   "int64_t", "uint64_t", "int32_t", "uint32_t",
    "struct", "const",  "static", "FILE",    "time_t",   "void"};

bool begins_declaration(const Token& token) {
  return token.kind == Token::Kind::identifier &&
         (std::ranges::find(kTypes, token.text) != kTypes.end() ||
          (token.text.starts_with("MPI_") && token.text.size() > 5 &&
           token.text[5] >= 'a'));  // MPI_Status, not MPI_COMM_WORLD
}

}  // namespace

bool is_rank_name(std::string_view name) {
  return std::ranges::find(kRankNames, name) != kRankNames.end();
}

bool is_size_name(std::string_view name) {
  return std::ranges::find(kSizeNames, name) != kSizeNames.end();
}

Outline::Outline(const Record& record) : lines_(lines_of(record)) {
  for (const std::string& line : lines_) {
    code_ += line + "\n";
  }
  tokens_ = tokens_of(code_);
  declare();
  find_main();
}

/// Takes the declaration that begins at token i: its names. Returns the token behind it, or i + 1.
std::size_t Outline::declare_from(std::size_t i) {
  std::string type;
  std::size_t at = i;
  while (at < tokens_.size() && tokens_[at].kind == Token::Kind::identifier &&
         (begins_declaration(tokens_[at]) || type == "struct")) {
    const bool plain = tokens_[at].is("const") || tokens_[at].is("static");
    type = plain ? type : std::string(tokens_[at].text);
    ++at;
  }
  while (at < tokens_.size()) {
    std::string role = type;
    for (; at < tokens_.size() && tokens_[at].is("*"); ++at) {
      role = type + "*";
    }
    if (at >= tokens_.size() || tokens_[at].kind != Token::Kind::identifier) {
      return std::max(at, i + 1);
    }
    const std::string name(tokens_[at].text);
    ++at;
    if (at < tokens_.size() && tokens_[at].is("(")) {
      return at;  // a function
    }
    if (at < tokens_.size() && tokens_[at].is("[")) {
      role = type;
      role += "*";
    }
    if (types_.emplace(name, role).second) {
      variables_.push_back(name);
    }
    while (at < tokens_.size() && !tokens_[at].is(",") && !tokens_[at].is(";") &&
           !tokens_[at].is(")")) {  // an initialiser, extents
      at = tokens_[at].is("(") || tokens_[at].is("{") || tokens_[at].is("[")
               ? closing(tokens_, at) + 1
               : at + 1;
    }
    if (at >= tokens_.size() || !tokens_[at].is(",")) {
      return at;
    }
    ++at;
    if (at < tokens_.size() && begins_declaration(tokens_[at])) {
      return at;  // the next parameter
    }
  }
  return at;
}

void Outline::declare() {
  for (std::size_t i = 0; i < tokens_.size();) {
    const bool starts = i == 0 || tokens_[i - 1].is(";") || tokens_[i - 1].is("{") ||
                        tokens_[i - 1].is("}") || tokens_[i - 1].is("(") || tokens_[i - 1].is(",");
    i = starts && begins_declaration(tokens_[i]) ? declare_from(i) : i + 1;
  }
}

void Outline::find_main() {
  for (std::size_t i = 0; i + 1 < tokens_.size(); ++i) {
    if (!tokens_[i].is("main") || !tokens_[i + 1].is("(")) {
      continue;
    }
    MainOutline main;
    main.open = closing(tokens_, i + 1) + 1;
    if (main.open >= tokens_.size() || !tokens_[main.open].is("{")) {
      continue;
    }
    main.arguments = main.open > i + 5;  // more than (void)
    main.close = std::min(closing(tokens_, main.open), tokens_.size() - 1);
    main.declared = static_cast<std::int64_t>(tokens_[main.open].line) + 1;
    std::size_t at = main.open + 1;
    while (at < main.close && begins_declaration(tokens_[at])) {
      while (at < main.close && !tokens_[at].is(";")) {
        at = tokens_[at].is("{") || tokens_[at].is("(") ? closing(tokens_, at) + 1 : at + 1;
      }
      main.declared = static_cast<std::int64_t>(tokens_[std::min(at, main.close)].line) + 1;
      ++at;
    }
    main.finish = static_cast<std::int64_t>(tokens_[main.close].line);
    for (std::size_t k = main.open; k < main.close; ++k) {
      if (tokens_[k].is("return") && closing(tokens_, main.open) == main.close) {
        main.finish = static_cast<std::int64_t>(tokens_[k].line);
      }
    }
    main_ = main;
    return;
  }
}

std::string Outline::role_of(std::string_view identifier) const {
  const auto type = types_.find(identifier);
  if (type == types_.end()) {
    return {};
  }
  if (type->second == "int" && is_rank_name(identifier)) {
    return "rank";
  }
  return type->second == "int" && is_size_name(identifier) ? "size" : type->second;
}

std::size_t Outline::first_token_of(std::int64_t line) const {
  const auto at =
      std::ranges::lower_bound(tokens_, static_cast<std::size_t>(line - 1), {}, &Token::line);
  return static_cast<std::size_t>(at - tokens_.begin());
}

}  // namespace orrery::mpi_calls
