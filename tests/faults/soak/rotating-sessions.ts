/** The upstream's sessions: an access token is good for some calls, a refresh token for one refresh. */

interface UserState {
  generation: number;
  uses: number;
}

export class RotatingSessions {
  refreshes = 0;
  /** Refresh tokens that came a second time: a real provider would end the session. */
  reused = 0;
  readonly #usesPerToken: number;
  readonly #users = new Map<string, UserState>();

  /** @param usesPerToken 0: an access token is never used up */
  constructor(usesPerToken: number) {
    this.#usesPerToken = usesPerToken;
  }

  /** The user of the access token; undefined when it is not, or no longer, valid. */
  userOf(authorization: string | null): string | undefined {
    const { user, generation } = parse(authorization, /^Bearer access-(\w+)-(\d+)$/);
    if (user === undefined) return undefined;
    const state = this.#stateOf(user);
    const isSpent = this.#usesPerToken > 0 && state.uses >= this.#usesPerToken;
    if (generation !== state.generation || isSpent) return undefined;
    state.uses++;
    return user;
  }

  refresh(refreshToken: string): Response {
    const { user, generation } = parse(refreshToken, /^refresh-(\w+)-(\d+)$/);
    if (user === undefined) return refused();
    const state = this.#stateOf(user);
    if (generation !== state.generation) {
      this.reused++;
      return refused();
    }
    this.refreshes++;
    state.generation++;
    state.uses = 0;
    return Response.json({
      access_token: `access-${user}-${state.generation}`,
      refresh_token: `refresh-${user}-${state.generation}`,
      expires_in: 900,
    });
  }

  #stateOf(user: string): UserState {
    const known = this.#users.get(user);
    if (known) return known;
    const state = { generation: 0, uses: 0 };
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

function parse(text: string | null, pattern: RegExp): { user?: string | undefined; generation?: number } {
  const [, user, generation] = pattern.exec(text ?? '') ?? [];
  return { user, generation: Number(generation) };
}

function refused(): Response {
  return Response.json({ error: { message: 'refused' } }, { status: 401 });
}
