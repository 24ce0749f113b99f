// What is asked of the service, and the key that goes with it.

const KEY = 'headcount.key';

/** The key, in this tab's session and nowhere else. */
export const key = {
  get: () => sessionStorage.getItem(KEY),
  set: (value) => sessionStorage.setItem(KEY, value),
  forget: () => sessionStorage.removeItem(KEY),
};

/** An answer that is no success: the service's own words. */
export class Refused extends Error {
  constructor(status, problem) {
    super(problem.detail ?? `the service answered ${status}`);
    this.status = status;
    this.word = problem.error ?? '';
    this.problem = problem;
  }
}

function headers(candidate) {
  // A foreign page cannot send this one without being allowed to: see guard.rs.
  const all = new Headers({ 'x-headcount-console': '1' });
  const used = candidate ?? key.get();
  if (used) all.set('authorization', `Bearer ${used}`);
  return all;
}

async function send(path, { method = 'GET', body, candidate, more = {}, signal } = {}) {
  const all = headers(candidate);
  Object.entries(more).forEach(([name, value]) => all.set(name, value));
  if (body !== undefined) all.set('content-type', 'application/json');
  const answer = await fetch(path, {
    method, headers: all, signal, cache: 'no-store', credentials: 'omit', redirect: 'error',
    body: body === undefined ? undefined : JSON.stringify(body),
  });
  if (answer.ok) return answer;
  throw new Refused(answer.status, await answer.json().catch(() => ({})));
}

/** Asks for JSON. */
export const ask = async (path, options) => (await send(path, options)).json();

/** Asks for JSON and its version. */
export async function askWithVersion(path) {
  const answer = await send(path);
  return { json: await answer.json(), version: answer.headers.get('etag') };
}

/** A path of the API from names, which may hold anything. */
export const path = (...names) => `/console/api/${names.map(encodeURIComponent).join('/')}`;

/**
 * The snapshots as they come. Read by hand, because an `EventSource` sends no headers, and so no key. Throws what `ask`
 * throws; ends when the stream does.
 */
export async function* live(signal) {
  const answer = await send('/console/live', { signal });
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = '';
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    const events = (rest + value).split('\n\n');
    rest = events.pop();
    // Who comes late needs the newest alone: each is whole.
    const newest = events.findLast((event) => event.includes('\ndata:') || event.startsWith('data:'));
    if (newest === undefined) continue;
    const data = newest.split('\n').filter((text) => text.startsWith('data:')).map((text) => text.slice(5).trimStart());
    yield JSON.parse(data.join('\n'));
  }
}
