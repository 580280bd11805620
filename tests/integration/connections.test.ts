import { describe, expect, it } from 'bun:test';
import { startRawUpstream } from '../support/raw-upstream.ts';
import { ACCESS_ONLY, envelopeMessage, startWorld } from '../support/world.ts';

const GENERATE = { model: 'm', prompt: 'p', music_length_ms: 3000 };

describe('connections to the upstream', () => {
  it('serve one POST each, because one that the upstream has just closed would fail it', async () => {
    await using upstream = await startRawUpstream((socket) => {
      socket.write('HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\naudio');
    });
    await using world = startWorld({ UPSTREAM_URL: upstream.url });
    for (let times = 0; times < 3; times++) {
      const response = await world.request('/api/music/generate', { cookie: ACCESS_ONLY, json: GENERATE });
      expect(await response.text()).toBe('audio');
    }
    expect(upstream.connections).toBe(3);
  });

  it('that are reset before the headers give 502 and no second POST', async () => {
    await using upstream = await startRawUpstream((socket) => socket.resetAndDestroy());
    await using world = startWorld({ UPSTREAM_URL: upstream.url });
    const response = await world.request('/api/music/generate', { cookie: ACCESS_ONLY, json: GENERATE });
    await envelopeMessage(response, 502);
    expect(upstream.connections).toBe(1);
  });

  it('give 502 when the status is none of HTTP', async () => {
    await using upstream = await startRawUpstream((socket) => {
      socket.end('HTTP/1.1 600 Whatever\r\nContent-Length: 0\r\nConnection: close\r\n\r\n');
    });
    await using world = startWorld({ UPSTREAM_URL: upstream.url });
    for (const path of ['/api/music/models', '/api/upstream/v1/x']) {
      expect(await envelopeMessage(await world.request(path, { cookie: ACCESS_ONLY }), 502)).toContain(
        'invalid',
      );
    }
  });
});
