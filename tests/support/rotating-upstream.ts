/** An upstream that rotates refresh tokens: `refresh-1` gives `access-2` and `refresh-2`, `ben-1` gives `access-ben-2`. */

import type { Received, ScriptedUpstream } from './scripted-upstream.ts';
import { LOGOUT, ME, REFRESH, reply } from './session-calls.ts';

export class Rotation {
  /** The access tokens that the upstream accepts. */
  readonly live = new Set<string>();
  readonly #spent = new Set<string>();

  constructor(upstream: ScriptedUpstream) {
    upstream.on(REFRESH, (received) => this.#refresh(received)).on(LOGOUT, reply(204));
    upstream.on(ME, ({ headers }) => {
      const token = headers.get('authorization')?.slice('Bearer '.length) ?? '';
      return this.live.has(token) ? Response.json({ token }) : new Response('', { status: 401 });
    });
  }

  #refresh({ body }: Received): Response {
    const spent: string = JSON.parse(body).refresh_token;
    if (this.#spent.has(spent)) return Response.json({ error: { message: 'reused' } }, { status: 401 });
    this.#spent.add(spent);
    const [, name = '', generation = ''] = /^(.*-)(\d+)$/.exec(spent) ?? [];
    const accessName = name === 'refresh-' ? 'access-' : `access-${name}`;
    this.live.delete(accessName + generation);
    const next = Number(generation) + 1;
    this.live.add(accessName + next);
    return Response.json({ access_token: accessName + next, refresh_token: name + next, expires_in: 100 });
  }
}
