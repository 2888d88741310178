# SPDX-License-Identifier: Apache-2.0
"""Laws of tools/check_spdx.py."""
import contextlib
import importlib.util
import io
import pathlib
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
_spec = importlib.util.spec_from_file_location("check_spdx", ROOT / "tools/check_spdx.py")
check_spdx = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(check_spdx)

LICENCE = "SPDX-License-Identifier: Apache-2.0\n"


class CheckSpdx(unittest.TestCase):
    def check(self, files: dict[str, str]) -> tuple[int, str]:
        with tempfile.TemporaryDirectory() as folder:
            for name, text in files.items():
                path = pathlib.Path(folder, name)
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text)
            output = io.StringIO()
            with contextlib.redirect_stdout(output):
                code = check_spdx.main(pathlib.Path(folder))
            return code, output.getvalue()

    def test_the_licence_may_follow_a_hash_bang(self):
        code, output = self.check({"src/a/b.cc": "// " + LICENCE, "tools/x.sh": "#!/bin/sh\n# " + LICENCE})
        self.assertEqual((code, output), (0, ""))

    def test_a_file_without_the_licence_is_named(self):
        for name in ("src/a/b.h", "tests/CMakeLists.txt", "setup.sh"):
            code, output = self.check({name: "text\n", "src/good.cc": "// " + LICENCE})
            self.assertEqual(code, 1)
            self.assertIn(f"{name}:1: expected", output)

    def test_a_tree_without_sources_is_refused(self):
        self.assertEqual(self.check({"README.md": "text"})[0], 1)


if __name__ == "__main__":
    unittest.main()
