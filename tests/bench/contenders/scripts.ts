/** The contenders that are a program of ours in JavaScript: each gets the mapping by its environment. */

import { type Contender, script } from '../contender.ts';
import { mappingEnvironment } from '../mapping.ts';

interface ScriptContender extends Omit<Contender, 'launch' | 'needs'> {
  readonly runtime: 'bun' | 'node';
  readonly program: string;
}

function contender({ runtime, program, ...rest }: ScriptContender): Contender {
  return {
    ...rest,
    needs: runtime === 'node' ? ['node'] : [],
    launch: ({ port, upstreamPort }) => ({
      command: [runtime === 'node' ? 'node' : process.execPath, script(`contenders/${program}`)],
      env: {
        ...mappingEnvironment(upstreamPort),
        PORT: `${port}`,
        NODE_ENV: 'production',
        BUN_CONFIG_MAX_HTTP_REQUESTS: '20000',
      },
    }),
  };
}

export const floor = contender({
  id: 'floor',
  title: 'by hand: `Bun.serve` and `fetch`',
  parts: ['bun'],
  runtime: 'bun',
  program: 'floor-main.ts',
});
export const elysia = contender({
  id: 'elysia',
  title: 'Elysia alone',
  parts: ['bun', 'elysia', '@elysiajs/cors'],
  runtime: 'bun',
  program: 'elysia-main.ts',
});
export const honoOnBun = contender({
  id: 'hono-bun',
  title: 'Hono proxy helper, Bun',
  parts: ['bun', 'hono'],
  runtime: 'bun',
  program: 'hono-bun-main.mjs',
});
export const honoOnNode = contender({
  id: 'hono-node',
  title: 'Hono proxy helper, Node',
  parts: ['node', 'hono', '@hono/node-server'],
  runtime: 'node',
  program: 'hono-node-main.mjs',
});
export const fastify = contender({
  id: 'fastify',
  title: 'Fastify with @fastify/http-proxy, Node',
  parts: ['node', 'fastify', '@fastify/http-proxy'],
  runtime: 'node',
  program: 'fastify-main.mjs',
});
export const express = contender({
  id: 'express',
  title: 'Express with http-proxy-middleware, Node',
  parts: ['node', 'express', 'http-proxy-middleware'],
  runtime: 'node',
  program: 'express-main.mjs',
});
