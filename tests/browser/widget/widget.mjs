// The like button in Debian's Chromium, on a page of another origin than the service: what tests/it/widget.rs runs.

import { createHmac } from 'node:crypto';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { createServer } from 'node:http';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import assert from 'node:assert/strict';

import { chromium } from 'playwright-core';

const { HEADCOUNT, HEADCOUNT_DEMO, HEADCOUNT_KEY, HEADCOUNT_SECRET } = process.env;
const PATIENCE_MS = 30_000;
const FLAGS = ['--headless', '--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking',
  '--disable-component-update', '--disable-sync'];
const axe = createRequire(import.meta.url).resolve('axe-core/axe.min.js');

const part = (json) => Buffer.from(JSON.stringify(json)).toString('base64url');

function sign(claims, secret = HEADCOUNT_SECRET) {
  const signed = `${part({ alg: 'HS256', typ: 'JWT' })}.${part({ exp: Math.floor(Date.now() / 1000) + 300, ...claims })}`;
  return `${signed}.${createHmac('sha256', Buffer.from(secret, 'base64')).update(signed).digest('base64url')}`;
}

/** The site: its pages, and the address that gives a token to whoever is logged in. */
function site() {
  const tokens = { asked: 0, next: () => sign({ sub: 'ada' }) };
  const pages = {
    '/': '<headcount-like item="post-1" token-src="/token" label="Like post 1"></headcount-like>'
      + '<headcount-like item="post-1" token-src="/token" label="Like post 1, again"></headcount-like>'
      + '<headcount-like item="a/b c" token-src="/token" label="Like another"></headcount-like>',
    '/wrong': `<headcount-like item="post-1" token="${sign({ sub: 'ada' }, Buffer.alloc(32, 7).toString('base64'))}"></headcount-like>`,
    '/read': `<headcount-like item="post-1" token="${sign({ sub: 'ada', scope: 'read' })}"></headcount-like>`,
  };
  const server = createServer((request, response) => {
    if (request.url === '/token') {
      tokens.asked += 1;
      response.setHeader('content-type', 'application/json');
      return response.end(JSON.stringify({ token: tokens.next() }));
    }
    const body = pages[request.url];
    response.statusCode = body ? 200 : 404;
    response.setHeader('content-type', 'text/html; charset=utf-8');
    response.setHeader('content-security-policy', `default-src 'self'; script-src ${HEADCOUNT}; connect-src 'self' ${HEADCOUNT}; img-src data:`);
    response.end(`<!doctype html><html lang="en"><head><meta charset="utf-8"><title>A page</title><link rel="icon" href="data:,">
      <script src="${HEADCOUNT}/widget.js" defer></script></head><body><main><h1>A page</h1>${body}</main></body></html>`);
  });
  return new Promise((ready) => server.listen(0, '127.0.0.1', () => ready({ server, tokens, base: `http://127.0.0.1:${server.address().port}` })));
}

const back = (method, path) => fetch(HEADCOUNT + path, { method, headers: { authorization: `Bearer ${HEADCOUNT_KEY}` } }).then((answer) => answer.json());
const liked = async (item, user) => (await back('GET', `/likes/${encodeURIComponent(item)}/users/${user}`)).liked;

async function eventually(what, holds) {
  for (const started = Date.now(); ;) {
    if (await holds()) return;
    if (Date.now() - started > PATIENCE_MS) throw new Error(`${what}: not in ${PATIENCE_MS} ms`);
    await new Promise((done) => setTimeout(done, 20));
  }
}

/** Runs `use` on a page in a profile of its own. */
async function onPage(use, options = {}) {
  const profile = await mkdtemp(join(tmpdir(), 'headcount-widget-'));
  const context = await chromium.launchPersistentContext(profile, {
    executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium', args: FLAGS, headless: true, locale: 'en-GB', bypassCSP: options.bypassCSP ?? false,
    colorScheme: options.theme ?? 'light',
  });
  try {
    const page = context.pages()[0] ?? await context.newPage();
    page.setDefaultTimeout(PATIENCE_MS);
    const complaints = [];
    page.on('console', (message) => { if (['error', 'warning'].includes(message.type())) complaints.push(message.text()); });
    page.on('pageerror', (error) => complaints.push(String(error)));
    const asked = [];
    page.on('request', (request) => asked.push(`${request.method()} ${request.url()}`));
    await page.addInitScript(() => {
      globalThis.told = [];
      for (const name of ['headcount-change', 'headcount-error']) addEventListener(name, (event) => told.push({ name, ...event.detail }));
    });
    await use({ page, complaints, asked });
  } finally {
    await context.close().catch(() => {});
    await rm(profile, { recursive: true, force: true }).catch(() => {});
  }
}

/** A button as a reader of the screen has it. */
const view = (page, at = 0) => page.locator('headcount-like').nth(at).evaluate((like) => {
  const button = like.shadowRoot.querySelector('button');
  const total = like.shadowRoot.querySelector('[part=total]');
  return { state: like.getAttribute('state'), pressed: button.getAttribute('aria-pressed'), disabled: button.disabled,
    name: button.getAttribute('aria-label'), total: total.textContent, live: total.getAttribute('aria-live') };
});
const shows = (page, expected, at = 0) => eventually(`button ${at} shows ${JSON.stringify(expected)}`, async () => {
  const now = await view(page, at);
  return Object.entries(expected).every(([name, value]) => now[name] === value);
});

async function violations(page) {
  await page.evaluate(await readFile(axe, 'utf8'));
  const found = await page.evaluate(() => globalThis.axe.run(document));
  return found.violations.filter(({ impact }) => impact === 'serious' || impact === 'critical').map(({ id, help, nodes }) => `${id}: ${help}: ${nodes[0].html}`);
}

const cases = {
  async 'a total comes live, and a click likes as the token\'s user'(base, tokens) {
    await onPage(async ({ page, complaints, asked }) => {
      await page.goto(base);
      await shows(page, { state: 'ready', pressed: 'false', total: '0', disabled: false, name: 'Like post 1', live: 'polite' });
      for (let user = 0; user < 1_233; user += 100) {
        const some = Array.from({ length: Math.min(100, 1_233 - user) }, (_, at) => JSON.stringify({ item: 'post-1', user: `user-${user + at}` }));
        const answer = await fetch(`${HEADCOUNT}/batch/likes`, { method: 'POST', body: some.join('\n'), headers: { authorization: `Bearer ${HEADCOUNT_KEY}` } });
        await answer.text();
      }
      await shows(page, { total: '1,233' });
      await page.locator('headcount-like').first().getByRole('button').click();
      await shows(page, { state: 'ready', pressed: 'true', total: '1,234' });
      await shows(page, { state: 'ready', pressed: 'true', total: '1,234' }, 1);
      assert.equal(await liked('post-1', 'ada'), true);
      // By the keyboard, back and forth.
      await page.locator('headcount-like').first().getByRole('button').focus();
      await page.keyboard.press('Space');
      await shows(page, { pressed: 'false', total: '1,233' });
      await page.keyboard.press('Enter');
      await shows(page, { pressed: 'true', total: '1,234' });
      await shows(page, { state: 'ready' });
      assert.equal(await liked('post-1', 'ada'), true);
      const told = await page.evaluate(() => globalThis.told);
      assert.deepEqual(told.map(({ name, item, user, liked }) => [name, item, user, liked]),
        [true, false, true].map((liked) => ['headcount-change', 'post-1', 'ada', liked]));
      // A name that has to be encoded.
      await page.locator('headcount-like').nth(2).getByRole('button').click();
      await shows(page, { state: 'ready', pressed: 'true', total: '1' }, 2);
      assert.equal(await liked('a/b c', 'ada'), true);

      const streams = asked.filter((request) => request.includes('/events'));
      assert.equal(streams.length, 1, `the buttons share a stream: ${streams}`);
      assert.equal(tokens.asked, 1, 'and a token');
      assert.ok(!asked.some((request) => request.includes('access_token') || request.includes('eyJ')), 'no token in an address');
      // What was liked stays so.
      await page.reload();
      await shows(page, { state: 'ready', pressed: 'true', total: '1,234' });
      await shows(page, { state: 'ready', pressed: 'true', total: '1' }, 2);
      assert.deepEqual(complaints, []);
    });
  },

  async 'who clicks twice wants what came last'(base) {
    await onPage(async ({ page }) => {
      await page.goto(base);
      await shows(page, { state: 'ready', pressed: 'true' });
      await page.locator('headcount-like').first().evaluate((like) => {
        const button = like.shadowRoot.querySelector('button');
        for (let click = 0; click < 5; click += 1) button.click();
      });
      await shows(page, { state: 'ready', pressed: 'false' });
      assert.equal(await liked('post-1', 'ada'), false);
    });
  },

  async 'a wrong token shows that it is wrong'(base) {
    await onPage(async ({ page }) => {
      await page.goto(`${base}/wrong`);
      await shows(page, { state: 'error', pressed: 'false', total: '' });
      const [first] = await page.evaluate(() => globalThis.told);
      assert.deepEqual([first.name, first.status, first.error, first.item], ['headcount-error', 401, 'invalid_token', 'post-1']);
    });
  },

  async 'what is refused is taken back'(base) {
    await onPage(async ({ page }) => {
      await page.goto(`${base}/read`);
      await shows(page, { state: 'ready', pressed: 'false', disabled: false });
      const before = (await view(page)).total;
      await page.getByRole('button').click();
      await shows(page, { state: 'error', pressed: 'false', total: before });
      const told = await page.evaluate(() => globalThis.told);
      assert.deepEqual(told.map(({ name, status, error }) => [name, status, error]), [['headcount-error', 403, 'forbidden']]);
    });
  },

  async 'a hidden tab listens to nothing, and catches up when it is seen'(base) {
    await onPage(async ({ page, asked }) => {
      await page.goto(base);
      await shows(page, { state: 'ready' });
      const see = (hidden) => page.evaluate((hidden) => {
        Object.defineProperty(document, 'hidden', { configurable: true, get: () => hidden });
        document.dispatchEvent(new Event('visibilitychange'));
      }, hidden);
      const streams = () => asked.filter((request) => request.includes('/events')).length;
      const before = Number((await view(page)).total.replaceAll(',', ''));
      const ended = page.waitForEvent('requestfailed', (request) => request.url().includes('/events'));
      await see(true);
      await ended;
      await back('PUT', '/likes/post-1/users/somebody-meanwhile');
      assert.equal(streams(), 1);
      await see(false);
      await shows(page, { state: 'ready', total: (before + 1).toLocaleString('en-GB') });
      assert.equal(streams(), 2);
    });
  },

  async 'a token that has ended is asked for anew'(base, tokens) {
    const good = tokens.next;
    tokens.next = () => sign({ sub: 'ada', exp: Math.floor(Date.now() / 1000) - 60 });
    await onPage(async ({ page }) => {
      const load = page.goto(base);
      await eventually('it is asked for again', () => tokens.asked > 1);
      tokens.next = good;
      await load;
      await shows(page, { state: 'ready', disabled: false });
    });
  },

  async 'axe finds nothing serious, by light and by dark'(base) {
    for (const theme of ['light', 'dark']) {
      await onPage(async ({ page }) => {
        await page.goto(base);
        await shows(page, { state: 'ready' });
        assert.deepEqual(await violations(page), [], theme);
      }, { bypassCSP: true, theme });
    }
  },

  async 'the demo needs nothing else'() {
    await onPage(async ({ page, complaints, asked }) => {
      await page.goto(`${HEADCOUNT_DEMO}/demo`);
      await shows(page, { state: 'ready', pressed: 'false', total: '0', disabled: false });
      await shows(page, { state: 'ready', disabled: true, total: '0' }, 2);
      await page.getByRole('button', { name: 'Like post-1 as ada' }).click();
      await shows(page, { state: 'ready', pressed: 'true', total: '1' });
      await shows(page, { pressed: 'false', total: '1' }, 1);
      await shows(page, { total: '1' }, 2);
      // Whoever likes from two windows at once still has connections for it.
      const streams = asked.filter((request) => request.includes('/events'));
      assert.equal(streams.length, 1, `all buttons without a token share a stream: ${streams}`);
      await page.getByRole('button', { name: 'Like post-1 as bob' }).click();
      await shows(page, { state: 'ready', pressed: 'true', total: '2' }, 1);
      await shows(page, { state: 'ready', pressed: 'true', total: '2' });
      assert.ok(asked.every((request) => request.includes(HEADCOUNT_DEMO) || request.includes('data:')), String(asked));
      assert.deepEqual(complaints, []);
    });
    await onPage(async ({ page }) => {
      await page.goto(`${HEADCOUNT_DEMO}/demo`);
      await shows(page, { state: 'ready' });
      assert.deepEqual(await violations(page), []);
    }, { bypassCSP: true });
  },
};

for (const [name, run] of Object.entries(cases)) {
  const { server, tokens, base } = await site();
  try {
    await run(base, tokens);
    console.log(`ok: ${name}`);
  } catch (error) {
    console.log(`FAILED: ${name}\n${error.stack}`);
    process.exitCode = 1;
  } finally {
    server.closeAllConnections();
    server.close();
  }
}
