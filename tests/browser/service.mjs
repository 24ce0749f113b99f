// Something to look at: a service in which a little of everything has happened.

/** A name that would be a script, were it ever markup. */
export const HOSTILE = '<img src=x onerror=alert(1)>"\'&';

/** Asks the public API; whatever it answers. */
export async function asked(service, method, path, body) {
  const answer = await fetch(`${service}${path}`, {
    method, headers: { 'content-type': 'application/json' }, body: body === undefined ? undefined : JSON.stringify(body),
  });
  return answer.json();
}

export async function fill(service) {
  const ask = (method, path, body) => asked(service, method, path, body);
  const like = (item, user) => ask('PUT', `/likes/${encodeURIComponent(item)}/users/${encodeURIComponent(user)}`);
  const items = ['post-1', 'post-2', 'video-7', 'a-long-name-of-an-item-that-somebody-thought-of-'.repeat(2), HOSTILE, '日本のポスト'];
  await Promise.all(items.flatMap((item, index) => Array.from({ length: 40 - index * 6 }, (_, user) => like(item, `user-${user}`))));
  await ask('PUT', '/workshops/pottery', { capacity: 4, holdTtlMs: 600_000, waitlist: { policy: 'strict', offerTtlMs: 600_000, maxLength: 20 } });
  await ask('PUT', '/workshops/launch-day', { capacity: 4, waitlist: { policy: 'strict', offerTtlMs: 600_000, maxLength: 20 } });
  await ask('PUT', '/workshops/short-lived', { capacity: 3 });
  const reserve = (workshop, body) => ask('POST', `/workshops/${workshop}/reservations`, body);
  await reserve('pottery', { requestId: 'ada-1', seats: 2, holder: 'ada' });
  await reserve('pottery', { requestId: 'held-1', seats: 1, holder: 'bob', hold: true, ttlMs: 600_000 });
  await reserve('launch-day', { requestId: 'first-1', seats: 3 });
  await reserve('launch-day', { requestId: 'first-2', seats: 1 });
  await reserve('launch-day', { requestId: 'wait-1', seats: 1, waitlist: true });
  await reserve('launch-day', { requestId: 'wait-2', seats: 1, waitlist: true });
  for (const name of ['autumn-walk', 'bread-baking', 'choir', 'drawing']) {
    await ask('PUT', `/workshops/${name}`, { capacity: 12 });
    await reserve(name, { requestId: 'some-1', seats: 4 });
  }
  await ask('POST', '/rooms/lobby/join', { user: 'ada', meta: { seat: 3 } });
  await ask('POST', '/rooms/lobby/join', { user: 'bob' });
  await ask('POST', '/rooms/studio/join', { user: 'eve' });
}

/** Goes on liking and reserving, a little of each, until it is told to end: so that charts have something to show. */
export function trickle(service) {
  let turn = 0;
  const timer = setInterval(() => {
    turn += 1;
    const busy = 1 + Math.round(3 + 3 * Math.sin(turn / 9));
    for (let one = 0; one < busy; one += 1) {
      const item = ['post-1', 'post-1', 'post-2', 'video-7'][(turn + one) % 4];
      asked(service, 'PUT', `/likes/${item}/users/visitor-${turn % 400}-${one}`).catch(() => {});
    }
    if (turn % 6 === 0) asked(service, 'POST', '/workshops/choir/reservations', { requestId: `visitor-${turn}`, seats: 1 }).catch(() => {});
    if (turn % 4 === 0) asked(service, 'POST', '/rooms/lobby/send', { user: 'ada', text: 'hello' }).catch(() => {});
  }, 100);
  return () => clearInterval(timer);
}
