/** The recordings from which the next tracks can start: sends, lists and deletes them, and chooses one. */

import type { GatewayClient } from '../../client/gateway-client.ts';
import { takeDroppedFile } from './dropped-file.ts';
import { createRecordingList } from './recording-list.ts';
import { createRecordingUpload, type RecordingUploadOptions } from './recording-upload.ts';
import type { Recording } from './records.ts';

export const RECORDINGS_PATH = '/v1/music/references';

export interface Recordings {
  /** Newest first. Undefined if the upstream has no such thing. */
  show(recordings: readonly Recording[] | undefined): void;
  /** Resolves to whether the upstream has the choice that the page shows. If not, the failure is shown. */
  settled(): Promise<boolean>;
  /** Stops sending, and shows nothing, because another person may sign in next. */
  leave(): void;
}

export interface RecordingsOptions extends Pick<RecordingUploadOptions, 'text' | 'describe'> {
  readonly client: Pick<GatewayClient, 'upstream'>;
  /** Must not reject. */
  readonly attempt: (action: () => Promise<void>) => Promise<void>;
  /** Whether a recording of this name is to be deleted. */
  readonly isMeant: (name: string) => Promise<boolean>;
  /** Called when the recordings have to be loaded again. */
  readonly onChange: () => void;
}

export function createRecordings(
  root: HTMLElement,
  { text, client, describe, attempt, isMeant, onChange }: RecordingsOptions,
): Recordings {
  const pathOf = (id: string) => `${RECORDINGS_PATH}/${encodeURIComponent(id)}` as const;
  /** Whether the last change of the choice has arrived. They are sent one after the other: arrow keys make them quickly. */
  let choosing = Promise.resolve(true);
  let waiting = 0;
  let loaded: readonly Recording[] = [];

  const upload = createRecordingUpload(root, {
    text,
    describe,
    async send(body, options) {
      await client.upstream(RECORDINGS_PATH, { method: 'POST', body, ...options });
    },
    onEnd: onChange,
  });
  const list = createRecordingList(root, {
    text,
    onChoose(id, isChosen) {
      waiting += 1;
      choosing = choosing.then(async () => {
        let hasArrived = false;
        await attempt(async () => {
          await client.upstream(pathOf(id), {
            method: 'PATCH',
            headers: { 'content-type': 'application/json' },
            body: JSON.stringify({ is_chosen: isChosen }),
          });
          hasArrived = true;
        });
        waiting -= 1;
        if (waiting > 0) return hasArrived;
        if (!hasArrived) list.show(loaded);
        onChange();
        return hasArrived;
      });
    },
    onDelete: ({ id, name }) =>
      attempt(async () => {
        if (!(await isMeant(name))) return;
        await client.upstream(pathOf(id), { method: 'DELETE' });
        onChange();
      }),
  });
  takeDroppedFile(root.ownerDocument, {
    isWanted: () => !root.hidden,
    onOver(isOver) {
      root.dataset['state'] = isOver ? 'over' : 'calm';
    },
    onFile(file) {
      // What is folded away would not say what becomes of it.
      root.closest('details')?.setAttribute('open', '');
      upload.send(file);
    },
  });

  return {
    show(recordings) {
      root.hidden = recordings === undefined;
      // What is loaded meanwhile may be older than the choice.
      if (waiting > 0) return;
      // What is ordered from now on starts from what the page shows.
      choosing = Promise.resolve(true);
      loaded = recordings ?? [];
      list.show(loaded);
    },
    settled: () => choosing,
    leave() {
      root.hidden = true;
      upload.leave();
      loaded = [];
      list.show(loaded);
    },
  };
}
