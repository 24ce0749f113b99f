// Debian's Chromium with a profile of its own, and pages that are watched: whatever they ask and whatever they complain of.

import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { chromium } from 'playwright-core';

const axe = createRequire(import.meta.url).resolve('axe-core/axe.min.js');

const FLAGS = ['--headless', '--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking',
  '--disable-component-update', '--disable-sync'];
export const PATIENCE_MS = 30_000;

/** Runs `with(open)` and ends the browser, whatever comes. `open(options)` opens a page in a profile of its own. */
export async function inChromium(use) {
  const opened = [];
  const open = async ({ width = 1360, height = 900, theme = 'light', bypassCSP = false } = {}) => {
    const profile = await mkdtemp(join(tmpdir(), 'headcount-console-'));
    const context = await chromium.launchPersistentContext(profile, {
      executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium', args: FLAGS, headless: true, bypassCSP,
      viewport: { width, height }, colorScheme: theme, deviceScaleFactor: 1, reducedMotion: 'reduce', locale: 'en-GB',
    });
    opened.push({ context, profile });
    const page = context.pages()[0] ?? await context.newPage();
    page.setDefaultTimeout(PATIENCE_MS);
    return { page, heard: watch(page) };
  };
  try {
    await use(open);
  } finally {
    for (const { context, profile } of opened) {
      await context.close().catch(() => {});
      await rm(profile, { recursive: true, force: true }).catch(() => {});
    }
  }
}

/** What a page complained of, and every address that it asked. */
function watch(page) {
  const heard = { complaints: [], asked: [], dialogs: 0 };
  page.on('console', (message) => {
    if (['error', 'warning'].includes(message.type())) heard.complaints.push(`${message.text()} (${message.location().url})`);
  });
  page.on('pageerror', (error) => heard.complaints.push(String(error)));
  page.on('request', (request) => heard.asked.push(request.url()));
  page.on('dialog', (dialog) => { heard.dialogs += 1; dialog.dismiss(); });
  return heard;
}

/** What axe finds that is serious or worse. */
export async function violations(page) {
  await page.evaluate(await readFile(axe, 'utf8'));
  const found = await page.evaluate(() => globalThis.axe.run(document, {
    runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'],
  }));
  return found.violations.filter(({ impact }) => impact === 'serious' || impact === 'critical')
    .map(({ id, help, nodes }) => `${id}: ${help}: ${nodes.map(({ html, any }) => `${html.slice(0, 160)} ${any[0]?.message ?? ''}`).join(' | ')}`);
}
