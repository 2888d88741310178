// SPDX-License-Identifier: Apache-2.0
// Elements without markup: text from files only ever becomes text nodes and attribute values.

const SVG = 'http://www.w3.org/2000/svg';

function filled(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value !== undefined && value !== null && value !== false) {
      element.setAttribute(name, value === true ? '' : String(value));
    }
  }
  for (const child of children.flat(3)) {
    if (child !== undefined && child !== null && child !== false) {
      element.append(child);  // a string becomes a text node
    }
  }
  return element;
}

export const h = (tag, attributes, ...children) =>
  filled(document.createElement(tag), attributes, children);
export const svg = (tag, attributes, ...children) =>
  filled(document.createElementNS(SVG, tag), attributes, children);

/** Returns the colour that the style sheet gives a variable in the scheme of the moment. */
export const colour = (name) =>
  getComputedStyle(document.documentElement).getPropertyValue(name).trim();

const kColours = 10;
/** Returns the variable of the n-th colour of a series; they repeat. */
export const seriesColour = (n) => `--c${n % kColours}`;

/** Calls `draw` at once, and again when size or colour scheme change. */
export function redrawn(element, draw) {
  let width = 0;
  const again = () => {
    if (element.clientWidth > 0) {
      draw();
    }
  };
  new ResizeObserver(() => {
    if (element.clientWidth !== width) {
      width = element.clientWidth;
      requestAnimationFrame(again);  // a drawing changes sizes, which an observer may not
    }
  }).observe(element);
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', again);
  again();
}
