// Charts in plain SVG: three shapes of a few dozen points each. A library would be larger than the rest of the page.

import { el, keyed, row, say, set, svg } from './dom.js';
import { count, ms, plural, rate } from './format.js';

const [WIDTH, HEIGHT] = [120, 28];

/** A line over time, the newest at the right. `draw(node, values, slots)`: `slots` is how many would fill it. */
export function line() {
  const area = svg('path', { class: 'area' });
  const stroke = svg('path', { class: 'stroke', 'vector-effect': 'non-scaling-stroke' });
  const node = svg('svg', {
    class: 'spark', viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: 'none', 'aria-hidden': 'true', focusable: 'false',
  }, area, stroke);
  node.paths = [area, stroke];
  return node;
}

export function drawLine(node, values, slots) {
  const shown = values.slice(-slots);
  const most = Math.max(1, ...shown);
  const x = (index) => WIDTH - ((shown.length - 1 - index) * WIDTH) / (slots - 1);
  const y = (value) => HEIGHT - 1.5 - (value / most) * (HEIGHT - 4);
  const points = shown.map((value, index) => `${x(index).toFixed(1)} ${y(value).toFixed(1)}`);
  const [area, stroke] = node.paths;
  const way = points.length > 1 ? `M${points.join('L')}` : '';
  set(stroke, 'd', way);
  set(area, 'd', way ? `${way}L${WIDTH} ${HEIGHT}L${x(0).toFixed(1)} ${HEIGHT}Z` : '');
}

/** Columns, one a minute. */
export function columns() {
  const path = svg('path', { class: 'bars' });
  const base = svg('path', { class: 'base', d: `M0 ${HEIGHT - 0.5}H${WIDTH}`, 'vector-effect': 'non-scaling-stroke' });
  const node = svg('svg', {
    class: 'spark', viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: 'none', 'aria-hidden': 'true', focusable: 'false',
  }, base, path);
  node.path = path;
  return node;
}

export function drawColumns(node, values, slots) {
  const shown = values.slice(-slots);
  const most = Math.max(1, ...shown);
  const width = WIDTH / slots;
  const bars = shown.map((value, index) => {
    if (value <= 0) return '';
    const height = Math.max(2, (value / most) * (HEIGHT - 3));
    const left = WIDTH - (shown.length - index) * width;
    return `M${left.toFixed(2)} ${HEIGHT}v${(-height).toFixed(2)}h${(width * 0.72).toFixed(2)}V${HEIGHT}Z`;
  });
  set(node.path, 'd', bars.join(''));
}

/**
 * A workshop's seats: confirmed, held, free, and what is beyond the capacity; below them those who wait, on the same scale, up
 * to as many as there are seats. Hatched, outlined and in places of their own, so not told apart by colour alone.
 */
export function seats() {
  const taken = el('div', { class: 'taken' });
  const waiting = el('div', { class: 'waiting' });
  const bar = el('div', { class: 'seats', role: 'img' }, taken, waiting);
  bar.parts = ['confirmed', 'held', 'over'].map((kind) => taken.appendChild(el('span', { class: kind })));
  bar.waiting = waiting;
  return bar;
}

export function drawSeats(bar, { capacity, reserved, held, waiting, overbookedBy = 0 }) {
  const all = Math.max(capacity, reserved, 1);
  const confirmed = reserved - held;
  const within = Math.min(confirmed, Math.max(0, capacity - held));
  const parts = [Math.min(within, capacity), Math.min(held, capacity), overbookedBy];
  bar.parts.forEach((part, index) => part.style.setProperty('flex-basis', `${(100 * parts[index]) / all}%`));
  bar.waiting.style.setProperty('width', `${Math.min(100, (100 * waiting) / all)}%`);
  const words = [`${plural(capacity, 'seat')}: ${count(confirmed)} confirmed`, `${count(held)} held`,
    `${count(Math.max(0, capacity - reserved))} free`];
  if (overbookedBy) words.push(`${count(overbookedBy)} beyond the capacity`);
  if (waiting) words.push(`${count(waiting)} waiting`);
  set(bar, 'aria-label', words.join(', '));
}

const SHARD = [['Shard', ''], ['Partition', 'num'], ['Asked a second', 'num'], ['Answers in', 'num'], ['Failed', 'num']];

/** Load by shard: a column each, in groups by partition, with the figures in a table for whoever wants them. */
export function shards() {
  const chart = el('div', { class: 'shards', role: 'img' });
  const body = el('tbody');
  const heads = SHARD.map(([label, kind]) => el('th', { scope: 'col', class: kind }, label));
  const table = el('details', {}, el('summary', {}, 'As a table'),
    el('div', { class: 'scroll tall', role: 'region', tabindex: '0', 'aria-label': 'Load by shard, as a table' },
      el('table', {}, el('thead', {}, el('tr', {}, ...heads)), body)));
  return { chart, body, table };
}

export function drawShards({ chart, body, table }, all) {
  const most = Math.max(1, ...all.map((shard) => shard.perS ?? 0));
  while (chart.children.length > all.length) chart.lastChild.remove();
  while (chart.children.length < all.length) chart.append(el('span', {}, el('i')));
  all.forEach((shard, index) => {
    const column = chart.children[index];
    set(column, 'data-odd', shard.partition % 2);
    set(column, 'data-state', shard.failed ? 'bad' : '');
    set(column, 'title', `shard ${shard.shard}, partition ${shard.partition}`);
    column.firstChild.style.setProperty('height', `${(100 * (shard.perS ?? 0)) / most}%`);
  });
  set(chart, 'aria-label', `Questions a second, by shard: ${plural(all.length, 'shard')}, the highest column is ${rate(most)} a second`);
  if (!table.open) return;
  keyed(body, all, ({ shard }) => shard, () => row(SHARD.map(([name, kind]) => ({ name, kind }))), ({ parts }, shard) => {
    say(parts.Shard, shard.shard);
    say(parts.Partition, shard.partition);
    say(parts['Asked a second'], rate(shard.perS));
    say(parts['Answers in'], ms(shard.answerMs));
    say(parts.Failed, count(shard.failed));
    set(parts.Failed, 'data-state', shard.failed ? 'bad' : '');
  });
}
