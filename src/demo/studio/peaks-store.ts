/** Keeps the outlines of tracks in IndexedDB, so that a track is fetched for its waveform once in this browser. */

import type { Peaks } from './peaks.ts';

export interface PeaksStore {
  read(trackId: string): Promise<Peaks | undefined>;
  write(trackId: string, peaks: Peaks): Promise<void>;
  clear(): Promise<void>;
}

const DATABASE = 'studio';
const PEAKS = 'peaks';
/** A byte is enough for a height in pixels. */
const LOUDEST = 255;

/** Where the browser allows no database, such as in some private windows, nothing is kept. */
export function openPeaksStore(databases: IDBFactory): PeaksStore {
  const opened = open(databases);
  opened.catch(() => {});

  async function use<T>(mode: IDBTransactionMode, action: (store: IDBObjectStore) => IDBRequest<T>) {
    try {
      const database = await opened;
      return await result(action(database.transaction(PEAKS, mode).objectStore(PEAKS)));
    } catch {
      return undefined;
    }
  }

  return {
    async read(trackId) {
      const bytes: unknown = await use<unknown>('readonly', (store) => store.get(trackId));
      return bytes instanceof Uint8Array ? Array.from(bytes, (byte) => byte / LOUDEST) : undefined;
    },
    async write(trackId, peaks) {
      const bytes = Uint8Array.from(peaks, (peak) => Math.round(peak * LOUDEST));
      await use('readwrite', (store) => store.put(bytes, trackId));
    },
    async clear() {
      await use('readwrite', (store) => store.clear());
    },
  };
}

async function open(databases: IDBFactory): Promise<IDBDatabase> {
  const request = databases.open(DATABASE, 1);
  request.addEventListener('upgradeneeded', () => request.result.createObjectStore(PEAKS));
  return result(request);
}

function result<T>(request: IDBRequest<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    request.addEventListener('success', () => resolve(request.result));
    request.addEventListener('error', () => reject(request.error));
  });
}
