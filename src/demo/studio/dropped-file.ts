/** Takes a file that is dropped anywhere on the page; the browser would open it in place of the page. */

export interface DroppedFileOptions {
  readonly isWanted: () => boolean;
  /** Called when a file comes over the page, and when it leaves. */
  readonly onOver: (isOver: boolean) => void;
  readonly onFile: (file: File) => void;
}

export function takeDroppedFile(document: Document, { isWanted, onOver, onFile }: DroppedFileOptions): void {
  const hasFile = ({ dataTransfer }: DragEvent) => dataTransfer?.types.includes('Files') && isWanted();
  document.addEventListener('dragover', (event) => {
    if (!hasFile(event)) return;
    // Allows to drop it.
    event.preventDefault();
    onOver(true);
  });
  document.addEventListener('dragleave', ({ relatedTarget }) => {
    // Otherwise it has only come to another element.
    if (relatedTarget === null) onOver(false);
  });
  document.addEventListener('drop', (event) => {
    onOver(false);
    if (!hasFile(event)) return;
    event.preventDefault();
    const file = event.dataTransfer?.files[0];
    if (file) onFile(file);
  });
}
