// SPDX-License-Identifier: Apache-2.0
/// The flags of `orrery serve` that say which engines serve.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/command.h"
#include "cli/served_model.h"
#include "serving/stated_fields.h"

namespace orrery::cli {

/// --engine, a flag of every field of its file, also by the names of vLLM, SGLang and TensorRT-LLM,
/// and --devices.
class EngineFlags {
 public:
  void declare(Options& options);
  /// Reads the model and its engine. `of_files`: mistakes of reading model and engine.
  ServedModel read(const std::optional<std::string>& model, Error& mistakes, Error& of_files) const;
  /// Places the engine on --devices: all tensor parallel unless the engine says otherwise.
  void place(serving::Engine& engine, Error& mistakes) const;
  /// Refuses flags of several engines: they contradict `reason`.
  void refuse_fleet(const std::string& reason, Error& mistakes) const;

  bool fuses() const { return fuse_; }
  const std::optional<std::string>& devices() const { return devices_; }

 private:
  struct FieldFlag {
    std::string section;
    std::string field;
    std::optional<std::string> text;
    bool negated = false;  ///< by a switch of another engine
  };
  void declare_fields(Options& options);
  std::vector<serving::StatedField> stated(Error& mistakes) const;
  void add_format(std::vector<serving::StatedField>& fields, Error& mistakes) const;

  std::optional<std::string> engine_;
  std::optional<std::string> devices_;
  std::optional<std::string> kernels_;
  std::optional<std::string> replicas_;
  std::optional<std::string> prefill_;
  std::optional<std::string> router_;
  std::optional<std::string> overlap_tensor_;
  std::optional<std::string> quantization_;
  std::vector<FieldFlag> fields_;
  bool fuse_ = false;
  bool ideal_host_ = false;
  bool eager_ = false;
  bool all_experts_ = false;
};

}  // namespace orrery::cli
