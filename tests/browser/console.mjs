// The operator's page in a browser: what it shows, what changes by itself, what it does and what it refuses to do.

import assert from 'node:assert/strict';
import { join } from 'node:path';
import { parseArgs } from 'node:util';

import { inChromium, violations } from './browser.mjs';
import { asked, fill, HOSTILE, trickle } from './service.mjs';

const { values: given } = parseArgs({
  options: Object.fromEntries(['public', 'admin', 'keyed-public', 'keyed-admin', 'shots'].map((name) => [name, { type: 'string' }])),
});
const open = `http://${given.admin}/`;
const keyed = `http://${given['keyed-admin']}/`;
const service = `http://${given.public}`;
const shot = (page, name, options = {}) => page.screenshot({ path: join(given.shots, `${name}.png`), ...options });

const rowOf = (page, body, name) => page.locator(`#${body} tr`, { has: page.getByText(name, { exact: true }) });
const isLive = (page) => page.locator('#status[data-state="live"]').waitFor();
const until = (page, text, within) => page.locator(within, { hasText: text }).first().waitFor();

const STEPS = {
  async 'loads, and shows what is there'({ page }) {
    await page.goto(open);
    await isLive(page);
    for (const name of ['launch-day', 'pottery', 'lobby', 'likes', 'all 2 up']) await until(page, name, 'main');
    const free = await rowOf(page, 'workshop-rows', 'pottery').locator('td').allTextContents();
    assert.deepEqual(free.slice(1, 6), ['2', '1', '1', '0', '4'], 'confirmed, held, free, waiting, capacity');
    const label = await rowOf(page, 'workshop-rows', 'launch-day').locator('.seats').getAttribute('aria-label');
    assert.equal(label, '4 seats: 4 confirmed, 0 held, 0 free, 2 waiting');
    await until(page, 'batch.linger_us', '#setting-rows');
  },

  async 'changes after a like, without a reload'({ page }) {
    await page.evaluate(() => { globalThis.isTheSamePage = true; });
    const total = rowOf(page, 'top', 'post-1').locator('> *').nth(2);
    const before = Number((await total.textContent()).replaceAll(',', ''));
    await asked(service, 'PUT', '/likes/post-1/users/somebody-new');
    await page.waitForFunction(([was]) => [...document.querySelectorAll('#top tr')].some((row) => row.firstChild.textContent === 'post-1'
      && Number(row.children[2].textContent.replaceAll(',', '')) === was + 1), [before]);
    assert.equal(await page.evaluate(() => globalThis.isTheSamePage), true);
  },

  async 'shows hostile names as text'({ page, heard }) {
    await until(page, HOSTILE, '#top');
    assert.equal(await page.locator('main img').count(), 0);
    assert.equal(heard.dialogs, 0);
  },

  async 'shows decisions as they are made'({ page }) {
    await asked(service, 'POST', '/workshops/launch-day/reservations', { requestId: 'too-late-1', seats: 1 });
    await until(page, 'too-late-1', '#decision-rows');
    assert.match(await rowOf(page, 'decision-rows', 'too-late-1').textContent(), /rejected/);
  },

  async 'a capacity change lands, by keyboard alone'({ page }) {
    await page.getByRole('button', { name: 'Change the capacity of pottery' }).focus();
    await page.keyboard.press('Enter');
    const field = page.getByLabel('Capacity', { exact: true });
    await page.waitForFunction(() => document.activeElement?.id === 'confirm-capacity' && document.activeElement.value === '4');
    await field.press('Control+a');
    await page.keyboard.type('9');
    await page.keyboard.press('Enter');
    await page.waitForFunction(() => !document.getElementById('confirm').open);
    await page.waitForFunction(() => [...document.querySelectorAll('#workshop-rows tr')]
      .some((row) => row.firstChild.textContent === 'pottery' && row.children[6].textContent === '9'));
    const stored = await asked(service, 'GET', '/workshops/pottery');
    assert.equal(stored.capacity, 9);
    assert.equal(stored.holdTtlMs, 600_000, 'what was not changed stays');
    const focused = await page.evaluate(() => document.activeElement.getAttribute('aria-label'));
    assert.equal(focused, 'Change the capacity of pottery', 'the focus is where it was');
  },

  async 'a capacity below what is taken needs force'({ page }) {
    await page.getByRole('button', { name: 'Change the capacity of launch-day' }).click();
    await page.waitForFunction(() => document.getElementById('confirm-capacity').value === '4');
    assert.equal(await page.locator('#confirm-force').isVisible(), false);
    await page.getByLabel('Capacity', { exact: true }).fill('2');
    await page.locator('#confirm-do').click();
    await until(page, '4 seats are taken', '#confirm-error');
    await page.getByLabel('Lower it all the same').check();
    await page.locator('#confirm-do').click();
    await until(page, '2 (2 over)', '#workshop-rows');
  },

  async 'a workshop opens, and a reservation is cancelled'({ page }) {
    await page.getByRole('button', { name: 'pottery', exact: true }).click();
    await until(page, 'held-1', '#drawer');
    await page.locator('#drawer').getByRole('button', { name: 'held-1', exact: true }).click();
    await until(page, 'What became of held-1', '#drawer');
    await shot(page, 'workshop-light');
    await page.getByRole('button', { name: 'Cancel held-1' }).click();
    await page.locator('#confirm-do').click();
    await page.waitForFunction(() => !document.getElementById('confirm').open);
    await page.waitForFunction(() => [...document.querySelectorAll('#drawer-body tr')]
      .some((row) => row.textContent.includes('held-1') && row.textContent.includes('cancelled')));
    const shown = await asked(service, 'GET', '/workshops/pottery/reservations/held-1');
    assert.equal(shown.state, 'cancelled');
    await page.keyboard.press('Escape');
    assert.equal(await page.locator('#drawer').isVisible(), false);
  },

  async 'a room tells who is here'({ page }) {
    await page.getByRole('button', { name: 'lobby', exact: true }).click();
    await until(page, 'ada', '#drawer');
    await page.keyboard.press('Escape');
  },

  async 'a deletion needs the name'({ page }) {
    await page.getByRole('button', { name: 'Delete short-lived' }).click();
    const button = page.locator('#confirm-do');
    assert.equal(await button.isDisabled(), true);
    await page.locator('#confirm-typed').fill('short-live');
    assert.equal(await button.isDisabled(), true);
    await page.keyboard.press('Enter');
    assert.equal((await asked(service, 'GET', '/workshops/short-lived')).capacity, 3, 'not with half of it');
    await shot(page, 'delete-light');
    await page.locator('#confirm-typed').fill('short-lived');
    await button.click();
    await page.waitForFunction(() => ![...document.querySelectorAll('#workshop-rows tr')].some((row) => row.firstChild.textContent === 'short-lived'));
    assert.equal((await asked(service, 'GET', '/workshops/short-lived')).status, 410);
  },

  async 'a backup and an audit are run'({ page }) {
    await page.getByRole('button', { name: 'Start a backup…' }).click();
    await page.getByLabel('Name', { exact: true }).fill('from-the-page');
    await page.locator('#confirm-do').click();
    await until(page, 'from-the-page', '#upkeep-result');
    await page.getByRole('button', { name: 'Run verify…' }).click();
    await page.locator('#confirm-do').click();
    await until(page, 'Verify passes: nothing is wrong', '#upkeep-result');
  },

  async 'it can be paused'({ page }) {
    const pause = page.getByRole('button', { name: 'Pause' });
    await pause.click();
    await page.locator('#status[data-state="paused"]').waitFor();
    await pause.click();
    await isLive(page);
  },

  async 'the keyboard reaches everything, from the first link on'({ page }) {
    await page.goto(open);
    await isLive(page);
    await page.keyboard.press('Tab');
    assert.equal(await page.evaluate(() => document.activeElement.className), 'skip');
    const seen = new Set();
    for (let press = 0; press < 90; press += 1) {
      seen.add(await page.evaluate(() => document.activeElement.id || document.activeElement.getAttribute('aria-label') || document.activeElement.textContent));
      await page.keyboard.press('Tab');
    }
    for (const wanted of ['pause', 'key', 'theme', 'Workshops', 'find-name', 'pottery', 'Change the capacity of pottery', 'Delete pottery', 'lobby', 'backup', 'verify', 'only-changed']) {
      assert.ok(seen.has(wanted), `${wanted} in ${[...seen].join(', ')}`);
    }
  },
};

async function keys(open_) {
  const { page, heard } = await open_();
  await page.goto(keyed);
  await page.locator('#key-dialog').waitFor();
  await page.getByLabel('Key', { exact: true }).fill('wrong');
  await page.getByRole('button', { name: 'Use this key' }).click();
  await until(page, 'Refused', '#key-error');
  assert.equal(await page.evaluate(() => sessionStorage.getItem('headcount.key')), null, 'a wrong key is not kept');
  await page.getByLabel('Key', { exact: true }).fill('reader');
  await page.keyboard.press('Enter');
  await isLive(page);
  assert.equal(await page.evaluate(() => JSON.stringify(localStorage) + document.cookie), '{}', 'a key is in the session alone');
  // A reader changes nothing.
  await page.getByRole('button', { name: 'Run verify…' }).click();
  await page.locator('#confirm-do').click();
  await until(page, 'this key has no scope admin', '#confirm-error');
  await page.keyboard.press('Escape');
  await page.getByRole('button', { name: 'Key', exact: true }).click();
  await page.getByLabel('Key', { exact: true }).fill('operator');
  await page.keyboard.press('Enter');
  await page.waitForFunction(() => !document.getElementById('key-dialog').open);
  await isLive(page);
  await page.getByRole('button', { name: 'Run verify…' }).click();
  await page.locator('#confirm-do').click();
  await until(page, 'Verify passes', '#upkeep-result');
  // The browser itself notes each answer of 401 and 403: those were asked for.
  const complaints = heard.complaints.filter((text) => !/status of 40[13]/.test(text));
  assert.deepEqual(complaints, []);
  onlyItself(heard, given['keyed-admin']);
}

function onlyItself(heard, host) {
  const others = heard.asked.filter((url) => !url.startsWith('data:') && new URL(url).host !== host);
  assert.deepEqual(others, [], 'no other host is asked');
  assert.ok(heard.asked.length > 5);
}

/** No part of the page is wider than the window. */
async function fits(page) {
  const widths = await page.evaluate(() => [document.documentElement.scrollWidth, document.documentElement.clientWidth]);
  assert.ok(widths[0] <= widths[1], `the page scrolls sideways: ${widths}`);
}

await fill(service);
await inChromium(async (open_) => {
  const wide = await open_();
  for (const [name, step] of Object.entries(STEPS)) {
    await step(wide).catch((error) => { error.message = `${name}: ${error.message}`; throw error; });
    console.log(`ok: ${name}`);
  }
  // A capacity in use is a 409, of which the browser makes a note by itself; a deletion's proof is a 410 of the script's own.
  assert.deepEqual(wide.heard.complaints.filter((text) => !text.includes('status of 409')), []);
  onlyItself(wide.heard, given.admin);
  await keys(open_);
  console.log('ok: a wrong key is refused, a reader looks, an operator acts');
  const end = trickle(service);
  await wide.page.waitForTimeout(20_000);
  for (const theme of ['light', 'dark']) {
    const { page, heard } = await open_({ theme, bypassCSP: true });
    await page.goto(open);
    await isLive(page);
    await until(page, 'pottery', '#workshop-rows');
    await fits(page);
    await page.waitForTimeout(4000);
    await shot(page, `page-${theme}`, { fullPage: true });
    await shot(page, `top-${theme}`);
    assert.deepEqual(await violations(page), [], `${theme}: the page`);
    await page.getByRole('button', { name: 'pottery', exact: true }).click();
    await until(page, 'held-1', '#drawer');
    assert.deepEqual(await violations(page), [], `${theme}: a workshop`);
    await shot(page, `drawer-${theme}`);
    await page.locator('#drawer').getByRole('button', { name: 'Delete…' }).click();
    assert.deepEqual(await violations(page), [], `${theme}: a confirmation`);
    assert.deepEqual(heard.complaints, []);
    console.log(`ok: nothing serious for axe, ${theme}`);
  }
  end();
  const phone = await open_({ width: 360, height: 740 });
  await phone.page.goto(open);
  await isLive(phone.page);
  await until(phone.page, 'pottery', '#workshop-rows');
  await fits(phone.page);
  await phone.page.waitForTimeout(2500);
  await shot(phone.page, 'phone-light', { fullPage: true });
  await phone.page.getByRole('button', { name: 'pottery', exact: true }).click();
  await until(phone.page, 'held-1', '#drawer');
  await fits(phone.page);
  await shot(phone.page, 'phone-drawer');
  await phone.page.keyboard.press('Escape');
  await phone.page.locator('#theme').selectOption('dark');
  assert.equal(await phone.page.evaluate(() => document.documentElement.dataset.theme), 'dark');
  await shot(phone.page, 'phone-dark');
  await phone.page.reload();
  assert.equal(await phone.page.evaluate(() => document.documentElement.dataset.theme), 'dark', 'the choice stays');
  assert.deepEqual(phone.heard.complaints, []);
  console.log('ok: 360 pixels are enough');
});
console.log('the page works');
