# SPDX-License-Identifier: Apache-2.0
"""How Sphinx makes the site (tools/make_site.py stages its pages)."""
project = "Orrery"
copyright = "The Orrery authors, Apache-2.0"
extensions = ["myst_parser", "sphinx.ext.mathjax"]
myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 4
root_doc = "docs/README"
exclude_patterns = ["_site", "_katex", "_doctrees"]
html_theme = "furo"
html_title = "Orrery"
html_show_sourcelink = False
html_copy_source = False
html_last_updated_fmt = None
html_static_path = ["static", "../_katex"]
html_css_files = ["katex/katex.min.css"]
html_js_files = ["katex/katex.min.js"]
mathjax_path = "formulas.js"  # in place of MathJax: KaTeX renders what Sphinx marks as formulas
# Blocks of text without a language are output; names of headings that pages have alike are no mistake.
highlight_language = "text"
suppress_warnings = ["myst.header", "misc.highlighting_failure"]
