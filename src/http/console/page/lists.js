// Workshops and rooms: lists that lead somewhere.

import { ask, path } from './api.js';
import { drawSeats, seats } from './charts.js';
import { byId, el, facts, keyed, row, say, set } from './dom.js';
import { count, NONE, plural } from './format.js';
import { changeCapacity, openWorkshop, removeWorkshop } from './workshop.js';

const LISTED = 25;
/** Which page of workshops is shown: after this name. The first one comes with the snapshot. */
let after = null;
let reading = false;

function workshopRow({ workshop: name }) {
  const columns = [['workshop', 'Workshop', 'name'], ['seats', 'Seats', 'wide'], ['confirmed', 'Confirmed', 'num'], ['held', 'Held', 'num'],
    ['free', 'Free', 'num'], ['waiting', 'Waiting', 'num'], ['capacity', 'Capacity', 'num'], ['actions', 'Actions', 'actions']];
  const node = row(columns.map(([column, label, kind]) => ({ name: column, label, kind })), { role: true });
  node.bar = seats();
  node.parts.seats.append(node.bar);
  const open = el('button', { type: 'button', class: 'link', onclick: () => openWorkshop(name) }, name);
  node.parts.workshop.append(open);
  node.parts.actions.append(
    el('button', { type: 'button', 'aria-label': `Change the capacity of ${name}`, onclick: () => changeCapacity(name) }, 'Capacity…'),
    ' ',
    el('button', { type: 'button', 'aria-label': `Delete ${name}`, onclick: () => removeWorkshop(name) }, 'Delete…'),
  );
  return node;
}

function drawWorkshops({ workshops, cursor }) {
  keyed(byId('workshop-rows'), workshops, ({ workshop }) => workshop, workshopRow, ({ parts, bar }, of) => {
    drawSeats(bar, of);
    say(parts.confirmed, count(of.reserved - of.held));
    say(parts.held, count(of.held));
    say(parts.free, count(of.remaining));
    say(parts.waiting, count(of.waiting));
    say(parts.capacity, of.overbookedBy ? `${count(of.capacity)} (${count(of.overbookedBy)} over)` : count(of.capacity));
    set(parts.capacity, 'data-state', of.overbookedBy ? 'bad' : '');
  });
  byId('workshops-first').hidden = after === null;
  const next = byId('workshops-next');
  next.hidden = cursor === undefined;
  next.onclick = () => { after = cursor; refresh(); };
  say(byId('workshops-note'), workshops.length === 0
    ? (after === null ? 'No workshops yet.' : 'No more workshops.')
    : after === null && cursor === undefined ? '' : `${plural(workshops.length, 'workshop')} by name, ${after === null ? 'from the first' : `after ${after}`}.`);
}

async function refresh() {
  if (reading || after === null) return;
  reading = true;
  try {
    const page = await ask(`${path('workshops')}?cursor=${encodeURIComponent(after)}&limit=${LISTED}`);
    if (after !== null) drawWorkshops(page);
  } catch (refused) {
    say(byId('workshops-note'), refused.message);
  } finally {
    reading = false;
  }
}

export function workshops({ workshops: first, namespaces }) {
  if (after !== null) return refresh();
  if (first) return drawWorkshops(first);
  const deleted = namespaces.find(({ namespace }) => namespace === 'workshops')?.deleted;
  say(byId('workshops-note'), deleted ? 'Workshops are declared deleted.' : 'The workshops could not be read in time; what is here is older.');
}

export function startWorkshops() {
  byId('workshops-first').addEventListener('click', () => {
    after = null;
    byId('workshops-h').scrollIntoView();
  });
  byId('find').addEventListener('submit', (event) => {
    event.preventDefault();
    const name = byId('find-name').value.trim();
    if (name) openWorkshop(name);
  });
}

export function rooms({ rooms: of }) {
  if (!of) return say(byId('rooms-note'), 'The rooms could not be read in time; what is here is older.');
  facts(byId('room-facts'), [
    ['Awake', count(of.awake)], ['Asleep', count(of.asleep)],
    ['Sockets', count(of.sockets)], ['Readers of events', count(of.readers)],
  ]);
  const columns = [['room', 'Room', 'name'], ['state', 'State', ''], ['online', 'Online', 'num'], ['connections', 'Connections', 'num']];
  keyed(byId('room-rows'), of.rooms, ({ room }) => room, ({ room: name }) => {
    const node = row(columns.map(([column, label, kind]) => ({ name: column, label, kind })), { role: true });
    node.badge = el('span', { class: 'badge' });
    node.parts.state.append(node.badge);
    node.parts.room.append(el('button', { type: 'button', class: 'link', onclick: () => openRoom(name) }, name));
    return node;
  }, ({ parts, badge }, { awake, online, connections }) => {
    say(badge, awake ? 'awake' : 'asleep');
    set(badge, 'data-state', awake ? 'good' : '');
    say(parts.online, count(online));
    say(parts.connections, count(connections));
  });
  const hidden = of.awake + of.asleep - of.rooms.length;
  say(byId('rooms-note'), of.rooms.length === 0 ? 'Nobody is in any room.'
    : hidden > 0 ? `And ${plural(hidden, 'more room')}; those that are awake come first.` : '');
}

const MEMBERS_SHOWN = 500;

async function openRoom(name) {
  const [drawer, body] = [byId('drawer'), byId('drawer-body')];
  say(byId('drawer-h'), name);
  body.replaceChildren(el('p', { class: 'note' }, 'Looking…'));
  drawer.showModal();
  try {
    const room = await ask(`${path('rooms', name)}?members=true`);
    const shown = room.members.slice(0, MEMBERS_SHOWN);
    const rest = room.members.length - shown.length;
    const list = el('dl', { class: 'facts' });
    facts(list, [['Online', count(room.online)], ['Connections', count(room.connections)]]);
    const rows = shown.map(({ user, meta }) => el('tr', {},
      el('th', { scope: 'row', class: 'name' }, user), el('td', { class: 'mono long' }, meta === undefined ? NONE : JSON.stringify(meta))));
    body.replaceChildren(list, el('h3', { id: 'members-h' }, 'Who is here'),
      el('div', { class: 'scroll', role: 'region', tabindex: '0', 'aria-labelledby': 'members-h' },
        el('table', {}, el('thead', {}, el('tr', {}, el('th', { scope: 'col' }, 'User'), el('th', { scope: 'col' }, 'Says about itself'))),
          el('tbody', {}, ...rows))),
      el('p', { class: 'note' }, rest > 0 ? `And ${count(rest)} more.` : room.members.length === 0 ? 'Nobody.' : 'As of now; looking wakes nobody.'));
  } catch (refused) {
    body.replaceChildren(el('p', { class: 'error', role: 'alert' }, refused.message));
  }
}
