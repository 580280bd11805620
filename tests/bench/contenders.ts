/** All contenders, in the order of the table. */

import type { Contender } from './contender.ts';
import { caddy } from './contenders/caddy.ts';
import { gateway } from './contenders/gateway.ts';
import { haproxy } from './contenders/haproxy.ts';
import { nginx } from './contenders/nginx.ts';
import { elysia, express, fastify, floor, honoOnBun, honoOnNode } from './contenders/scripts.ts';

export const CONTENDERS: readonly Contender[] = [
  gateway,
  floor,
  elysia,
  honoOnBun,
  honoOnNode,
  fastify,
  express,
  caddy,
  haproxy,
  nginx,
];
