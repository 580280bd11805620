import { describe, expect, it } from 'bun:test';
import { openMemory } from '../../../src/demo/studio/browser-memory.ts';
import { openPage } from './page.ts';

describe('what the browser remembers', () => {
  it('is kept for the next visit', () => {
    const { storage } = openPage();
    openMemory({ localStorage: storage }).setItem('key', 'value');
    expect(openMemory({ localStorage: storage }).getItem('key')).toBe('value');
  });

  it('is kept for this visit where a person allows no more', () => {
    const memory = openMemory({
      get localStorage(): Storage {
        throw new DOMException('not allowed', 'SecurityError');
      },
    });
    expect(memory.getItem('key')).toBeNull();
    memory.setItem('key', 'value');
    expect(memory.getItem('key')).toBe('value');
  });
});
