# SPDX-License-Identifier: Apache-2.0
"""Laws of tools/check_tree.py, each on a small tree with one mistake."""
import contextlib
import importlib.util
import io
import pathlib
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))
_spec = importlib.util.spec_from_file_location("check_tree", ROOT / "tools/check_tree.py")
check_tree = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(check_tree)

LICENCE = "SPDX-License-Identifier: Apache-2.0\n"


class CheckTree(unittest.TestCase):
    def check(self, files: dict[str, str]) -> tuple[int, str]:
        with tempfile.TemporaryDirectory() as folder:
            for name, text in files.items():
                path = pathlib.Path(folder, name)
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text)
            output = io.StringIO()
            with contextlib.redirect_stdout(output):
                code = check_tree.main(pathlib.Path(folder))
            return code, output.getvalue()

    def refuses(self, files: dict[str, str], message: str):
        code, output = self.check(files)
        self.assertEqual(code, 1, output)
        self.assertIn(message, output)

    def test_the_licence_may_follow_a_hash_bang(self):
        code, output = self.check({"src/a/b.cc": "// " + LICENCE, "tools/x.sh": "#!/bin/sh\n# " + LICENCE})
        self.assertEqual((code, output), (0, ""))

    def test_a_source_without_the_licence_is_named(self):
        for name in ("tests/a/b.h", "tests/CMakeLists.txt", "setup.sh"):
            self.refuses({name: "text\n", "src/good.cc": "// " + LICENCE}, f"{name}:1: expected")

    def test_400_lines_pass_and_401_do_not(self):
        first = "// " + LICENCE
        self.assertEqual(self.check({"src/a/b.cc": first + "\n" * 399})[0], 0)
        self.refuses({"src/a/b.cc": first + "\n" * 400}, "b.cc:401: found 401 lines")

    def test_a_folder_with_headers_needs_a_readme(self):
        header = {"src/a/b.h": "// " + LICENCE}
        self.assertEqual(self.check({**header, "src/a/README.md": "a"})[0], 0)
        self.refuses(header, "expected a README.md")

    def test_a_folder_has_its_own_namespace(self):
        def source(namespace: str, content: str = "int x();") -> str:
            return f"// {LICENCE}\nnamespace {namespace} {{\n{content}\n}}  // namespace {namespace}\n"
        for name, namespace in {"base": "orrery", "graph": "orrery::graph", "workload/plan": "orrery::plan",
                                "workload/memory": "orrery::footprint"}.items():
            self.assertEqual(self.check({f"src/{name}/a.cc": source(namespace)}), (0, ""))
        self.assertEqual(self.check({"src/graph/a.cc": source("orrery::graph::passes")})[0], 0)
        self.refuses({"src/workload/plan/a.cc": source("orrery")},
                     "a.cc:3: found namespace orrery, expected orrery::plan")
        self.refuses({"src/base/a.cc": source("orrery::base")}, "expected orrery\n")
        self.refuses({"src/graph/a.cc": source("orrery::graphs")}, "expected orrery::graph\n")

    def test_types_of_another_folder_may_be_declared(self):
        other = "// " + LICENCE + "namespace orrery::plan {\nstruct Plan;\nclass Layout;\n}  // namespace\n"
        self.assertEqual(self.check({"src/graph/a.cc": other}), (0, ""))
        self.refuses({"src/graph/a.cc": other.replace("class Layout;", "int x();")}, "found namespace orrery::plan")

    def test_a_comment_begins_with_its_subject(self):
        def source(comment: str) -> dict[str, str]:
            return {"src/a/b.cc": f"// {LICENCE}{comment}int x();\n"}
        for comment in ("/// Returns x.\n", "/// The size\n/// Of x.\n", "int y;  ///< of x\n", "/// Offers x.\n"):
            self.assertEqual(self.check(source(comment)), (0, ""))
        for word in ("Of", "What", "Those", "Its", "Who", "By", "Whether", "In", "Without"):
            self.refuses(source(f"int y();\n/// {word} x.\n"), f"b.cc:3: found a comment that begins with '{word}'")
        self.assertEqual(self.check(source("/// Without a plan the answer is that of the usual one.\n")), (0, ""))

    def test_the_row_of_a_table_is_not_torn(self):
        row = "///   time   " + "w" * 87 + "\n"  # 100 columns
        def source(*rest: str) -> dict[str, str]:
            return {"src/a/b.cc": f"// {LICENCE}/// A.\n///\n{row}" + "".join(rest) + "int x();\n"}
        for rest in (["///          words\n", "///   size   s\n"], ["///\n"], ["///   size   s\n"]):
            self.assertEqual(self.check(source(*rest)), (0, ""))
        self.refuses(source("///   words\n", "///          more\n"), "b.cc:5: found the torn end of a row")
        self.refuses(source("/// " + "w" * 97 + "\n"), "b.cc:5: found 101 columns")

    def test_named_files_exist(self):
        def tree(page: str, comment: str = "///") -> dict[str, str]:
            return {"src/a/b.cc": f"// {LICENCE}{comment}\n", "docs/a.md": page}
        for page in ("`b.cc`, `a/b.cc`, `src/a`, `docs/a.md`, `../src/a/b.cc`", "`plan.yaml`, `c.d`, `configs/NAME.yaml`"):
            self.assertEqual(self.check(tree(page)), (0, ""))
        self.refuses(tree("\n`c.cc`"), "a.md:2: found `c.cc`, which is no file")
        self.refuses(tree("`src/c/d`"), "which is no file")
        added = {"src/a/b.cc": "// " + LICENCE, "docs/howto/a.md": "`src/a/added.cc`"}
        self.assertEqual(self.check(added), (0, ""))  # its folder is there
        self.refuses({**added, "docs/howto/a.md": "`src/c/added.cc`"}, "which is no file")
        self.assertEqual(self.check(tree("", "/// X is as a/b.cc says.")), (0, ""))
        self.refuses(tree("", "/// X is as c.h says."), "b.cc:2: found c.h, which is no file")

    def test_pages_say_what_is(self):
        def page(text: str, name: str = "docs/a.md") -> dict[str, str]:
            return {"src/b.cc": "// " + LICENCE, name: text}
        for text in ("Every step is known.", "`now` is a function.", "It is used to find x."):
            self.assertEqual(self.check(page(text)), (0, ""))
        for word in ("now", "Now", "no longer", "used to be", "today", "was changed"):
            self.refuses(page(f"It is {word} x."), f"a.md:1: found '{word}'")
        self.assertEqual(self.check(page("It is now x.", "src/README.md"))[0], 0)

    def test_a_name_is_defined_once(self):
        def tree(one: str, other: str) -> dict[str, str]:
            return {f"src/graph/{name}.cc": f"// {LICENCE}namespace orrery::graph {{\n{text}\n}}  // namespace orrery::graph\n"
                    for name, text in {"one": one, "other": other}.items()}
        shape = "struct Shape {\n  int rows = 0;\n};"
        for definition in (shape, "class Shape final : public Base {\n};", "enum class Shape : std::uint8_t { row };",
                           "inline int rows(int x,\n                int y) {\n  return x;\n}",
                           "template <class T>\nconstexpr T rows(T x) {\n  return x;\n}", "using Shape = int;"):
            self.refuses(tree(definition, definition), "one.cc defines too")
            unnamed = "namespace {\n" + definition + "\n}  // namespace"
            self.assertEqual(self.check(tree(definition, unnamed)), (0, ""))
        for other in ("struct Shape;", "struct Shapes {\n};", "struct Other {\n  struct Shape {};\n};",
                      "Shape shape() {\n  return {};\n}", "}  // namespace orrery::graph\nnamespace orrery::graph::a {\n" + shape):
            self.assertEqual(self.check(tree(shape, other)), (0, ""))

    def test_a_tree_without_sources_is_refused(self):
        self.assertEqual(self.check({"README.md": "text"})[0], 1)


if __name__ == "__main__":
    unittest.main()
