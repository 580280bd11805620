/** Makes room by giving up what its owner can have again. */

export interface Expendable {
  /** Gives its memory back. */
  makeRoom(): void;
}

/** Gives up one after the other until there is room. @returns whether there is */
export function makeRoom(hasRoom: () => boolean, expendable: Iterable<Expendable>): boolean {
  if (hasRoom()) return true;
  for (const each of expendable) {
    each.makeRoom();
    if (hasRoom()) return true;
  }
  return false;
}
