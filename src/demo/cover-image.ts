/** Draws the cover of a track as a PNG: colours from one number, and the bars of a waveform from another. */

import { deflateSync } from 'node:zlib';

const SIZE = 256;
const BARS = 11;
/** In shares of the side, as all lengths here. */
const BAR_STEP = 0.068;
const BAR_RADIUS = 0.019;
const PNG_SIGNATURE = Buffer.from('\x89PNG\r\n\x1a\n', 'latin1');
/** Eight bits for each of red, green and blue. */
const PNG_FORMAT = [8, 2, 0, 0, 0];
/** Each byte of a row is the difference to the one above it, which is small in a gradient. */
const PNG_FILTER_UP = 2;

type Colour = readonly [red: number, green: number, blue: number];

export function coverImage(look: number, sound: number): Buffer<ArrayBuffer> {
  const colourAt = createPainting(look, sound);
  const rows = Buffer.alloc(SIZE * (1 + SIZE * 3));
  const above = new Uint8Array(SIZE * 3);
  let at = 0;
  for (let y = 0; y < SIZE; y++) {
    rows[at++] = PNG_FILTER_UP;
    for (let x = 0; x < SIZE; x++) {
      const colour = colourAt((x + 0.5) / SIZE, (y + 0.5) / SIZE);
      for (let channel = 0; channel < 3; channel++) {
        const byte = Math.round((colour[channel] ?? 0) * 255);
        rows[at++] = byte - (above[x * 3 + channel] ?? 0);
        above[x * 3 + channel] = byte;
      }
    }
  }
  const header = Buffer.alloc(8);
  header.writeUInt32BE(SIZE, 0);
  header.writeUInt32BE(SIZE, 4);
  return Buffer.concat([
    PNG_SIGNATURE,
    chunk('IHDR', Buffer.from([...header, ...PNG_FORMAT])),
    chunk('IDAT', deflateSync(rows)),
    chunk('IEND', Buffer.alloc(0)),
  ]);
}

function createPainting(look: number, sound: number): (x: number, y: number) => Colour {
  const shade = createChance(look);
  const hue = shade() * 360;
  const [from, to, sun] = [colour(hue, 0.42), colour(hue + 50 + shade() * 70, 0.3), colour(hue + 25, 0.62)];
  const [sunX, sunY, sunRadius] = [0.15 + shade() * 0.7, 0.1 + shade() * 0.35, 0.18 + shade() * 0.14];
  const strike = createChance(sound);
  const heights = Array.from({ length: BARS }, () => 0.03 + strike() ** 1.5 * 0.27);

  return (x, y) => {
    const ground = mix(from, to, (x + 2 * y) / 3);
    const lit = mix(ground, sun, edge(Math.hypot(x - sunX, y - sunY) - sunRadius) * 0.75);
    const bar = Math.min(Math.max(Math.round((x - 0.5) / BAR_STEP) + (BARS - 1) / 2, 0), BARS - 1);
    const beside = x - 0.5 - (bar - (BARS - 1) / 2) * BAR_STEP;
    const beyond = Math.max(Math.abs(y - 0.56) - (heights[bar] ?? 0), 0);
    return mix(lit, [1, 1, 1], edge(Math.hypot(beside, beyond) - BAR_RADIUS) * 0.94);
  };
}

/** Numbers from 0 to 1 that the seed decides. */
function createChance(seed: number): () => number {
  let state = seed;
  return () => {
    state = Bun.hash.xxHash32(String(state));
    return state / 2 ** 32;
  };
}

/** @see https://www.w3.org/TR/css-color-4/#hsl-to-rgb */
function colour(hue: number, lightness: number): Colour {
  const reach = 0.6 * Math.min(lightness, 1 - lightness);
  const channel = (offset: number) => {
    const sector = (offset + hue / 30) % 12;
    return lightness - reach * Math.max(-1, Math.min(sector - 3, 9 - sector, 1));
  };
  return [channel(0), channel(8), channel(4)];
}

function mix(from: Colour, to: Colour, share: number): Colour {
  const [red, green, blue] = from;
  return [red + (to[0] - red) * share, green + (to[1] - green) * share, blue + (to[2] - blue) * share];
}

/** How much of a pixel a shape covers whose edge is that far away; inside, the distance is negative. */
function edge(distance: number): number {
  return Math.min(Math.max(0.5 - distance * SIZE, 0), 1);
}

/** @see https://www.w3.org/TR/png-3/#5Chunk-layout */
function chunk(type: string, data: Buffer): Buffer {
  const body = Buffer.concat([Buffer.from(type, 'latin1'), data]);
  const framed = Buffer.alloc(body.length + 8);
  framed.writeUInt32BE(data.length, 0);
  body.copy(framed, 4);
  framed.writeUInt32BE(Bun.hash.crc32(body), body.length + 4);
  return framed;
}
