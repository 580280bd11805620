/** Opens `localStorage`, or a storage that lasts only for this visit if the browser blocks `localStorage`. */

export type Memory = Pick<Storage, 'getItem' | 'setItem' | 'removeItem'>;

export function openMemory(window: Pick<Window, 'localStorage'>): Memory {
  try {
    return window.localStorage;
  } catch {
    const values = new Map<string, string>();
    return {
      getItem: (key) => values.get(key) ?? null,
      setItem: (key, value) => values.set(key, value),
      removeItem: (key) => values.delete(key),
    };
  }
}
