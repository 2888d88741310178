// SPDX-License-Identifier: Apache-2.0
// Renders what Sphinx marks as formulas, \(inline\) and \[displayed\], by KaTeX.
document.addEventListener('DOMContentLoaded', () => {
  for (const element of document.querySelectorAll('.math')) {
    const text = element.textContent.trim();
    const displayed = text.startsWith('\\[');
    katex.render(text.slice(2, -2), element, {displayMode: displayed, throwOnError: false});
  }
});
