/** Opens a storage of the browser, or one that lasts only for this visit if the browser blocks that. */

export type Memory = Pick<Storage, 'getItem' | 'setItem' | 'removeItem'>;

export function openMemory(storage: () => Storage): Memory {
  try {
    return storage();
  } catch {
    const values = new Map<string, string>();
    return {
      getItem: (key) => values.get(key) ?? null,
      setItem: (key, value) => values.set(key, value),
      removeItem: (key) => values.delete(key),
    };
  }
}
