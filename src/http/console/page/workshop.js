// One workshop: its attempts and events, and what an operator may do to it.

import { ask, askWithVersion, path } from './api.js';
import { drawSeats, seats } from './charts.js';
import { confirm, field } from './dialogs.js';
import { byId, el, facts, keyed, row, say, set } from './dom.js';
import { count, dayOf, duration, momentOf, NONE } from './format.js';

const STATES = ['accepted', 'rejected', 'held', 'confirmed', 'waiting', 'offered', 'expired', 'cancelled'];
/** What can still be given up. */
const LIVE = new Set(['accepted', 'held', 'confirmed', 'waiting', 'offered']);
const PAGE = 50;
const ATTEMPT = [['request', 'Request', 'mono id'], ['state', 'State'], ['seats', 'Seats', 'num'], ['holder', 'Holder', 'holder'],
  ['decided', 'Decided', 'time'], ['until', 'Until', 'time'], ['actions', 'Actions', 'actions']].map(([name, label, kind]) => ({ name, label, kind }));

/** What is open, if anything is. */
let open = null;

export function changeCapacity(name) {
  const capacity = field('capacity', 'Capacity', { type: 'number', min: 0, step: 1, required: true, inputmode: 'numeric' });
  const force = field('force', 'Lower it all the same; nobody is thrown out', { type: 'checkbox' });
  force.box.hidden = true;
  let version;
  let before;
  const read = askWithVersion(path('workshops', name)).then(({ json, version: tag }) => {
    [before, version] = [json, tag];
    if (!capacity.input.value) capacity.input.value = json.capacity;
    capacity.input.select();
  });
  read.catch(() => {});
  confirm({
    title: `Capacity of ${name}`,
    text: 'More seats go first to those who wait. Everything else about the workshop stays as it is.',
    fields: [capacity, force],
    verb: 'Change the capacity',
    act: async () => {
      await read;
      // PUT sets a workshop whole: what is left out is not set any more.
      const { maxSeatsPerRequest, maxSeatsPerHolder, holdTtlMs, waitlist, opensAt, closesAt } = before;
      const wanted = Number(capacity.input.value);
      const body = { capacity: wanted, maxSeatsPerRequest, maxSeatsPerHolder, holdTtlMs, waitlist, opensAt, closesAt };
      if (force.input.checked) body.force = true;
      await ask(path('workshops', name), { method: 'PUT', body, more: { 'if-match': version } });
      refreshWorkshop();
      return `${name} has ${count(wanted)} seats.`;
    },
    onerror: ({ word }) => { if (word === 'capacity_in_use') force.box.hidden = false; },
  });
}

export function removeWorkshop(name) {
  confirm({
    title: `Delete ${name}`,
    text: 'The workshop goes with every reservation in it, for good. From then on it answers 410, until it is created again.',
    verb: 'Delete the workshop',
    typed: name,
    danger: true,
    act: async () => {
      await ask(path('workshops', name), { method: 'DELETE' });
      if (open?.name === name) byId('drawer').close();
      return `${name} is deleted.`;
    },
  });
}

function cancel(name, { requestId, seats: taken, state }) {
  confirm({
    title: `Cancel ${requestId}`,
    text: `${state === 'waiting' ? 'Its place on the waiting list is' : `Its ${taken === 1 ? 'seat is' : `${taken} seats are`}`} given up in ${name}. Seats that get free go first to those who wait.`,
    verb: 'Cancel the reservation',
    danger: true,
    act: async () => {
      await ask(path('workshops', name, 'reservations', requestId, 'cancel'), { method: 'POST' });
      refreshWorkshop();
      return `${requestId} is cancelled.`;
    },
  });
}

export function openWorkshop(name) {
  const [drawer, body] = [byId('drawer'), byId('drawer-body')];
  const bar = seats();
  const list = el('dl', { class: 'facts' });
  const error = el('p', { class: 'error', role: 'alert' });
  const filter = el('select', { id: 'state-filter', onchange: () => { open.cursors = []; refreshWorkshop(); } },
    el('option', { value: '' }, 'any state'), ...STATES.map((state) => el('option', { value: state }, state)));
  const [attempts, events, history] = [el('tbody', { role: 'rowgroup' }), el('tbody'), el('div', { class: 'history', tabindex: '-1' })];
  const next = el('button', { type: 'button', hidden: true }, 'Next page');
  const first = el('button', { type: 'button', hidden: true, onclick: () => { open.cursors = []; refreshWorkshop(); } }, 'First page');
  const table = (id, heads, rows) => el('div', { class: 'scroll', role: 'region', tabindex: '0', 'aria-labelledby': id },
    el('table', {}, el('thead', {}, el('tr', {}, ...heads.map(([text, kind]) => el('th', { scope: 'col', class: kind }, text)))), rows));
  open = { name, bar, list, error, filter, attempts, events, history, next, first, cursors: [], busy: false };
  say(byId('drawer-h'), name);
  body.replaceChildren(
    error, bar, list,
    el('p', { class: 'buttons' },
      el('button', { type: 'button', onclick: () => changeCapacity(name) }, 'Change the capacity…'), ' ',
      el('button', { type: 'button', onclick: () => removeWorkshop(name) }, 'Delete…')),
    el('div', { class: 'head' }, el('h3', { id: 'attempts-h' }, 'Attempts'), el('label', {}, 'In ', filter)),
    el('table', { class: 'cards', role: 'table', 'aria-labelledby': 'attempts-h' },
      el('thead', { role: 'rowgroup' }, el('tr', { role: 'row' },
        ...ATTEMPT.map(({ label, kind }) => el('th', { scope: 'col', role: 'columnheader', class: kind === 'num' ? kind : undefined }, label)))),
      attempts),
    el('p', { class: 'pager' }, first, next),
    history,
    el('h3', { id: 'events-h' }, 'Latest events'),
    table('events-h', [['Number', 'num'], ['Time'], ['Event'], ['Request'], ['Seats', 'num'], ['Taken after', 'num']], events),
  );
  drawer.addEventListener('close', () => { if (open?.name === name) open = null; }, { once: true });
  if (!drawer.open) drawer.showModal();
  refreshWorkshop();
}

/** Brings what is open up to date; with each snapshot, and after each action. */
export async function refreshWorkshop() {
  const at = open;
  if (!at || at.busy) return;
  at.busy = true;
  const state = at.filter.value && `&state=${at.filter.value}`;
  const cursor = at.cursors.length ? `&cursor=${at.cursors.at(-1)}` : '';
  try {
    const [workshop, status, page, recent] = await Promise.all([
      ask(path('workshops', at.name)),
      ask(path('workshops', at.name, 'status')),
      ask(`${path('workshops', at.name, 'reservations')}?limit=${PAGE}${state}${cursor}`),
      ask(path('workshops', at.name, 'recent')),
    ]);
    if (open !== at) return;
    say(at.error, '');
    drawSeats(at.bar, workshop);
    facts(at.list, factsOf(workshop, status));
    drawAttempts(at, page);
    drawEvents(at, recent);
  } catch (refused) {
    if (open === at) say(at.error, refused.message);
  } finally {
    at.busy = false;
  }
}

function factsOf(workshop, status) {
  const pairs = [
    ['Capacity', count(workshop.capacity)], ['Confirmed', count(workshop.reserved - workshop.held)], ['Held', count(workshop.held)],
    ['Free', count(workshop.remaining)], ['Waiting', count(workshop.waiting)],
    ['Accepted, rejected', `${count(status.acceptedRequests)}, ${count(status.rejectedRequests)}`],
  ];
  if (workshop.overbookedBy) pairs.push(['Beyond capacity', count(workshop.overbookedBy), 'bad']);
  if (workshop.maxSeatsPerRequest) pairs.push(['Seats a request', count(workshop.maxSeatsPerRequest)]);
  if (workshop.maxSeatsPerHolder) pairs.push(['Seats a holder', count(workshop.maxSeatsPerHolder)]);
  if (workshop.holdTtlMs) pairs.push(['Holds live', duration(workshop.holdTtlMs / 1000)]);
  if (workshop.waitlist) pairs.push(['Waiting list', `${workshop.waitlist.policy.replace('_', ' ')}, ${count(workshop.waitlist.maxLength)} at most, offers live ${duration(workshop.waitlist.offerTtlMs / 1000)}`]);
  if (workshop.opensAt) pairs.push(['Opens', dayOf(workshop.opensAt)]);
  if (workshop.closesAt) pairs.push(['Closes', dayOf(workshop.closesAt)]);
  return pairs;
}

function drawAttempts(at, { reservations, cursor }) {
  keyed(at.attempts, reservations, ({ requestId }) => requestId, (of) => {
    const node = row(ATTEMPT, { role: true });
    node.parts.request.append(el('button', { type: 'button', class: 'link', onclick: () => showHistory(at, of.requestId) }, of.requestId));
    node.cancel = el('button', { type: 'button', 'aria-label': `Cancel ${of.requestId}`, onclick: () => cancel(at.name, node.of) }, 'Cancel…');
    node.parts.actions.append(node.cancel);
    return node;
  }, (node, of) => {
    node.of = of;
    const { parts } = node;
    say(parts.state, of.reason ? `${of.state}: ${of.reason.replaceAll('_', ' ')}` : of.partOfSet ? `${of.state}, part of a set` : of.state);
    set(parts.state, 'data-word', of.state);
    say(parts.seats, count(of.seats));
    say(parts.holder, of.holder ?? NONE);
    say(parts.decided, momentOf(of.decidedAt));
    say(parts.until, momentOf(of.expiresAt));
    // A line of a set is its set's to give up.
    node.cancel.hidden = !LIVE.has(of.state) || of.partOfSet === true;
  });
  at.first.hidden = at.cursors.length === 0;
  at.next.hidden = cursor === undefined;
  at.next.onclick = () => { at.cursors.push(cursor); refreshWorkshop(); };
}

function drawEvents(at, { events }) {
  keyed(at.events, events, ({ seq }) => seq, () => row([{ name: 'seq', kind: 'num' }, { name: 'time', kind: 'time' }, { name: 'event' },
    { name: 'request', kind: 'mono' }, { name: 'seats', kind: 'num' }, { name: 'reserved', kind: 'num' }]), ({ parts }, of) => {
    say(parts.seq, of.seq);
    say(parts.time, momentOf(of.at));
    say(parts.event, of.reason ? `${of.event}: ${of.reason.replaceAll('_', ' ')}` : of.event);
    set(parts.event, 'data-word', of.event);
    say(parts.request, of.requestId ?? NONE);
    say(parts.seats, count(of.seats));
    say(parts.reserved, count(of.reserved));
  });
}

async function showHistory(at, requestId) {
  try {
    const shown = await ask(path('workshops', at.name, 'reservations', requestId));
    const steps = shown.history.map((of) => el('li', {}, el('time', { datetime: new Date(of.at).toISOString() }, momentOf(of.at)),
      ` ${of.event}, ${of.seats} asked, ${of.reserved} taken after`, of.reason ? `: ${of.reason.replaceAll('_', ' ')}` : ''));
    at.history.replaceChildren(el('h3', {}, `What became of ${requestId}`), el('ol', {}, ...steps));
    at.history.focus();
  } catch (refused) {
    say(at.error, refused.message);
  }
}
