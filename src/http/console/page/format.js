// Numbers, sizes and times, in words.

const whole = new Intl.NumberFormat('en', { maximumFractionDigits: 0 });
const short = new Intl.NumberFormat('en', { notation: 'compact', maximumFractionDigits: 1 });
const tenth = new Intl.NumberFormat('en', { maximumFractionDigits: 1 });
const clock = new Intl.DateTimeFormat('en', { hour: '2-digit', minute: '2-digit', second: '2-digit', hourCycle: 'h23' });
const day = new Intl.DateTimeFormat('en', { dateStyle: 'medium', timeStyle: 'short', hourCycle: 'h23' });

export const NONE = '–';
const has = (value) => value !== null && value !== undefined;

export const count = (value) => (has(value) ? whole.format(value) : NONE);
export const compact = (value) => (has(value) ? (Math.abs(value) < 100_000 ? whole : short).format(value) : NONE);
export const rate = (value) => (has(value) ? (value < 10 ? tenth : value < 100_000 ? whole : short).format(value) : NONE);
export const signed = (value) => (value > 0 ? `+${whole.format(value)}` : whole.format(value));

export function bytes(value) {
  if (!has(value)) return NONE;
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
  let unit = 0;
  while (value >= 1024 && unit < units.length - 1) {
    value /= 1024;
    unit += 1;
  }
  return `${(unit === 0 || value >= 100 ? whole : tenth).format(value)} ${units[unit]}`;
}

export function ms(value) {
  if (!has(value)) return NONE;
  if (value === 0) return '0 ms';
  if (value < 10) return `${value.toFixed(2)} ms`;
  if (value < 10_000) return `${whole.format(value)} ms`;
  return duration(value / 1000);
}

/** Seconds, in the two largest units. */
export function duration(seconds) {
  if (!has(seconds)) return NONE;
  const units = [['d', 86_400], ['h', 3_600], ['min', 60], ['s', 1]];
  let rest = Math.floor(seconds);
  const parts = [];
  for (const [unit, length] of units) {
    if (rest >= length && parts.length < 2) {
      parts.push(`${Math.floor(rest / length)} ${unit}`);
      rest %= length;
    } else if (parts.length > 0) break;
  }
  return parts.join(' ') || '0 s';
}

/** A time of today by the clock, another one by its day, too. */
export function momentOf(at) {
  if (!has(at)) return NONE;
  const isToday = new Date(at).toDateString() === new Date().toDateString();
  return (isToday ? clock : day).format(at);
}
export const timeOf = (at) => (has(at) ? clock.format(at) : NONE);
export const dayOf = (at) => (has(at) ? day.format(at) : NONE);
export const plural = (number, one, many = `${one}s`) => `${count(number)} ${number === 1 ? one : many}`;
