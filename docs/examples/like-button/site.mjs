// A site with a like button: a page, and the address that gives its visitors their tokens. No packages.
//
//   node docs/examples/like-button/site.mjs
//
// prints how to start headcount beside it. In a real site the user comes from its own session, never from the address.

import { createHmac, randomBytes } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { createServer } from 'node:http';

const HEADCOUNT = process.env.HEADCOUNT ?? 'http://127.0.0.1:8787';
const SECRET = process.env.TOKEN_SECRET ?? randomBytes(32).toString('base64');
const PORT = 3000;

/** A token: who may like, for five minutes. */
function sign(user) {
  const part = (json) => Buffer.from(JSON.stringify(json)).toString('base64url');
  const claims = { sub: user, aud: 'headcount', exp: Math.floor(Date.now() / 1000) + 300, scope: ['likes'] };
  const signed = `${part({ alg: 'HS256', typ: 'JWT', kid: 'site' })}.${part(claims)}`;
  return `${signed}.${createHmac('sha256', Buffer.from(SECRET, 'base64')).update(signed).digest('base64url')}`;
}

createServer(async (request, response) => {
  const { pathname, searchParams } = new URL(request.url, 'http://site');
  response.setHeader('cache-control', 'no-store');
  if (pathname === '/headcount-token') {
    // Here a real site looks at its session's cookie.
    return response.end(sign(searchParams.get('as') ?? 'ada'));
  }
  if (pathname !== '/') return response.writeHead(404).end();
  const page = await readFile(new URL('index.html', import.meta.url), 'utf8');
  response.setHeader('content-type', 'text/html; charset=utf-8');
  response.end(page.replaceAll('HEADCOUNT', HEADCOUNT));
}).listen(PORT, '127.0.0.1', () => {
  console.log(`the page: http://127.0.0.1:${PORT}/\n\nand headcount, in another terminal:\n
HEADCOUNT__SERVER__CORS_ORIGINS='["http://127.0.0.1:${PORT}"]' \\
HEADCOUNT__AUTH__TOKEN_SECRETS='[{ name = "site", secret_base64 = "${SECRET}" }]' \\
cargo run --release`);
});
