/** Shows the recordings as choices, of which one is that no track starts from a recording. */

import { fromTemplate, part } from './parts.ts';
import type { Recording } from './records.ts';
import { runOnce } from './run-once.ts';
import type { Text } from './text.ts';
import { nameByTitle } from './track-buttons.ts';

export interface RecordingList {
  show(recordings: readonly Recording[]): void;
}

export interface RecordingListOptions {
  readonly text: Text;
  readonly onChoose: (id: string, isChosen: boolean) => void;
  /** Must not reject. */
  readonly onDelete: (recording: Recording) => Promise<void>;
}

export function createRecordingList(
  root: HTMLElement,
  { text, onChoose, onDelete }: RecordingListOptions,
): RecordingList {
  const { ownerDocument: document } = root;
  const list = part(root, 'choices');
  const none = createChoice('', 'none');
  for (const name of ['heard', 'delete']) part(none, name).remove();
  const items = new Map<string, HTMLElement>();
  let chosen = '';

  const radioOf = (item: HTMLElement) => part<HTMLInputElement>(item, 'choice');

  function createChoice(id: string, name: string): HTMLElement {
    const item = fromTemplate(document, 'recording-item');
    text.fill(item);
    part<HTMLInputElement>(item, 'choice').value = id;
    item.id = `recording-${name}`;
    item.addEventListener('change', () => {
      const [before, isChosen] = [chosen, id !== ''];
      chosen = id;
      if (isChosen || before !== '') onChoose(isChosen ? id : before, isChosen);
    });
    return item;
  }

  function createItem(recording: Recording): HTMLElement {
    const { id, name, key, tempo, seconds } = recording;
    const item = createChoice(id, id);
    text.write(part(item, 'name'), undefined);
    part(item, 'name').textContent = name;
    text.write(part(item, 'key'), key?.mode ?? 'noKey', { tonic: key?.tonic ?? '' });
    text.write(part(item, 'tempo'), tempo === undefined ? 'noTempo' : 'tempo', { tempo: tempo ?? 0 });
    text.write(part(item, 'duration'), 'trackLength', { seconds });
    for (const each of ['name', 'heard']) part(item, each).id = `${item.id}-${each}`;
    radioOf(item).setAttribute('aria-describedby', `${item.id}-heard`);
    const remove = part(item, 'delete');
    nameByTitle(part(item, 'name'), [remove]);
    remove.addEventListener('click', () => void runOnce(remove, () => onDelete(recording)));
    return item;
  }

  /** An element that is replaced by itself loses the focus, too. */
  function replaceItems(shown: readonly HTMLElement[]): void {
    const { activeElement: focused } = document;
    const hadFocus = list.contains(focused);
    list.replaceChildren(...shown);
    if (!hadFocus) return;
    const isThere = focused instanceof HTMLElement && list.contains(focused);
    (isThere ? focused : part(root, 'choose')).focus();
  }

  function update(recordings: readonly Recording[]): void {
    const before = new Map(items);
    items.clear();
    for (const recording of recordings)
      items.set(recording.id, before.get(recording.id) ?? createItem(recording));
    replaceItems(items.size ? [none, ...items.values()] : []);
  }

  return {
    show(recordings) {
      const ids = recordings.map(({ id }) => id);
      // Moving an element would take the keyboard focus from it.
      if (ids.join() !== [...items.keys()].join()) update(recordings);
      chosen = recordings.find(({ isChosen }) => isChosen)?.id ?? '';
      radioOf(items.get(chosen) ?? none).checked = true;
    },
  };
}
