/** The upstream's sessions: an access token is valid for some calls, a refresh token for one refresh. */

export class RotatingSessions {
  refreshes = 0;
  /** Refresh tokens that arrived a second time: a real provider would end the session. */
  reused = 0;
  readonly #usesPerToken: number;
  readonly #users = new Map<string, { generation: number; uses: number }>();

  /** @param usesPerToken 0: an access token never expires */
  constructor(usesPerToken: number) {
    this.#usesPerToken = usesPerToken || Number.POSITIVE_INFINITY;
  }

  /** The user of the access token; undefined when it is invalid or expired. */
  userOf(authorization: string | null): string | undefined {
    const [, user, generation] = /^Bearer access-(\w+)-(\d+)$/.exec(authorization ?? '') ?? [];
    if (user === undefined) return undefined;
    const state = this.#stateOf(user);
    if (Number(generation) !== state.generation || state.uses >= this.#usesPerToken) return undefined;
    state.uses++;
    return user;
  }

  refresh(refreshToken: string): Response {
    const [, user, generation] = /^refresh-(\w+)-(\d+)$/.exec(refreshToken) ?? [];
    const state = user === undefined ? undefined : this.#stateOf(user);
    const isCurrent = state?.generation === Number(generation);
    if (state && !isCurrent) this.reused++;
    if (!state || !isCurrent) return Response.json({ error: { message: 'refused' } }, { status: 401 });
    this.refreshes++;
    state.generation++;
    state.uses = 0;
    return Response.json({
      access_token: `access-${user}-${state.generation}`,
      refresh_token: `refresh-${user}-${state.generation}`,
      expires_in: 900,
    });
  }

  #stateOf(user: string) {
    const state = this.#users.get(user) ?? { generation: 0, uses: 0 };
    this.#users.set(user, state);
    return state;
  }
}

/** The cookies of a user who has just signed in. */
export function firstCookies(user: string): string {
  return cookies(`access-${user}-0`, `refresh-${user}-0`);
}

export function cookies(accessToken: string, refreshToken: string): string {
  return `svc_music_access=${accessToken}; svc_music_refresh=${refreshToken}`;
}
