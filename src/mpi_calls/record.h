// SPDX-License-Identifier: Apache-2.0
/// A program without its MPI calls, and the calls beside it: the record format of MPIrigen.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/config_node.h"
#include "base/result.h"
#include "mpi_calls/c_tokens.h"

namespace orrery::mpi_calls {

/// A call that was removed. Lines are those of the code without calls, from 1.
struct Label {
  std::int64_t line = 0;  ///< 0: before the first
  /// 1, 2, ...: a statement of its own, removed after the line, in this order. 0: an expression or
  /// the body of a statement, removed within the line.
  std::int64_t sub = 0;
  std::string statement;  ///< "  MPI_Init(&argc, &argv);" with its indentation
};

/// Says where a label's text stood exactly, where its line and statement alone would not restore
/// it: white space, comments, several calls in a line.
struct Place {
  std::int64_t line = 0;
  std::int64_t column = 0;  ///< bytes from the beginning of the line; of a whole line: 0
  bool whole = false;       ///< between lines, not within one
  std::string text;
};

/// program     the file's name
/// code        "1 int main() {\n2   x = 1;..." : numbered lines without calls. Calls within
///             comments and preprocessor lines stay
/// mpi_labels  " (2 1,   MPI_Init(&argc, &argv);) (12 0, MPI_Wtime();)"
/// places      of all labels, in order; empty where restore() needs none
///
/// A line that has nothing but calls, their semicolons and comments is removed whole, with its
/// comments; of any other line only the call itself is, without its semicolon.
/// Source of the format: Schneider et al., MPIrigen, arXiv 2402.09126.
struct Record {
  std::string program;
  std::string code;
  std::string mpi_labels;
  std::vector<Place> places{};
};

Record strip(const std::string& name, std::string_view program);

/// Returns the program. Without places, or where their number is not that of the labels: statements
/// become lines of their own after their line; an expression goes where its line lacks one (behind
/// = ( , or return, else before the last semicolon, else to the end). strip() and restore() give
/// the same program back, byte for byte.
std::string restore(const Record& record);

/// Returns the labels of a text, which may be a model's: what is none between them is passed over.
std::vector<Label> parse_labels(std::string_view text);
std::string labels_text(const std::vector<Label>& labels);
/// The name and arguments of a label's call; an empty name where it has none.
Call call_of(const Label& label);

/// Returns the lines of a record's code without their numbers, each without its end.
std::vector<std::string> lines_of(const Record& record);

/// RecordUse is what is wanted of a record that is read: its code, or its labels as the truth or as
/// a prediction, for which there are further names, `label` and `pred`: MPIrigen's own results have
/// both in one object.
enum class RecordUse : std::uint8_t { code, truth, prediction };

/// A record from JSON. What is wanted must be there; other fields may be missing, or more.
Result<Record> read_record(const ConfigNode& node, RecordUse use);

/// Loads a JSON object, a JSON list, or a JSON object per line; a C file is stripped, as is every
/// .c file of a folder, in the order of names.
Result<std::vector<Record>> load_records(const std::string& path, RecordUse use);

}  // namespace orrery::mpi_calls
