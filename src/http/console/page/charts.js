// Charts in plain SVG: three shapes of a few dozen points each. A library would be larger than the rest of the page.

import { el, say, set, svg } from './dom.js';
import { count, plural, rate } from './format.js';

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

/** A workshop's seats: confirmed, held, free, and what is beyond the capacity. Hatched and outlined, so not by colour alone. */
export function seats() {
  const bar = el('div', { class: 'seats', role: 'img' });
  bar.parts = ['confirmed', 'held', 'over'].map((kind) => bar.appendChild(el('span', { class: kind })));
  return bar;
}

export function drawSeats(bar, { capacity, reserved, held, waiting, overbookedBy = 0 }) {
  const all = Math.max(capacity, reserved, 1);
  const confirmed = reserved - held;
  const within = Math.min(confirmed, Math.max(0, capacity - held));
  const parts = [Math.min(within, capacity), Math.min(held, capacity), overbookedBy];
  bar.parts.forEach((part, index) => part.style.setProperty('flex-basis', `${(100 * parts[index]) / all}%`));
  const words = [`${plural(capacity, 'seat')}: ${count(confirmed)} confirmed`, `${count(held)} held`,
    `${count(Math.max(0, capacity - reserved))} free`];
  if (overbookedBy) words.push(`${count(overbookedBy)} beyond the capacity`);
  if (waiting) words.push(`${count(waiting)} waiting`);
  set(bar, 'aria-label', words.join(', '));
}

/** Load by shard: a column each, in groups by partition, with the figures in a table for whoever wants them. */
export function shards() {
  const chart = el('div', { class: 'shards', role: 'img' });
  const body = el('tbody');
  const table = el('details', {}, el('summary', {}, 'As a table'),
    el('div', { class: 'scroll tall', role: 'region', tabindex: '0', 'aria-label': 'Load by shard, as a table' },
      el('table', {}, el('thead', {}, el('tr', {},
        el('th', { scope: 'col' }, 'Shard'), el('th', { scope: 'col', class: 'num' }, 'Partition'),
        el('th', { scope: 'col', class: 'num' }, 'Asked a second'))), body)));
  return { chart, body, table };
}

export function drawShards({ chart, body, table }, all) {
  const most = Math.max(1, ...all.map((shard) => shard.perS ?? 0));
  while (chart.children.length > all.length) chart.lastChild.remove();
  while (chart.children.length < all.length) chart.append(el('span', {}, el('i')));
  let busiest = all[0];
  all.forEach((shard, index) => {
    if ((shard.perS ?? 0) > (busiest.perS ?? 0)) busiest = shard;
    const column = chart.children[index];
    set(column, 'data-odd', shard.partition % 2);
    column.firstChild.style.setProperty('height', `${(100 * (shard.perS ?? 0)) / most}%`);
  });
  set(chart, 'aria-label', all.length === 0 ? 'No shards'
    : `${plural(all.length, 'shard')}; the busiest is shard ${busiest.shard} with ${rate(busiest.perS)} a second`);
  if (!table.open) return;
  while (body.children.length > all.length) body.lastChild.remove();
  while (body.children.length < all.length) {
    body.append(el('tr', {}, el('th', { scope: 'row' }), el('td', { class: 'num' }), el('td', { class: 'num' })));
  }
  all.forEach((shard, index) => {
    const cells = body.children[index].children;
    say(cells[0], shard.shard);
    say(cells[1], shard.partition);
    say(cells[2], rate(shard.perS));
  });
}
