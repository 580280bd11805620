/** Sends one recording at a time: shows how far it is, can be stopped, and says what went wrong. */

import type { UploadProgress } from '../../client/watched-request.ts';
import type { Message } from './notice.ts';
import { part } from './parts.ts';
import type { Text } from './text.ts';

export interface RecordingUpload {
  /** Does nothing while another one is sent. */
  send(file: File): void;
  /** Stops sending, and forgets the file. */
  leave(): void;
}

export interface RecordingUploadOptions {
  readonly text: Text;
  readonly send: (
    body: FormData,
    options: { readonly signal: AbortSignal; readonly onProgress: (progress: UploadProgress) => void },
  ) => Promise<void>;
  /** Undefined if there is nothing to say here. */
  readonly describe: (error: unknown) => Message | undefined;
  /** Called when a recording has arrived, or may have. */
  readonly onEnd: () => void;
}

export function createRecordingUpload(
  root: HTMLElement,
  { text, send, describe, onEnd }: RecordingUploadOptions,
): RecordingUpload {
  const [choose, again, stop] = [part(root, 'choose'), part(root, 'send-again'), part(root, 'stop')];
  const input = part<HTMLInputElement>(root, 'file');
  const bar = part<HTMLProgressElement>(root, 'bar');
  const sending = part(root, 'sending');
  let abort: AbortController | undefined;
  /** What can be sent again. */
  let failed: File | undefined;

  function say({ said = '', advice, values }: Partial<Message>, state: 'fine' | 'failed' = 'fine'): void {
    part(root, 'said').textContent = said;
    text.write(part(root, 'advice'), advice, values);
    root.dataset['outcome'] = state;
  }

  function showSending(isSending: boolean): void {
    const hadFocus = [again, stop].some((button) => button === root.ownerDocument.activeElement);
    sending.hidden = !isSending;
    again.hidden = isSending || !failed;
    // `disabled` would take the keyboard focus from the button.
    choose.setAttribute('aria-disabled', String(isSending));
    if (hadFocus) [stop, again, choose].find((button) => button.checkVisibility())?.focus();
  }

  function showProgress(name: string, { sentBytes, totalBytes }: UploadProgress): void {
    bar.max = totalBytes;
    bar.value = sentBytes;
    text.write(part(root, 'sent'), 'sentOf', { sent: sentBytes, total: totalBytes });
    if (sentBytes === totalBytes) say({ advice: 'listening', values: { name } });
  }

  function showOutcome(file: File, isStopped: boolean, error: unknown): void {
    const values = { name: file.name };
    if (error === undefined) say({ advice: 'recordingAdded', values });
    else if (isStopped) say({ advice: 'sendingStopped', values });
    else showFailure(file, describe(error));
  }

  function showFailure(file: File, message: Message | undefined): void {
    if (!message) return;
    if (message.advice !== 'otherFile') failed = file;
    say(message, 'failed');
  }

  async function sendFile(file: File): Promise<void> {
    if (abort) return;
    const own = new AbortController();
    const { signal } = own;
    abort = own;
    failed = undefined;
    showProgress(file.name, { sentBytes: 0, totalBytes: file.size });
    say({ advice: 'sending', values: { name: file.name } });
    showSending(true);
    const body = new FormData();
    body.set('file', file);
    const onProgress = (progress: UploadProgress) => showProgress(file.name, progress);
    const error = await send(body, { signal, onProgress }).catch((reason: unknown) => reason);
    // Another person may have signed in.
    if (abort !== own) return;
    abort = undefined;
    showOutcome(file, signal.aborted, error);
    showSending(false);
    onEnd();
  }

  const sendChosen = () => {
    const [file] = input.files ?? [];
    // So that choosing the same file again is a change.
    input.value = '';
    if (file) void sendFile(file);
  };
  choose.addEventListener('click', () => {
    if (!abort) input.click();
  });
  input.addEventListener('change', sendChosen);
  stop.addEventListener('click', () => abort?.abort());
  again.addEventListener('click', () => failed && void sendFile(failed));

  return {
    send: (file) => void sendFile(file),
    leave() {
      const left = abort;
      abort = undefined;
      failed = undefined;
      left?.abort();
      say({});
      showSending(false);
    },
  };
}
