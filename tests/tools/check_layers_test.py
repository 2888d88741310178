# SPDX-License-Identifier: Apache-2.0
"""Laws of tools/check_layers.py, each on a small tree with one mistake."""
import contextlib
import importlib.util
import io
import pathlib
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
_spec = importlib.util.spec_from_file_location("check_layers", ROOT / "tools/check_layers.py")
check_layers = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(check_layers)

TABLE = """
| layer | folder | what |
|---|---|---|
| 1 | `src/base/` | units |
| 2 | `src/graph/` | operators |
| 2 | `src/engine/` | events |
| 3 | `src/machine/compute/` | roofline |
| 4 | `src/machine/` (files at its root) | machine |
| 5 | `src/cli/`, `src/python/` | doors |
"""


class CheckLayers(unittest.TestCase):
    def check(self, files: dict[str, str], table: str = TABLE) -> tuple[int, str]:
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            for name, text in {"docs/architecture.md": table, **files}.items():
                (root / name).parent.mkdir(parents=True, exist_ok=True)
                (root / name).write_text(text)
            output = io.StringIO()
            with contextlib.redirect_stdout(output):
                code = check_layers.main(root)
            return code, output.getvalue()

    def refuses(self, files: dict[str, str], message: str, table: str = TABLE):
        code, output = self.check(files, table)
        self.assertEqual(code, 1, output)
        self.assertIn(message, output)

    def test_an_include_of_a_lower_layer_or_of_the_own_folder_passes(self):
        code, output = self.check({
            "src/base/units.h": "#include <vector>\n",
            "src/graph/operator.h": '#include "base/units.h"\n',
            "src/graph/workload.h": '#include "graph/operator.h"\n',
            "src/machine/machine.h": '#include "machine/compute/device.h"\n',
        })
        self.assertEqual((code, output), (0, ""))

    def test_an_include_of_a_higher_layer_is_refused_with_its_line(self):
        self.refuses({"src/base/units.h": '\n#include "graph/operator.h"\n'},
                     'src/base/units.h:2: base must not include "graph/operator.h"')

    def test_siblings_of_one_layer_do_not_include_each_other(self):
        self.refuses({"src/graph/a.cc": '#include "engine/clock.h"\n'}, "graph must not include")
        self.refuses({"src/cli/a.cc": '#  include "python/door.h"\n'}, "cli must not include")

    def test_a_part_of_a_folder_does_not_include_the_whole(self):
        self.refuses({"src/machine/compute/a.cc": '#include "machine/machine.h"\n'},
                     "machine/compute must not include")

    def test_a_file_outside_the_table_is_refused(self):
        self.refuses({"src/utils/a.cc": ""}, "belongs to no row")
        self.refuses({"src/machine/magic/a.cc": ""}, "belongs to no row")

    def test_an_include_outside_the_table_is_refused(self):
        self.refuses({"src/base/a.cc": '#include "units.h"\n'}, '"units.h" belongs to no row')

    def test_a_link_to_a_higher_or_unknown_target_is_refused(self):
        source = {"src/base/a.cc": ""}
        self.refuses({**source, "src/CMakeLists.txt": "orrery_module(base DEPENDS graph EXTERNAL x)"},
                     "base must not link graph")
        self.refuses({**source, "src/CMakeLists.txt": "orrery_module(graph DEPENDS base magic)"},
                     "graph must not link magic")

        self.refuses({**source, "src/CMakeLists.txt": "orrery_module(base COLD DEPENDS graph)"},
                     "base must not link graph")

    def test_a_header_of_values_includes_values_only(self):
        page = TABLE + "\nHeaders of values: `graph/{operator,\ntensor}.h`, `machine/{machine}.h`.\n\n`graph/{loop}.h`\n"
        files = {
            "src/base/units.h": "",
            "src/graph/operator.h": '#include "base/units.h"\n',
            "src/graph/tensor.h": '#include "graph/operator.h"\n',
            "src/graph/loop.h": "",
            "src/machine/machine.h": '#include "graph/tensor.h"\n',
        }
        self.assertEqual(self.check(files, page), (0, ""))
        self.refuses({**files, "src/machine/machine.h": '\n#include "graph/loop.h"\n'},
                     'src/machine/machine.h:2: a header of values must not include "graph/loop.h"', page)
        del files["src/graph/tensor.h"]
        self.refuses({**files, "src/machine/machine.h": ""}, "src/graph/tensor.h: listed", page)

    def test_a_missing_table_is_refused(self):
        code, _ = self.check({"src/base/a.cc": ""}, table="no table")
        self.assertEqual(code, 1)

    def test_the_repositorys_table_names_no_folder_that_is_not_there(self):
        layers = check_layers.read_layers((ROOT / "docs/architecture.md").read_text())
        self.assertEqual([m for m in layers if not (ROOT / "src" / m).is_dir()], [])

    def test_the_repository_has_every_module_of_the_build_in_its_table(self):
        layers = check_layers.read_layers((ROOT / "docs/architecture.md").read_text())
        self.assertEqual(layers["base"], 1)
        self.assertGreater(layers["machine"], layers["machine/network"])
        self.assertEqual(max(layers.values()), layers["python"])


if __name__ == "__main__":
    unittest.main()
