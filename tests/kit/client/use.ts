// What a caller does with the generated types: a like, a hold, a confirmation, a room, and problems by their words.
//
//   node built/use.js URL [KEY]
//
// Prints one object of JSON: what came back, step by step.

import createClient from 'openapi-fetch';

import type { components, paths } from './headcount.js';

type Problem = components['schemas']['Problem'];

const [url, key] = process.argv.slice(2);
if (url === undefined) throw new Error('give the address of the service');

const headcount = createClient<paths>({ baseUrl: url, headers: key === undefined ? {} : { Authorization: `Bearer ${key}` } });

/** The answer, or an error that carries the problem's word. */
function done<T>(answer: { data?: T; error?: unknown; response: Response }): T {
  if (answer.data === undefined) throw new Error(`${answer.response.status}: ${JSON.stringify(answer.error)}`);
  return answer.data;
}

/** What to tell a person: `error` is a union of words, so that a word which does not exist is a mistake of the compiler's. */
function told(problem: Problem): string {
  switch (problem.error) {
    case 'request_id_reused': return `a new id, please: ${problem.field ?? 'something'} differs`;
    case 'already_confirmed': return 'it is paid for';
    case 'hold_expired': return 'too late, begin again';
    case 'unauthorized': return 'no key';
    case 'overloaded': case 'unavailable': case 'outcome_unknown': return 'the same again, with the same id';
    default: return `${problem.error}: ${problem.detail}`;
  }
}

const workshop = 'pottery';
const at = { path: { workshop } };
const hold: components['schemas']['ReservationBody'] = { requestId: 'ada-1', seats: 2, holder: 'ada', hold: true, ttlMs: 60_000 };
const request = { path: { workshop, requestId: hold.requestId } };

const likeOfAda = { path: { item: 'post-1/ü', user: 'ada' }, query: { exact: true } };
const liked = done(await headcount.PUT('/likes/{item}/users/{user}', { params: likeOfAda }));
const again = done(await headcount.PUT('/likes/{item}/users/{user}', { params: likeOfAda }));
const bob = done(await headcount.POST('/likes/{item}', { params: { path: { item: 'post-1/ü' } }, body: { userId: 'bob' } }));
const unliked = done(await headcount.DELETE('/likes/{item}/users/{user}', { params: likeOfAda }));
const total = done(await headcount.GET('/likes/{item}', { params: { path: { item: 'post-1/ü' }, query: { exact: true } } }));
const feed = done(await headcount.GET('/likes', { params: { query: { item: ['post-1/ü', 'post-2'], user: 'bob', exact: true } } }));

const configured = done(await headcount.PUT('/workshops/{workshop}', {
  params: at, body: { capacity: 2, waitlist: { policy: 'strict', offerTtlMs: 60_000, maxLength: 5 } },
}));
const held = await headcount.POST('/workshops/{workshop}/reservations', { params: at, body: hold });
const replayed = done(await headcount.POST('/workshops/{workshop}/reservations', { params: at, body: hold }));

// 409: decided, and the decision is no. That is an answer of the same kind as yes, and no problem.
const full = await headcount.POST('/workshops/{workshop}/reservations', { params: at, body: { requestId: 'bob-1', seats: 1 } });
if (full.error === undefined || 'error' in full.error) throw new Error(`not refused: ${JSON.stringify(full)}`);
const refused = full.error;

// 422: the same id with other seats.
const reused = await headcount.POST('/workshops/{workshop}/reservations', { params: at, body: { ...hold, seats: 1 } });
if (reused.error === undefined || !('error' in reused.error)) throw new Error(`not refused: ${JSON.stringify(reused)}`);
const mistaken = reused.error;

const waiting = await headcount.POST('/workshops/{workshop}/reservations', {
  params: at, body: { requestId: 'eve-1', seats: 1, holder: 'eve', waitlist: true },
});
const confirmed = done(await headcount.POST('/workshops/{workshop}/reservations/{requestId}/confirm', { params: request }));

// 409 again, and a problem this time: what is confirmed is not held longer.
const late = await headcount.POST('/workshops/{workshop}/reservations/{requestId}/extend', { params: request, body: { ttlMs: 90_000 } });
if (late.error === undefined) throw new Error(`not refused: ${JSON.stringify(late)}`);

const shown = done(await headcount.GET('/workshops/{workshop}/reservations/{requestId}', { params: request }));
const list = done(await headcount.GET('/workshops/{workshop}/reservations', { params: { ...at, query: { limit: 10 } } }));
const inState = done(await headcount.GET('/workshops/{workshop}/reservations', { params: { ...at, query: { state: 'confirmed' } } }));

const lobby = { path: { room: 'lobby' } };
const joined = done(await headcount.POST('/rooms/{room}/join', { params: lobby, body: { user: 'ada', meta: { colour: 'red' } } }));
const sent = done(await headcount.POST('/rooms/{room}/send', { params: lobby, body: { user: 'ada', text: 'hello' } }));
const thrown = done(await headcount.POST('/rooms/{room}/send', { params: lobby, body: { user: 'ada', data: { dice: [1, 6] } } }));
const room = done(await headcount.GET('/rooms/{room}', { params: { ...lobby, query: { members: true } } }));

// Lines, in and out, which no generator sends: their types have names.
const lines: components['schemas']['BulkLine'][] = [{ item: 'post-3', user: 'ada' }, { item: '', user: 'ada' }];
const bulk = await fetch(`${url}/batch/likes`, {
  method: 'POST',
  headers: key === undefined ? {} : { Authorization: `Bearer ${key}` },
  body: lines.map((line) => `${JSON.stringify(line)}\n`).join(''),
});
const outcomes = (await bulk.text()).trim().split('\n').map((line) => JSON.parse(line) as components['schemas']['BulkOutcome']);
const outcome = (one: components['schemas']['BulkOutcome']) => ('error' in one ? [one.line, one.error] : [one.line, one.changed]);

const stranger = createClient<paths>({ baseUrl: url });
const asked = await stranger.GET('/likes/{item}', { params: { path: { item: 'post-1/ü' } } });

console.log(JSON.stringify({
  likes: [liked.changed, liked.total, again.changed, again.total, bob.changed, unliked.liked, unliked.total],
  total: [total.item, total.total, total.exact],
  feed: feed.items.map((one) => [one.item, one.total, one.liked]),
  configured: [configured.workshop, configured.capacity, configured.remaining, configured.waitlist?.policy],
  held: [held.response.status, held.data?.status, held.data?.state, held.data?.reserved, typeof held.data?.expiresAt],
  replayed: [replayed.status, replayed.replayed, replayed.expiresAt === held.data?.expiresAt],
  refused: [full.response.status, refused.status, refused.reason],
  mistaken: [reused.response.status, mistaken.error, mistaken.field, told(mistaken)],
  waiting: [waiting.response.status, waiting.data?.status, waiting.data?.position],
  confirmed: [confirmed.requestId, confirmed.seats, confirmed.state],
  late: [late.response.status, late.error.error, told(late.error)],
  shown: [shown.holder, shown.state, shown.history.map((event) => event.event)],
  list: list.reservations.map((one) => [one.requestId, one.state, one.holder ?? null]),
  inState: inState.reservations.map((one) => one.requestId),
  bulk: outcomes.map(outcome),
  room: [joined.online, sent.offset, thrown.offset, room.members?.map((member) => [member.user, member.meta])],
  stranger: [asked.response.status, asked.error === undefined ? null : told(asked.error)],
}));
