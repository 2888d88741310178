// SPDX-License-Identifier: Apache-2.0
// Numbers as people read them; the exact one is in the cell's title.

const number = (value, digits) =>
  value.toLocaleString('en-US', {maximumSignificantDigits: digits, useGrouping: true});

function scaled(value, steps, digits = 4) {
  const size = Math.abs(value);
  const step = steps.find(([least]) => size >= least) ?? steps[steps.length - 1];
  return `${number(value / step[0], digits)} ${step[1]}`;
}

const kTimes = [[86400, 'd'], [3600, 'h'], [60, 'min'], [1, 's'], [1e-3, 'ms'], [1e-6, 'µs'], [1e-9, 'ns'],
                [1e-12, 'ps']];
const kSteps = kTimes.slice(3);
const kBytes = [[2 ** 40, 'TiB'], [2 ** 30, 'GiB'], [2 ** 20, 'MiB'], [2 ** 10, 'KiB'], [1, 'B']];
const kDecimal = [[1e15, 'P'], [1e12, 'T'], [1e9, 'G'], [1e6, 'M'], [1e3, 'k'], [1, '']];

export const time = (seconds) => seconds === 0 ? '0 s' : scaled(seconds, Math.abs(seconds) < 7200 ? kSteps : kTimes);
export const bytes = (count) => count === 0 ? '0 B' : scaled(count, kBytes);
export const rate = (value, unit) => value === 0 ? `0 ${unit}` : scaled(value, kDecimal) + unit;
export const percent = (share) => `${number(100 * share || 0, 3)} %`;
export const count = (value) => Number.isInteger(value) ? value.toLocaleString('en-US') : number(value, 5);

const kShares = /(^|[._])(mfu|hfu|share|goodput|expected_goodput|simulated_goodput|interval80|kv_use|error|mape|bias|median_error|change|gap|of_full_clock|of_kernel_tables|utilisation)$/;

/** Returns the text of a value by what its key, with those around it, says of its unit. */
export function valueText(key, value) {
  if (value === null || value === undefined || value === '') {
    return '-';
  }
  if (typeof value === 'boolean') {
    return value ? 'yes' : 'no';
  }
  if (typeof value !== 'number') {
    return String(value);
  }
  if (/_kv_use$|kv_use$/.test(key) || kShares.test(key)) {
    return percent(value);
  }
  if (/(^|[._])(wall_s|[a-z0-9_]*_s)([._]|$)/.test(key) && !/_per_s/.test(key)) {
    return time(value);
  }
  if (/bytes|capacity$/.test(key) && !/per_s/.test(key)) {
    return bytes(value);
  }
  if (/flops/.test(key)) {
    return rate(value, 'FLOP/s');
  }
  if (/bandwidth/.test(key)) {
    return rate(value, 'B/s');
  }
  return count(value);
}

/** Returns a key as words: "tokens_per_s" is "tokens per s". */
export const label = (key) => key.replace(/(?<!_per)_(s|j|w)$/, '').replaceAll('_', ' ');
