/** What the browser keeps for the next visit, or for this one only where a person does not allow more. */

export type Memory = Pick<Storage, 'getItem' | 'setItem'>;

export function openMemory(window: Pick<Window, 'localStorage'>): Memory {
  try {
    return window.localStorage;
  } catch {
    const values = new Map<string, string>();
    return { getItem: (key) => values.get(key) ?? null, setItem: (key, value) => values.set(key, value) };
  }
}
