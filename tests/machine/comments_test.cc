// SPDX-License-Identifier: Apache-2.0
#include "machine/comments.h"

#include <gtest/gtest.h>

#include "base/file.h"
#include "machine/machine.h"

namespace orrery::machine {
namespace {

TEST(Comments, StandWhereTheyStood) {
  const std::string source =
      "# of a machine\n"
      "name: m\n"
      "# of the device\n"
      "device:\n"
      "  name: \"d # 1\"  # its name\n"
      "  peak: {bf16: 1 TFLOP/s, fp8: 2 TFLOP/s}  # data sheet\n"
      "  # gone\n"
      "  gone: 1  # too\n"
      "# last\n";
  const std::string written =
      "name: m\ndevice:\n  name: \"d # 1\"\n  peak:\n    bf16: 1 TFLOP/s\n    fp8: 3 TFLOP/s\n";
  EXPECT_EQ(with_comments(written, source),
            "# of a machine\n"
            "name: m\n"
            "# of the device\n"
            "device:\n"
            "  name: \"d # 1\"  # its name\n"
            "  peak:\n"
            "    bf16: 1 TFLOP/s  # data sheet\n"
            "    fp8: 3 TFLOP/s\n"
            "  # gone\n"
            "  # too\n"
            "# last\n");
}

TEST(Comments, OfEveryShippedMachineLeaveItAsItIs) {
  for (const std::string& name : list_configs("machines")) {
    const std::string file = find_config("machines", name).value();
    const Machine machine = load_machine(file).value();
    const std::string text = with_comments(to_yaml(machine), read_file(file).value());
    const auto again = parse_config(text, name, ConfigSyntax::yaml).and_then(parse_machine);
    ASSERT_TRUE(again) << again.error().to_string();
    EXPECT_EQ(*again, machine) << name;
  }
}

}  // namespace
}  // namespace orrery::machine
