// SPDX-License-Identifier: Apache-2.0
/// Plans from and to the launch lines and configurations of training frameworks.
///
/// Every flag or key that a format has is one of
///   a plan field  (the tables of docs/models/interop.md)
///   ignored       changes neither time nor memory of a step as it is modelled: learning rates,
///                 checkpoints, logging, data
///   noted         changes a little that no plan states; a remark names it
///   a mistake     changes what no plan can state, with the reason; or unknown, with a guess
///
/// An export is read back by the import of its format: every field in which the two plans differ is
/// reported as lost, so that nothing is lost silently.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/config_node.h"
#include "base/result.h"
#include "workload/plan/plan.h"
#include "workload/zoo/model.h"

namespace orrery::interop {

/// Something that a reader of the result must know: what it is about, and why.
struct Remark {
  std::string about;
  std::string sentence;

  friend bool operator==(const Remark&, const Remark&) = default;
};

struct ImportOptions {
  std::int64_t devices = 0;           ///< 0 = as the launch line states
  const zoo::Model* model = nullptr;  ///< whose layers are split; needed by some pipelines only
  plan::Plan rest{};                  ///< fields that the format does not have are taken from here
};

/// LaunchWords is a launch line: the launcher's words, the program's, and what the script that
/// starts it says besides.
struct LaunchWords {
  std::vector<std::string> words;
  std::vector<std::string> places;  ///< "run.sh:12" of each word; empty = unknown
  std::vector<Remark> remarks;
  bool dumped = false;     ///< by a program, with all that it has: unknown flags are remarks
  std::int64_t tasks = 0;  ///< of the batch job (#SBATCH); 0 = not stated
  std::map<std::string, std::string> documents;  ///< files that the script writes: ds_config.json

  LaunchWords() = default;
  LaunchWords(std::vector<std::string> line)
      : words(std::move(line)) {}  // NOLINT: words are a line
};

struct Imported {
  plan::Plan plan{};
  std::vector<Remark> remarks{};
  /// Hugging Face config.json of the model that the arguments describe; Megatron-LM only.
  Result<std::string> model_config = fail("the format does not describe the model");
};

/// Imports a plan. `line`: arguments of pretrain_gpt.py, or a whole launch line (`torchrun --nnodes
/// 2 ... pretrain_gpt.py ARGS`), which also states the number of devices. Flags of
/// Megatron-DeepSpeed are read as well, with the stage of a --deepspeed_config that the script
/// writes.
/// Source: Megatron-LM, megatron/training/arguments.py (core 0.14), and of earlier releases;
/// Megatron-DeepSpeed, megatron/arguments.py.
Result<Imported> import_megatron(const LaunchWords& line, const ImportOptions& options);
/// Imports a plan. `node`: a ds_config.json. tp is `tensor_parallel.autotp_size`; pp, cp, ep,
/// recompute and the sequence are the training script's business and taken from options.rest.
/// Source: DeepSpeed, docs/_pages/config-json.md and deepspeed/runtime/zero/config.py (0.18).
Result<Imported> import_deepspeed(const ConfigNode& node, const ImportOptions& options);
/// Returns a ds_config.json as DeepSpeed itself reads it (hjson): without #, // and /* */ comments
/// and commas before a closing bracket, which become blanks.
std::string strict_json(std::string text);
/// Imports a plan. `text`: a job configuration in TOML; `file` names it in messages. With pipeline
/// stages torchtitan's default split needs options.model.
/// Source: torchtitan, torchtitan/config/job_config.py (0.2).
Result<Imported> import_torchtitan(std::string_view text, const std::string& file,
                                   const ImportOptions& options);
/// Does the same with a configuration that is read already.
Result<Imported> import_torchtitan(ConfigNode node, const ImportOptions& options);

/// Returns the command of a script that starts a training program: the first named *.py with flags
/// of a model. A text that begins with flags is one line of them. `given`: NAME=value and arguments
/// of the script; from the first that begins with `--` on flags that are added to the line.
/// Mistakes: those of shell::read_script.
Result<LaunchWords> launch_words(std::string_view text, const std::string& file,
                                 const std::vector<std::string>& given = {});

struct ExportOptions {
  const zoo::Model* model = nullptr;  ///< also writes its arguments, where the format has them
  std::int64_t devices_per_node = 0;  ///< for the launcher's part of the line; 0 = leave it out
};

struct Exported {
  std::string text{};          ///< with the losses as comments, where the format has comments
  std::vector<Remark> lost{};  ///< plan fields, each with what the framework does instead
};

/// Mistakes: degrees outside 1 .. 2^20 or more than 2^24 devices; a batch that does not divide.
Result<Exported> export_megatron(const plan::Plan& plan, const ExportOptions& options);
Result<Exported> export_deepspeed(const plan::Plan& plan, const ExportOptions& options);
Result<Exported> export_torchtitan(const plan::Plan& plan, const ExportOptions& options);
/// Writes the plan as YAML of NeMo and Megatron-Bridge: Megatron-LM's arguments under their names
/// there.
Result<Exported> export_nemo(const plan::Plan& plan, const ExportOptions& options);

/// Returns the plan that means the same with every redundant field in one form: degrees that are
/// the default by another name become 0, switches of axes with one rank become the default.
/// `model`: for its default sequence, and for layers that are split automatically; may be null.
plan::Plan canonical(plan::Plan plan, const zoo::Model* model = nullptr);

/// Returns the fields in which `read_back` differs from `plan`, both made canonical.
std::vector<Remark> differences(const plan::Plan& plan, const plan::Plan& read_back,
                                const zoo::Model* model);

}  // namespace orrery::interop
