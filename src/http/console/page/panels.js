// The figures: one function a part of the page, each given the whole snapshot.

import { columns, drawColumns, drawLine, drawShards, line, shards } from './charts.js';
import { byId, el, facts, keyed, row, say, set } from './dom.js';
import { bytes, compact, count, dayOf, duration, ms, NONE, plural, rate, signed, timeOf } from './format.js';

const TILES = [
  ['likes', 'Likes a second', 'likesPerS'],
  ['reservations', 'Reservations a second', 'reservationsPerS'],
  ['messages', 'Room messages a second', 'messagesPerS'],
  ['calls', 'Calls a second', 'callsPerS'],
];
const SERIES_SECONDS = 120;
const HISTORY_MINUTES = 61;

export function overview({ at, now, series, instance, rollup, partitions, namespaces, viewers }) {
  keyed(byId('tiles'), TILES, ([name]) => name, ([, label]) => {
    const chart = line();
    const number = el('p', { class: 'figure' });
    const tile = el('div', { class: 'tile' }, el('h3', {}, label), number, chart);
    tile.parts = { number, chart };
    return tile;
  }, (tile, [name, , perS]) => {
    say(tile.parts.number, rate(now[perS]));
    drawLine(tile.parts.chart, series[name], SERIES_SECONDS);
  });
  const failed = namespaces.reduce((sum, one) => sum + one.failed, 0);
  const down = now.partitionsDown;
  facts(byId('facts'), [
    ['Partitions', down ? `${down} of ${partitions.length} down` : `all ${partitions.length} up`, down ? 'bad' : 'good'],
    ['Totals are', `${ms(rollup.ageMs)} old`, rollup.ageMs > 10_000 ? 'bad' : ''],
    ['Drift', rollup.drifted ? `${plural(rollup.drifted, 'counter')} wrong` : 'none', rollup.drifted ? 'bad' : 'good'],
    ['Failed calls (5xx)', `${count(failed)}, ${rate(now.failedPerS)} a second`, now.failedPerS > 0 ? 'bad' : ''],
    ['Connections', `${count(now.connections[0])} public, ${count(now.connections[1])} admin`],
    ['Sets on their way', count(now.setsOpen)],
    ['Log lines dropped', count(now.logLinesDropped), now.logLinesDropped ? 'bad' : ''],
    ['Looking at this page', count(viewers)],
  ]);
  say(byId('instance'), `${instance.version}${instance.build === 'debug' ? ' debug' : ''} · ${instance.public} · up ${duration((at - instance.since) / 1000)}`);
}

export function top({ top }) {
  const items = top?.items ?? [];
  keyed(byId('top'), items, ({ item }) => item, () => {
    const node = row([{ name: 'item', kind: 'name' }, { name: 'gained', kind: 'num' },
      { name: 'total', kind: 'num' }, { name: 'chart', kind: 'spark-col' }]);
    node.chart = columns();
    node.parts.chart.append(node.chart);
    return node;
  }, (node, { item, minutes, gained, total }) => {
    say(node.parts.item, item);
    set(node.parts.item, 'title', item);
    drawColumns(node.chart, minutes, HISTORY_MINUTES);
    say(node.parts.gained, top.window === 'all' ? NONE : signed(gained));
    say(node.parts.total, count(total));
  });
  let note = '';
  if (!top) note = 'No ranking could be read.';
  else if (items.length === 0) note = 'Nobody likes anything yet.';
  else if (top.window === 'all') note = 'Nothing gained in the last hour: these have the most likes.';
  say(byId('top-note'), note);
}

function shardFacts(all) {
  const highest = (of) => all.reduce((most, shard) => ((of(shard) ?? 0) > (most ? of(most) : 0) ? shard : most), null);
  const busiest = highest((shard) => shard.perS);
  const slowest = highest((shard) => shard.answerMs);
  const failing = all.filter((shard) => shard.failed);
  const failed = failing.reduce((sum, shard) => sum + shard.failed, 0);
  return [
    ['Busiest', busiest ? `shard ${busiest.shard}, ${rate(busiest.perS)} a second` : NONE],
    ['Slowest to answer', slowest ? `shard ${slowest.shard}, in ${ms(slowest.answerMs)}` : NONE],
    ['Failed to answer', failed ? `${plural(failed, 'time')}, ${plural(failing.length, 'shard')}` : 'none', failed ? 'bad' : ''],
  ];
}

let shardChart;

export function load({ shards: all, rollup }) {
  if (!shardChart) {
    shardChart = shards();
    byId('shards').append(shardChart.chart, shardChart.table);
    shardChart.table.addEventListener('toggle', () => drawShards(shardChart, shardChart.last));
  }
  shardChart.last = all;
  drawShards(shardChart, all);
  facts(byId('shard-facts'), shardFacts(all));
  facts(byId('rollup'), [
    ['Age of totals', ms(rollup.ageMs), rollup.ageMs > 10_000 ? 'bad' : ''],
    ['A run takes', ms(rollup.runMs)],
    ['Waited for its turn', ms(rollup.lagMs)],
    ['Items changed a second', rate(rollup.changedPerS)],
    ['Runs that failed', count(rollup.failures), rollup.failures ? 'bad' : ''],
    ['Counters checked', compact(rollup.checked)],
    ['Drifted', count(rollup.drifted), rollup.drifted ? 'bad' : 'good'],
  ]);
}

const PARTITION = [['partition', ''], ['load', 'spark-col'], ['batch', 'num'], ['p50', 'num'], ['p99', 'num'], ['mailbox', ''],
  ['wal', 'num'], ['resident', 'num'], ['overloads', 'num'], ['expired', 'num'], ['failures', 'num']];

export function partitions({ partitions: all }) {
  keyed(byId('partition-rows'), all, ({ partition }) => partition, () => {
    const node = row(PARTITION.map(([name, kind]) => ({ name, kind })));
    node.badge = el('span', { class: 'badge' });
    node.number = el('span');
    node.parts.partition.append(node.number, ' ', node.badge);
    node.chart = line();
    node.load = el('span', { class: 'beside' });
    node.parts.load.append(el('span', { class: 'with-figure' }, node.chart, node.load));
    node.meter = el('meter', { min: 0, low: 0, 'aria-label': 'Mailbox' });
    node.depth = el('span', { class: 'beside' });
    node.parts.mailbox.append(el('span', { class: 'with-figure' }, node.meter, node.depth));
    return node;
  }, (node, of) => {
    const { parts } = node;
    say(node.number, of.partition);
    say(node.badge, of.up ? 'up' : 'down');
    set(node.badge, 'data-state', of.up ? 'good' : 'bad');
    drawLine(node.chart, of.series, SERIES_SECONDS);
    say(node.load, rate(of.commandsPerS));
    say(parts.batch, rate(of.batchSize));
    say(parts.p50, ms(of.commitP50Ms));
    say(parts.p99, ms(of.commitP99Ms));
    set(node.meter, 'max', of.mailboxCapacity);
    set(node.meter, 'high', of.mailboxCapacity / 2);
    set(node.meter, 'value', of.mailbox);
    say(node.depth, `${compact(of.mailbox)} of ${compact(of.mailboxCapacity)}`);
    say(parts.wal, bytes(of.walBytes));
    say(parts.resident, compact(of.resident));
    for (const name of ['overloads', 'expired', 'failures']) {
      say(parts[name], count(of[name]));
      set(parts[name], 'data-state', of[name] ? 'bad' : '');
    }
  });
}

const NAMESPACE = ['namespace', 'perS', 'calls', 'refused', 'failed', 'stored', 'memory', 'active', 'asleep', 'messages'];

export function namespaces({ at, namespaces: all, stored }) {
  keyed(byId('namespace-rows'), all, ({ namespace }) => namespace,
    () => row(NAMESPACE.map((name, index) => ({ name, kind: index ? 'num' : 'name' }))),
    ({ parts }, of) => {
      say(parts.namespace, of.deleted ? `${of.namespace} (deleted)` : of.namespace);
      say(parts.perS, rate(of.callsPerS));
      say(parts.calls, compact(of.calls));
      say(parts.refused, compact(of.refused));
      say(parts.failed, compact(of.failed));
      set(parts.failed, 'data-state', of.failed ? 'bad' : '');
      say(parts.stored, bytes(of.storedBytes));
      say(parts.memory, compact(of.inMemory));
      say(parts.active, duration(of.activeSeconds));
      say(parts.asleep, of.namespace === 'rooms' ? duration(of.asleepSeconds) : NONE);
      say(parts.messages, of.namespace === 'rooms' ? compact(of.messages) : NONE);
    });
  say(byId('stored-note'), stored
    ? `Bytes stored as measured ${duration((at - stored.asOf) / 1000)} ago; ${bytes(stored.sharedBytes)} are nobody's (free pages, log files). Calls are since the start; a rejected reservation is a 409.`
    : 'The bytes stored are being measured.');
}

let toldBefore = -1;

export function decisions({ decisions: { told, lines }, instance }) {
  say(byId('decisions-note'), lines.length === 0
    ? 'Nothing was decided since somebody looked. Lines are kept here only while this page is open, the last 200 of them.'
    : `${plural(told, 'line')} since somebody looked, the last ${lines.length} of them here, the newest first.${instance.decisionLog ? '' : ' The log itself is switched off (log.decisions).'}`);
  if (told === toldBefore) return;
  toldBefore = told;
  const first = told - lines.length;
  const numbered = lines.map((of, index) => ({ ...of, number: first + index })).reverse();
  keyed(byId('decision-rows'), numbered, ({ number, timestamp }) => `${number} ${timestamp}`,
    () => row([{ name: 'time', kind: 'time' }, { name: 'what' }, { name: 'workshop', kind: 'name' }, { name: 'request', kind: 'mono' },
      { name: 'seats', kind: 'num' }, { name: 'reserved', kind: 'num' }]),
    (node, of) => {
      const { parts } = node;
      const word = of.change ?? of.status;
      say(parts.time, timeOf(new Date(of.timestamp)));
      say(parts.what, of.replayed ? `${word}, again` : word);
      set(parts.what, 'data-word', word);
      say(parts.workshop, of.workshop);
      say(parts.request, of.requestId);
      say(parts.seats, count(of.seats));
      say(parts.reserved, count(of.reserved));
    });
}

export function upkeep({ backup, instance }) {
  say(byId('backup-note'), backup.at
    ? `The last one was taken ${dayOf(backup.at)}: ${bytes(backup.bytes)} in ${ms(backup.tookMs)}. It went into ${instance.backupDir}.`
    : `None was taken since the start. They are written into ${instance.backupDir}, while the service runs.`);
}

export function about({ instance }) {
  facts(byId('about'), [
    ['Version', `${instance.version} (${instance.build})`],
    ['Started', dayOf(instance.since)],
    ['Public API', instance.public],
    ['Admin API', instance.admin],
    ['Data', instance.dataDir],
    ['Data id', instance.dataId],
    ['Placed on', `${plural(instance.shards, 'shard')}, ${plural(instance.partitions, 'partition')}`],
    ['Roll-up schedule', instance.rollupSchedule],
    ['Room history', instance.roomHistory],
    ['Keys', instance.keys ? 'required' : 'none: open on this machine'],
  ]);
}

/** The settings, which do not change while the process lives. */
export function settings(all) {
  const only = byId('only-changed');
  const draw = () => keyed(byId('setting-rows'), all.filter(({ isDefault }) => !only.checked || !isDefault), ({ key }) => key,
    () => row([{ name: 'key', kind: 'mono' }, { name: 'value', kind: 'mono long' }, { name: 'from' }]),
    ({ parts }, { key, value, isDefault }) => {
      say(parts.key, key);
      say(parts.value, value);
      say(parts.from, isDefault ? 'default' : 'set');
      set(parts.from, 'data-word', isDefault ? '' : 'set');
    });
  only.onchange = draw;
  draw();
}
