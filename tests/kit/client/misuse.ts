// What must not compile: each line below is wrong, and one that the types let pass is an error of the compiler's.

import createClient from 'openapi-fetch';

import type { components, paths } from './headcount.js';

export async function never(): Promise<void> {
  const headcount = createClient<paths>();
  const at = { path: { workshop: 'pottery' } };
  type Problem = components['schemas']['Problem'];

  // @ts-expect-error: there is no such path
  await headcount.PUT('/like/{item}/users/{user}', { params: { path: { item: 'a', user: 'b' } } });
  // @ts-expect-error: the user is missing
  await headcount.PUT('/likes/{item}/users/{user}', { params: { path: { item: 'a' } } });
  // @ts-expect-error: a misspelt field in a body
  await headcount.POST('/workshops/{workshop}/reservations', { params: at, body: { requestID: 'a-1', seats: 1 } });
  // @ts-expect-error: seats are a number
  await headcount.POST('/workshops/{workshop}/reservations', { params: at, body: { requestId: 'a-1', seats: '1' } });
  // @ts-expect-error: a body is needed
  await headcount.POST('/workshops/{workshop}/reservations', { params: at });
  // @ts-expect-error: no such policy
  await headcount.PUT('/workshops/{workshop}', { params: at, body: { capacity: 1, waitlist: { policy: 'fair', offerTtlMs: 1, maxLength: 1 } } });
  // @ts-expect-error: no such state
  await headcount.GET('/workshops/{workshop}/reservations', { params: { ...at, query: { state: 'paid' } } });

  // @ts-expect-error: a message says something
  await headcount.POST('/rooms/{room}/send', { params: { path: { room: 'lobby' } }, body: { user: 'ada' } });

  const { data, error } = await headcount.GET('/workshops/{workshop}/status', { params: at });
  // @ts-expect-error: a misspelt field in an answer
  data?.reservd;
  // @ts-expect-error: a word that no problem says
  if (error?.error === 'invalid_seats') return;
  const told = {} as components['schemas']['RoomEvent'];
  // @ts-expect-error: what kind of event it is has to be asked first
  told.members;
  if (told.type === 'presence') told.members;
  // @ts-expect-error: a problem has a word
  const _problem: Problem = { type: '', title: '', status: 400, detail: '' };
}
