/** The deletion of a track, which can be undone for a while. */

import { expect, it } from 'bun:test';
import { createDeletions } from '../../../src/demo/studio/deletions.ts';
import { part } from '../../../src/demo/studio/parts.ts';
import { openPage } from './open-page.ts';

it.each([
  ['is deleted when the page is left', 'leave', ['7']],
  ['is deleted only once', 'leave leave settle', ['7']],
  ['stays if that was undone', 'undo leave', []],
  ['stays when the page is left without a session', 'suspend leave', []],
  ['is deleted after the next sign-in', 'suspend leave settle', ['7']],
  ['is deleted by the next page if the request was lost', 'leave reload settle', ['7', '7']],
] as const)('a track that is to be deleted %s: %s', (_, steps, expected) => {
  const { window, document, text, storage: tab } = openPage();
  const root = part(document, 'deleted');
  const deleted: string[] = [];
  const create = () =>
    createDeletions(root, {
      ...{ text, tab, onChange() {}, focusOn() {} },
      remove(id) {
        deleted.push(id);
        return new Promise(() => {});
      },
    });
  let deletions = create();
  void deletions.begin({ id: '7', title: 'Rain' });
  const actions: Record<string, () => unknown> = {
    settle: () => deletions.settle(),
    suspend: () => deletions.suspend(),
    reload() {
      deletions = create();
    },
    leave: () => window.dispatchEvent(new window.Event('pagehide')),
    undo: () => part(root, 'undo').click(),
  };
  for (const step of steps.split(' ')) actions[step]?.();
  deletions.abandon();
  expect(deleted).toEqual([...expected]);
});

it('a track whose deletion meets the end of the session is deleted after the next sign-in', async () => {
  const { document, text, storage: tab } = openPage();
  const deleted: string[] = [];
  const deletions = createDeletions(part(document, 'deleted'), {
    ...{ text, tab, onChange() {}, focusOn() {} },
    remove: async (id) => deleted.push(id) > 1,
  });
  void deletions.begin({ id: '7', title: 'Rain' });
  for (const _ of ['ended', 'signed in', 'later']) await deletions.settle();
  expect(deleted).toEqual(['7', '7']);
});
