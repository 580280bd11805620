/** One track in the library, with its buttons. */

import type { DownloadProgress } from '../../client/download.ts';
import { coverPath } from './cover.ts';
import { fromTemplate, part } from './parts.ts';
import type { Creation } from './records.ts';
import { runOnce } from './run-once.ts';
import type { Text } from './text.ts';
import { addPlayButton, nameByTitle } from './track-buttons.ts';

export interface LibraryItem {
  readonly element: HTMLElement;
  update(creation: Creation): void;
  /** Shows whether the track is open in the player, and whether it plays. */
  mark(isOpen: boolean, isPlaying: boolean): void;
}

export interface LibraryItemOptions {
  readonly text: Text;
  readonly onPlay: (creation: Creation) => void;
  /** Called for the track that plays. */
  readonly onPause: () => void;
  /** Resolves when the change is done or its failure is shown. Must not reject. */
  readonly onSetVisibility: (creation: Creation, isPublic: boolean) => Promise<void>;
  /** Resolves when the file is there or its failure is shown. Must not reject. */
  readonly onDownload: (
    creation: Creation,
    onProgress: (progress: DownloadProgress) => void,
  ) => Promise<void>;
  /** As {@link onSetVisibility}: asks for the new name, or whether it is meant. */
  readonly onRename: (creation: Creation) => Promise<void>;
  readonly onDelete: (creation: Creation) => Promise<void>;
  /** Called when the person wants to order a track like this one. */
  readonly onAgain: (creation: Creation) => void;
  readonly shareUrl: (creation: Creation) => string;
  readonly copy: (text: string) => Promise<void>;
}

export function createLibraryItem(
  document: Document,
  first: Creation,
  options: LibraryItemOptions,
): LibraryItem {
  const { text, onPlay, onPause, onSetVisibility, onDownload, onRename, onDelete, onAgain, shareUrl, copy } =
    options;
  const element = fromTemplate(document, 'library-item');
  text.fill(element);
  const title = part(element, 'title');
  const [publish, share] = [part(element, 'publish'), part(element, 'share')];
  const [again, download] = [part(element, 'again'), part(element, 'download')];
  const [rename, remove] = [part(element, 'rename'), part(element, 'delete')];
  const [link, linkNote] = [part<HTMLAnchorElement>(element, 'link'), part(element, 'link-note')];
  let creation = first;

  const play = addPlayButton(element, text);
  play.connect({ onPlay: () => onPlay(creation), onPause });
  nameByTitle(title, [again, download, publish, share, rename, remove]);

  function update(next: Creation): void {
    creation = next;
    title.textContent = creation.title;
    title.title = creation.prompt;
    play.showCover(coverPath(creation));
    text.write(part(element, 'duration'), 'trackLength', { seconds: creation.seconds });
    text.write(part(element, 'date'), creation.createdAt && 'on', { at: creation.createdAt ?? 0 });
    text.write(
      part(element, 'status'),
      creation.isGenerating ? 'generating' : creation.isPublic ? 'public' : 'private',
    );
    element.dataset['state'] = creation.isGenerating ? 'generating' : 'ready';
    for (const button of [download, remove]) button.hidden = creation.isGenerating;
    text.write(part(publish, 'label'), creation.isPublic ? 'unpublish' : 'publish');
    share.hidden = !creation.isPublic;
    if (!creation.isPublic) part(element, 'link-row').hidden = true;
  }

  async function save(): Promise<void> {
    await onDownload(creation, ({ receivedBytes, totalBytes }) => {
      if (totalBytes)
        text.write(part(element, 'status'), 'downloading', { share: receivedBytes / totalBytes });
    });
    update(creation);
  }

  function mark(isOpen: boolean, isPlaying: boolean): void {
    element.setAttribute('aria-current', String(isOpen));
    play.show(isPlaying);
  }

  async function showLink(): Promise<void> {
    const url = shareUrl(creation);
    link.href = url;
    link.textContent = url;
    part(element, 'link-row').hidden = false;
    const isCopied = await copy(url).then(
      () => true,
      () => false,
    );
    text.write(linkNote, isCopied ? 'linkCopied' : 'linkShown');
  }

  publish.addEventListener('click', () => {
    void runOnce(publish, () => onSetVisibility(creation, !creation.isPublic));
  });
  download.addEventListener('click', () => void runOnce(download, save));
  rename.addEventListener('click', () => void runOnce(rename, () => onRename(creation)));
  remove.addEventListener('click', () => void runOnce(remove, () => onDelete(creation)));
  again.addEventListener('click', () => onAgain(creation));
  share.addEventListener('click', () => void showLink());
  return { element, update, mark };
}
