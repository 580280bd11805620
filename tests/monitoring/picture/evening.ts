/** Three minutes of a small studio's evening, for the picture: people who come and go, an upstream and a Redis that fail. */

import type { WatchedGateways } from '../scraped-gateways.ts';
import { asking, cookies, everythingOnce, GENERATION, grant, SIGNED_IN } from '../traffic.ts';

export const EVENING_SECONDS = 180;
const PEOPLE = 30;
const UPSTREAM_FAILS = { from: 90, to: 115 };
const REDIS_IS_AWAY = { from: 40, to: 60 };
/** Between two rounds of all that can go wrong: a little of it is always there. */
const QUIET_MS = 6000;

export async function passEvening(gateways: WatchedGateways): Promise<void> {
  const startedAt = performance.now();
  const seconds = () => (performance.now() - startedAt) / 1000;
  const goesOn = () => seconds() < EVENING_SECONDS;
  const isWithin = ({ from, to }: { from: number; to: number }) => seconds() > from && seconds() < to;
  takeTime(gateways, () => isWithin(UPSTREAM_FAILS));
  const people = Array.from({ length: PEOPLE }, async (_, index) => {
    while (goesOn()) {
      // They come one after another, and some leave again.
      const isHere = index < PEOPLE * (0.3 + 0.7 * Math.sin((2 * seconds()) / EVENING_SECONDS));
      if (isHere) await doSomething(gateways);
      await Bun.sleep(200 + Math.random() * 1600);
    }
  });
  const mishaps = async () => {
    while (goesOn()) {
      await everythingOnce(gateways);
      await Bun.sleep(QUIET_MS);
    }
  };
  const redis = async () => {
    await Bun.sleep(REDIS_IS_AWAY.from * 1000);
    await gateways.redis.stop();
    await Bun.sleep((REDIS_IS_AWAY.to - REDIS_IS_AWAY.from) * 1000);
    await gateways.redis.start();
  };
  await Promise.all([...people, mishaps(), redis()]);
}

/** A real upstream has to think, and a failing one more so. */
function takeTime({ upstream }: WatchedGateways, isFailing: () => boolean): void {
  const answer = async (content: unknown, thinkMs: number) => {
    await Bun.sleep(thinkMs * (0.5 + Math.random()));
    if (!isFailing()) return Response.json(content);
    await Bun.sleep(250);
    return new Response('', { status: 503 });
  };
  upstream.on('GET /v1/models', () => answer({ data: [] }, 40));
  upstream.on('GET /v1/library', () => answer({ data: [] }, 80));
  const compose = Buffer.alloc(400_000, 'music');
  upstream.on('POST /v1/music', async () => {
    await Bun.sleep(1500 + Math.random() * 1500);
    return new Response(compose, { headers: { 'content-type': 'audio/mpeg' } });
  });
}

let sessions = 0;

async function doSomething({ main }: WatchedGateways): Promise<void> {
  const ask = asking(main.url);
  const whole = async (...request: Parameters<typeof ask>) => void (await (await ask(...request)).bytes());
  const chance = Math.random();
  if (chance < 0.08) await whole('/api/auth/idp', { json: grant('good') });
  else if (chance < 0.2) await whole('/api/music/generate', { cookie: SIGNED_IN, json: GENERATION });
  else if (chance < 0.4) await whole('/api/upstream/v1/library/track', { cookie: SIGNED_IN });
  else if (chance < 0.55) {
    const cookie = cookies('expired', `refresh-evening-${++sessions}`);
    await Promise.all([whole('/api/auth/session', { cookie }), whole('/api/auth/session', { cookie })]);
  } else {
    const paths = ['/api/auth/session', '/api/music/models', '/api/upstream/v1/library'];
    await Promise.all(paths.map((path) => whole(path, { cookie: SIGNED_IN })));
  }
}
