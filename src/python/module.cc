// SPDX-License-Identifier: Apache-2.0
/// The native half of the Python package `orrery`: questions go to the commands
/// (cli/command_line.h) and to study::plan_bounds() as plain texts, answers come back as JSON text
/// and buffers of numbers. The other half (orrery/*.py) makes objects of them. The interpreter's
/// lock is released while a question is answered.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <cstring>
#include <utility>

#include "cli/command_line.h"
#include "machine/machine.h"
#include "study/plan_bounds.h"
#include "workload/zoo/model.h"

namespace py = pybind11;

namespace orrery::python {
namespace {

/// Returns mistakes as data, of which the Python half makes an exception.
py::dict mistakes_of(const Error& error) {
  py::list mistakes;
  for (const Mistake& mistake : error.mistakes) {
    mistakes.append(py::make_tuple(mistake.where, mistake.field, mistake.found, mistake.expected));
  }
  py::dict answer;
  answer["error"] = error.to_string();
  answer["mistakes"] = std::move(mistakes);
  return answer;
}

py::dict ask(const std::string& command,
             const std::vector<std::pair<std::string, std::string>>& given) {
  Result<cli::Answer> answer = fail(Error());
  {
    const py::gil_scoped_release unlocked;
    std::vector<cli::NamedText> texts;
    for (const auto& [name, text] : given) {
      texts.push_back({name, text});
    }
    answer = cli::arguments_of(command, texts).and_then([](std::vector<std::string> arguments) {
      return cli::answer(std::move(arguments));
    });
  }
  if (!answer) {
    return mistakes_of(answer.error());
  }
  py::dict dict;
  dict["text"] = answer->text;
  dict["status"] = answer->status;
  return dict;
}

/// Does what the program `orrery` does with these arguments, the first of which is its name.
int run_program(const std::vector<std::string>& arguments) {
  std::vector<const char*> words;
  for (const std::string& argument : arguments) {
    words.push_back(argument.c_str());
  }
  const py::gil_scoped_release unlocked;
  return cli::run_command_line(static_cast<int>(words.size()), words.data());
}

py::list options(const std::string& command) {
  py::list rows;
  for (const cli::DeclaredOption& option : cli::declared_options(command)) {
    py::dict row;
    row["name"] = option.name;
    row["kind"] = option.kind;
    row["sentence"] = option.sentence;
    row["group"] = option.group;
    row["positional"] = option.positional;
    row["flag"] = option.flag;
    row["repeated"] = option.repeated;
    row["output"] = option.output;
    rows.append(std::move(row));
  }
  return rows;
}

/// Returns the bytes of a list of numbers, as numpy.frombuffer and array.array take them.
template <class Number>
py::bytes bytes_of(const std::vector<Number>& numbers) {
  return {reinterpret_cast<const char*>(numbers.data()), numbers.size() * sizeof(Number)};
}

/// A column: name, texts, and the number of each row's text as a buffer of 32-bit integers.
using Column = std::tuple<std::string, std::vector<std::string>, py::bytes>;

py::dict bounds(const std::string& model, const std::string& machine, const std::string& plan,
                std::int64_t devices, const std::vector<Column>& columns) {
  std::vector<study::FieldColumn> own;
  for (const auto& [field, values, rows] : columns) {
    const std::string_view bytes = rows;
    std::vector<std::uint32_t> numbers(bytes.size() / sizeof(std::uint32_t));
    std::memcpy(numbers.data(), bytes.data(), numbers.size() * sizeof(std::uint32_t));
    own.push_back({field, values, std::move(numbers)});
  }
  Result<study::PlanBounds> answer = fail(Error());
  {
    const py::gil_scoped_release unlocked;
    const auto read_model = zoo::load_model(model);
    const auto read_machine = machine::load_machine(machine);
    const auto read_plan =
        plan.empty() ? Result<plan::PlacedPlan>(plan::PlacedPlan()) : plan::load_placed_plan(plan);
    Error mistakes;
    const auto take = [&](const auto& read) {
      if (!read) {
        mistakes.add(read.error());
      }
    };
    take(read_model);
    take(read_machine);
    take(read_plan);
    answer = mistakes.empty()
                 ? study::plan_bounds(*read_model, *read_machine, *read_plan, devices, own)
                 : fail(std::move(mistakes));
  }
  if (!answer) {
    return mistakes_of(answer.error());
  }
  py::dict dict;
  dict["least_time_s"] = bytes_of(answer->least_time_s);
  dict["least_memory_bytes"] = bytes_of(answer->least_memory_bytes);
  dict["mistake"] = bytes_of(answer->mistake);
  dict["mistakes"] = answer->mistakes;
  return dict;
}

/// Forward operators of a layer as the zoo has them: (name, kind, FLOPs, bytes).
py::list layer_operators(const std::string& name, std::int64_t microbatch, std::int64_t sequence,
                         bool flash) {
  const auto model = zoo::load_model(name);
  if (!model) {
    throw py::value_error(model.error().to_string());
  }
  zoo::ShapeOptions shapes{.microbatch = microbatch, .sequence = sequence};
  shapes.attention = flash ? zoo::AttentionKernel::flash : zoo::AttentionKernel::unfused;
  py::list operators;
  for (const zoo::ModelOperator& op : zoo::layer_operators(*model, shapes)) {
    operators.append(py::make_tuple(op.name, std::string(name_of(op.kind)),
                                    op.forward_flops.value(), op.forward_bytes.value()));
  }
  return operators;
}

}  // namespace

PYBIND11_MODULE(_core, module) {
  module.doc() = "Native half of the package orrery; see help(orrery).";
  module.attr("version") = ORRERY_VERSION;
  module.def("ask", &ask, "What a command prints: {text, status} or {error, mistakes}");
  module.def("main", &run_program, "Runs the program orrery: arguments in, exit status out");
  module.def("options", &options, "Options of a command, as its help text has them");
  module.def("bounds", &bounds, "Bounds of plans by row, as buffers of numbers");
  module.def("layer_operators", &layer_operators,
             "Forward operators of a layer: (name, kind, flops, bytes)");
}

}  // namespace orrery::python
