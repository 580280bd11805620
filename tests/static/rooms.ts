/** Compares the drawing of the gateway's rooms in CONTRIBUTING.md with what they import. */

import { ROOT, readDocument, section } from '../support/documents.ts';

const HEADING = '## The way of a request';
/** Each row: the name of a room, and for each room whether it imports it. What follows is text. */
const ROW = /^(\S+) +([■●·]+)(?= |$)/gm;
const IMPORT = /(?:from |import |import\()'\.\.?\/(?:([a-z]+)\/)?[^'/]+\.ts'/g;

type Rooms = ReadonlyMap<string, ReadonlySet<string>>;

/** The rooms that each room imports: the folders below `src/gateway`, and the files that lie beside them. */
async function readRooms(): Promise<Rooms> {
  const rooms = new Map<string, Set<string>>();
  for await (const path of new Bun.Glob('**/*.ts').scan(`${ROOT}src/gateway`)) {
    const room = path.includes('/') ? path.slice(0, path.indexOf('/')) : 'gateway.ts';
    const imported = rooms.get(room) ?? new Set();
    rooms.set(room, imported);
    const text = await Bun.file(`${ROOT}src/gateway/${path}`).text();
    for (const [, name] of text.matchAll(IMPORT)) if (name && name !== room) imported.add(name);
  }
  return rooms;
}

/** Each room stands above those that it imports. */
function draw(rooms: Rooms): string[] {
  const left = new Map([...rooms].sort(([a], [b]) => (a < b ? -1 : 1)));
  const order: string[] = [];
  while (left.size) {
    const isImported = (room: string) => [...left.values()].some((imported) => imported.has(room));
    const top = [...left.keys()].find((room) => !isImported(room));
    if (!top) throw new Error(`imports go round between ${[...left.keys()].join(', ')}`);
    order.push(top);
    left.delete(top);
  }
  const mark = (room: string, other: string) =>
    room === other ? '■' : rooms.get(room)?.has(other) ? '●' : '·';
  const width = Math.max(...order.map(({ length }) => length));
  return order.map((room) => `${room.padEnd(width)} ${order.map((other) => mark(room, other)).join('')}`);
}

export async function roomProblems(): Promise<string[]> {
  const drawn = draw(await readRooms());
  const text = section(await readDocument('CONTRIBUTING.md'), HEADING);
  const shown = Array.from(text.matchAll(ROW), ([row]) => row);
  if (Bun.deepEquals(drawn, shown)) return [];
  return [`the rooms in CONTRIBUTING.md should be drawn so:\n${drawn.join('\n')}`];
}
