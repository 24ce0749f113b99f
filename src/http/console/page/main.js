// The page's beginning: listens to the service, asks for a key where one is needed, and draws what it hears.

import { ask, key, live, Refused } from './api.js';
import { closeButtons, confirm, field, tell } from './dialogs.js';
import { byId, el, say, set } from './dom.js';
import { bytes, count, ms, plural } from './format.js';
import { rooms, startWorkshops, workshops } from './lists.js';
import * as panels from './panels.js';
import { refreshWorkshop } from './workshop.js';

/** Before trying again, longer each time: from, to. */
const [PAUSE_MS, LONGEST_PAUSE_MS] = [500, 10_000];
/** Without a snapshot for so long, what is shown is old, and says so. */
const STALE_MS = 5_000;

const WORDS = {
  connecting: 'Connecting', live: 'Live', paused: 'Paused', stale: 'No news', lost: 'Not reachable, trying again', key: 'A key is needed',
  forbidden: 'This key may not look', full: 'Too many are looking',
};

let listening = null;
let paused = false;
let staleTimer;

function state(word) {
  const pill = byId('status');
  say(pill, WORDS[word]);
  set(pill, 'data-state', word);
}

const PARTS = [panels.overview, panels.top, panels.load, panels.partitions, workshops, rooms, panels.namespaces, panels.decisions,
  panels.upkeep, panels.about];

function draw(snapshot) {
  for (const part of PARTS) {
    // One part that fails leaves the others alone, and is heard of.
    try { part(snapshot); } catch (error) { console.error(error); }
  }
  refreshWorkshop();
}

async function listen() {
  listening?.abort();
  const abort = new AbortController();
  listening = abort;
  let pause = PAUSE_MS;
  while (!abort.signal.aborted) {
    let wait = pause;
    try {
      for await (const snapshot of live(abort.signal)) {
        if (abort.signal.aborted) return;
        pause = PAUSE_MS;
        state('live');
        clearTimeout(staleTimer);
        staleTimer = setTimeout(() => state('stale'), STALE_MS);
        draw(snapshot);
      }
      state('lost');
    } catch (error) {
      if (abort.signal.aborted) return;
      clearTimeout(staleTimer);
      if (error instanceof Refused && (error.status === 401 || error.status === 403)) {
        state(error.status === 401 ? 'key' : 'forbidden');
        if (error.word === 'foreign_host' || error.word === 'foreign_page') say(byId('status'), error.message);
        else askForKey(error.status === 403 || key.get() ? error.message : '');
        return;
      }
      const full = error instanceof Refused && error.status === 503;
      state(full ? 'full' : 'lost');
      if (full) wait = Math.max(wait, 2_000);
    }
    await new Promise((done) => setTimeout(done, wait));
    pause = Math.min(pause * 2, LONGEST_PAUSE_MS);
  }
}

function rest(word) {
  listening?.abort();
  listening = null;
  clearTimeout(staleTimer);
  if (word) state(word);
}

async function readSettings() {
  try {
    panels.settings((await ask('/console/settings')).settings);
  } catch { /* the stream says what is wrong */ }
}

function start() {
  state('connecting');
  listen();
  readSettings();
}

function askForKey(why) {
  const dialog = byId('key-dialog');
  say(byId('key-error'), why);
  byId('key-forget').hidden = !key.get();
  byId('key-input').value = '';
  if (!dialog.open) dialog.showModal();
  byId('key-input').focus();
}

function startKeys() {
  byId('key').addEventListener('click', () => askForKey(''));
  byId('key-form').addEventListener('submit', async (event) => {
    event.preventDefault();
    const candidate = byId('key-input').value.trim();
    if (!candidate) return;
    try {
      // Tried before it is kept.
      await ask('/console/settings', { candidate });
      key.set(candidate);
      byId('key-input').value = '';
      byId('key-dialog').close();
      start();
    } catch (error) {
      say(byId('key-error'), error instanceof Refused ? `Refused: ${error.message}.` : 'The service does not answer.');
      byId('key-input').select();
    }
  });
  byId('key-forget').addEventListener('click', () => {
    key.forget();
    byId('key-dialog').close();
    start();
  });
}

function startPause() {
  const button = byId('pause');
  button.addEventListener('click', () => {
    paused = !paused;
    set(button, 'aria-pressed', paused);
    if (paused) rest('paused');
    else start();
  });
  // Nobody looks at a hidden tab, and the service makes nothing for nobody.
  document.addEventListener('visibilitychange', () => {
    if (paused) return;
    if (document.hidden) rest();
    else if (!listening) start();
  });
}

function result(title, good, ...lines) {
  const box = byId('upkeep-result');
  box.hidden = false;
  set(box, 'data-state', good ? 'good' : 'bad');
  box.replaceChildren(el('h3', {}, title), ...lines);
}

function startUpkeep() {
  byId('backup').addEventListener('click', () => {
    const name = field('name', 'Name', { maxlength: 128, pattern: '[A-Za-z0-9][A-Za-z0-9._\\-]*' }, 'Left empty, it is named after the time.');
    confirm({
      title: 'Start a backup',
      text: 'Everything as it is at one moment, copied while the service runs, and audited before it counts. This can take a while.',
      fields: [name],
      verb: 'Start the backup',
      act: async () => {
        const taken = await ask('/backup', { method: 'POST', body: name.input.value ? { dir: name.input.value } : {} });
        result('The backup is whole', true, el('p', {}, `${taken.dir}: ${bytes(taken.bytes)} in ${ms(taken.durationMs)}; the partitions stood still for ${ms(taken.heldMs)}.`));
        return 'The backup is taken.';
      },
    });
  });
  byId('verify').addEventListener('click', () => confirm({
    title: 'Run verify',
    text: 'Reads everything that is stored, beside the service, which goes on: about a second for 100,000 likes. Nothing is changed.',
    verb: 'Run verify',
    act: async () => {
      const seen = await ask('/verify', { method: 'POST', body: {} });
      const looked = `${plural(seen.memberships, 'like')} of ${plural(seen.items, 'item')}, ${plural(seen.workshops, 'workshop')} with ${plural(seen.attempts, 'attempt')}, ${plural(seen.sets, 'set')}, ${plural(seen.rooms, 'kept room')}; ${ms(seen.durationMs)}.`;
      const findings = seen.findings.map(({ partition, what, why }) => el('li', {}, `${partition === undefined ? 'summary' : `partition ${partition}`}, ${what}: ${why}`));
      result(seen.passes ? 'Verify passes: nothing is wrong' : `Verify fails: ${count(seen.wrong)} wrong`, seen.passes, el('p', {}, looked), el('ul', {}, ...findings));
      if (!seen.passes) tell(`Verify fails: ${count(seen.wrong)} wrong.`);
      return seen.passes ? 'Verify passes.' : '';
    },
  }));
}

closeButtons();
startKeys();
startPause();
startWorkshops();
startUpkeep();
start();
