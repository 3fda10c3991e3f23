// How amounts are written: as the policy file counts them, in powers of 1000,
// with three digits, which is what fits a glance.

function scaled(n, units, space, exact = false) {
  let i = 0;
  while (n >= 999.5 && i < units.length - 1) {
    n /= 1000;
    i++;
  }
  const digits = i === 0 || n >= 99.95 ? 0 : n >= 9.995 ? 1 : 2;
  const text = n.toFixed(digits);
  return `${exact ? text : Number(text)}${space}${units[i]}`;
}

const bits = ['bit/s', 'kbit/s', 'Mbit/s', 'Gbit/s', 'Tbit/s'];

export const rate = (n) => scaled(n, bits, '\u00a0');
// measured keeps zeros at the end: an amount that changes each second must not change its width.
export const measured = (n) => scaled(n, bits, '\u00a0', true);
export const bytes = (n) => scaled(n, ['B', 'kB', 'MB', 'GB', 'TB', 'PB'], '\u00a0', true);
export const count = (n) => (n < 100000 ? n.toLocaleString('en') : scaled(n, ['', 'k', 'M', 'G', 'T'], ''));
export const percent = (part) => `${Math.round(part * 100)}\u00a0%`;

// short is a rate for an axis.
export const short = (n) => scaled(n, ['', 'k', 'M', 'G', 'T'], '');

// span is a time in its two largest units.
export function span(seconds) {
  const units = [['d', 86400], ['h', 3600], ['min', 60], ['s', 1]];
  let left = Math.max(0, Math.round(seconds));
  const words = [];
  for (const [name, size] of units) {
    const n = Math.floor(left / size);
    left -= n * size;
    if (n > 0 || (words.length === 0 && name === 's')) words.push(`${n}\u00a0${name}`);
    else if (words.length > 0) break;
    if (words.length === 2) break;
  }
  return words.join(' ');
}

// clock is when something happens, by the clock of the policy's schedules,
// which the time is written in.
export function clock(iso) {
  const [, day, time] = /^(\d{4}-\d\d-\d\d)T(\d\d:\d\d)/.exec(iso) ?? [, '', iso];
  return { day, time };
}
